"""Names of the files in an output folder, made from numbers in one place.

A name that was read from a file is never used. It is compared with the one that is made here
(`pipelines.storage.record_checks`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from bpe.errors import SettingsError
from pipelines.storage.output_layout import SPILL_FOLDER, UNIT_FOLDER, sidecar_of

__all__ = [
    "BUCKET_FILE",
    "REJECTS_FILE",
    "SHARD_FILE",
    "UNIT_RECORD_FILE",
    "Split",
    "bucket_file_name",
    "check_splits",
    "is_split_name",
    "rejects_name",
    "shard_name",
    "share_of",
    "sidecar_name",
    "spill_name",
    "unit_record_name",
]

SHARD_FILE = re.compile(r"shard-(\d{5,})-\d{3,}\.arrow(\.json)?")
"""Names of shards and of their sidecars, without folders; the first group is the unit."""

REJECTS_FILE = re.compile(r"unit-(\d{5,})\.jsonl")
"""Names of the lists of rejected rows; the group is the unit."""

UNIT_RECORD_FILE = re.compile(r"unit-(\d{5,})\.json")
"""Names of the records in `output_layout.UNIT_FOLDER`; the group is the unit."""

BUCKET_FILE = re.compile(r"bucket-\d{5}\.arrow")
"""Names of the files of a count table."""

Split = tuple[str, str]
"""Name of a split and its share of the documents, a decimal number as it was written."""

_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]|[A-Za-z0-9]")
_LONGEST_SPLIT = 200


def is_split_name(name: str) -> bool:
    """Whether a split may have this name, which is that of its folder."""
    return len(name) <= _LONGEST_SPLIT and _SPLIT.fullmatch(name) is not None


def parse_splits(text: str) -> tuple[Split, ...]:
    """Splits as they are written on the command line.

    Raises:
        SettingsError: a name or share that cannot be one, or shares that do not add up to 1.

    >>> parse_splits("train=0.99,validation=0.01")
    (('train', '0.99'), ('validation', '0.01'))
    """
    pairs = [part.strip().partition("=") for part in text.split(",")]
    splits = tuple((name.strip(), share.strip()) for name, _, share in pairs)
    check_splits(splits)
    return splits


def check_splits(splits: Sequence[Split]) -> None:
    """Refuse splits that cannot be honoured; no splits at all are fine.

    Raises:
        SettingsError: names the split and what is wrong with it.
    """
    for name, share in splits:
        if not is_split_name(name):
            raise SettingsError(
                f"--split {name}={share}: {name!r} cannot be a split's name; use letters, digits, "
                "'.' and '-'"
            )
        if not 0 < share_of(name, share) <= 1:
            raise SettingsError(f"--split {name}={share}: a share is more than 0 and at most 1")
    names = [name.lower() for name, _ in splits]
    if len(set(names)) < len(names):
        raise SettingsError(f"--split: the names {', '.join(names)} are not all different")
    total = sum(share_of(*split) for split in splits)
    if splits and total != 1:
        raise SettingsError(f"--split: the shares add up to {total}, not to 1")


def share_of(name: str, share: str) -> Decimal:
    """The share of a split as an exact number.

    Raises:
        SettingsError: it is none.
    """
    try:
        value = Decimal(share)
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise SettingsError(
            f"--split: {name!r} has the share {share!r}; give each split a name and a share, such "
            "as train=0.9,val=0.1"
        )
    return value


def shard_name(unit: int, part: int, split: str = "") -> str:
    """Name of a shard's file: (3, 0) -> 'shard-00003-000.arrow', in the split's folder if any."""
    name = f"shard-{unit:05d}-{part:03d}.arrow"
    return f"{split}/{name}" if split else name


def sidecar_name(unit: int, part: int, split: str = "") -> str:
    """Name of a shard's sidecar."""
    return sidecar_of(shard_name(unit, part, split))


def bucket_file_name(bucket: int) -> str:
    """Name of a bucket of a count table: 3 -> 'bucket-00003.arrow'."""
    return f"bucket-{bucket:05d}.arrow"


def rejects_name(unit: int, folder: str) -> str:
    """Name of a unit's list of rejected rows below the output.

    Args:
        unit: its number.
        folder: `output_layout.REJECTS` for encode, `output_layout.REJECTS_FOLDER` else.
    """
    return f"{folder}/unit-{unit:05d}.jsonl"


def spill_name(unit: int) -> str:
    """Name of a unit's spill below the output."""
    return f"{SPILL_FOLDER}/unit-{unit:05d}.arrow"


def unit_record_name(unit: int) -> str:
    """Name of a unit's record below the output."""
    return f"{UNIT_FOLDER}/unit-{unit:05d}.json"
