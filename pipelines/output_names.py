"""Names of the files in an output folder, made from numbers in one place.

A name that was read from a file is never used. It is compared with the one that is made here
(`pipelines.record_checks`).
"""

from __future__ import annotations

import re

__all__ = [
    "BUCKET_FILE",
    "REJECTS_FILE",
    "REJECTS_FOLDER",
    "RESERVED_FOLDERS",
    "SHARD_FILE",
    "SPILL_FOLDER",
    "UNIT_FOLDER",
    "UNIT_RECORD_FILE",
    "bucket_file_name",
    "is_split_name",
    "rejects_name",
    "shard_name",
    "sidecar_name",
    "spill_name",
    "unit_record_name",
]

SHARD_FILE = re.compile(r"shard-(\d{5,})-\d{3,}\.arrow(\.json)?")
"""Names of shards and of their sidecars, without the split's folder; the group is the unit."""

REJECTS_FOLDER = "rejects"
REJECTS_FILE = re.compile(r"unit-(\d{5,})\.jsonl")
"""Names of the lists of rejected rows in that folder; the group is the unit."""

SPILL_FOLDER = "_shuffle"
UNIT_FOLDER = "units"
UNIT_RECORD_FILE = re.compile(r"unit-(\d{5,})\.json")
"""Names of the records in that folder; the group is the unit."""

BUCKET_FILE = re.compile(r"bucket-\d{5}\.arrow")
"""Names of the files of a count table."""

_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]|[A-Za-z0-9]")
RESERVED_FOLDERS = ("counts", "rejects", "tokenizer", "units")
"""Folders of an output that hold something else than a split."""

_LONGEST_SPLIT = 200


def is_split_name(name: str) -> bool:
    """Whether a split may have this name, which is that of its folder."""
    is_name = len(name) <= _LONGEST_SPLIT and _SPLIT.fullmatch(name) is not None
    return is_name and name.lower() not in RESERVED_FOLDERS


def shard_name(unit: int, part: int, split: str = "") -> str:
    """Name of a shard's file: (3, 0) -> 'shard-00003-000.arrow', in the split's folder if any."""
    name = f"shard-{unit:05d}-{part:03d}.arrow"
    return f"{split}/{name}" if split else name


def sidecar_name(unit: int, part: int, split: str = "") -> str:
    """Name of a shard's sidecar."""
    return f"{shard_name(unit, part, split)}.json"


def bucket_file_name(bucket: int) -> str:
    """Name of a bucket of a count table: 3 -> 'bucket-00003.arrow'."""
    return f"bucket-{bucket:05d}.arrow"


def rejects_name(unit: int) -> str:
    """Name of a unit's list of rejected rows below the output."""
    return f"{REJECTS_FOLDER}/unit-{unit:05d}.jsonl"


def spill_name(unit: int) -> str:
    """Name of a unit's spill below the output."""
    return f"{SPILL_FOLDER}/unit-{unit:05d}.arrow"


def unit_record_name(unit: int) -> str:
    """Name of a unit's record below the output."""
    return f"{UNIT_FOLDER}/unit-{unit:05d}.json"
