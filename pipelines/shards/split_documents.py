"""Which split a document belongs to: `train`, `validation` and the like, by a hash of its id.

The hash depends on `document_id` and the seed alone: not on the plan, the runner, or the other
documents. All pieces of a document, and documents of equal ids, go to the same split.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import SettingsError
from pipelines.corpus.document_keys import hash_strings
from pipelines.storage.output_names import is_split_name

__all__ = ["Split", "Splitter", "check_splits", "parse_splits"]

Split = tuple[str, str]
"""Name of a split and its share of the documents, a decimal number as it was written."""

_WHOLE = 1 << 64
_HASH_DOMAIN = 0x5B117


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
        if not 0 < _share(name, share) <= 1:
            raise SettingsError(f"--split {name}={share}: a share is more than 0 and at most 1")
    names = [name.lower() for name, _ in splits]
    if len(set(names)) < len(names):
        raise SettingsError(f"--split: the names {', '.join(names)} are not all different")
    total = sum(_share(*split) for split in splits)
    if splits and total != 1:
        raise SettingsError(f"--split: the shares add up to {total}, not to 1")


def _share(name: str, share: str) -> Decimal:
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


class Splitter:
    """Assigns documents to splits.

    Args:
        splits: names and shares; at least one.
        seed: another one gives another, independent choice of documents.
    """

    def __init__(self, splits: Sequence[Split], seed: int) -> None:
        shares = [_share(*split) for split in splits]
        ends = [int(sum(shares[: index + 1]) * _WHOLE) for index in range(len(shares) - 1)]
        self._ends = np.array(ends, np.uint64)
        self._seed = seed

    def assign(self, document_ids: pa.Array) -> npt.NDArray[np.int64]:
        """Number of the split of each document.

        Args:
            document_ids: string.
        """
        hashes = hash_strings(document_ids, self._seed ^ _HASH_DOMAIN)
        return np.searchsorted(self._ends, hashes, side="right").astype(np.int64)
