"""Which documents are held out for validation: those of a split, or by a hash of their number.

The choice by hash depends on the fraction and on the order of documents alone, and can be told
without reading them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bpe.errors import SettingsError
from pipelines.corpus.splitmix64 import GOLDEN, splitmix64
from pipelines.exports.shard_source import ShardSource, TokenBatch
from schemas.export_record import ExportedSide

__all__ = ["HeldOut", "check_held_out", "held_out_of"]

_BLOCK = 1 << 20


class HeldOut:
    """Says of each row whether its document is held out; rows come in the order of the shards.

    Args:
        fraction: of the documents, from 0 (none) to below 1.
        first: held out are this document and all after it, whatever the fraction; None: by hash.
    """

    def __init__(self, fraction: float, first: int | None = None) -> None:
        self._first = first
        self._limit = np.uint64(int(fraction * 2**64))
        self._next = 0
        self._documents = 0
        self._tokens = 0

    def sides(self, source: ShardSource) -> dict[str, ExportedSide]:
        """Both sides of the shards, of which `divide` has seen every row."""
        documents, tokens = self._documents, self._tokens
        return {
            "train": ExportedSide(
                documents=source.documents - documents, tokens=source.tokens - tokens
            ),
            "validation": ExportedSide(documents=documents, tokens=tokens),
        }

    def divide(self, batch: TokenBatch) -> npt.NDArray[np.bool_]:
        """Per id of the next batch, whether it is held out."""
        rows = self.rows(batch.ends)
        self._documents += int((rows & batch.ends).sum())
        self._tokens += int(batch.lengths[rows].sum())
        return np.repeat(rows, batch.lengths)

    def rows(self, ends: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Per row, whether it is held out; `ends` says which rows end a document."""
        number = self._next + np.cumsum(ends) - ends
        self._next += int(ends.sum())
        if self._first is not None:
            return number >= self._first
        return splitmix64(number.astype(np.uint64) * GOLDEN) < self._limit


def held_out_of(source: ShardSource, fraction: float | None) -> HeldOut | None:
    """Who tells what is held out; None if nothing is."""
    if source.training_documents is not None:
        return HeldOut(0.0, source.training_documents)
    return None if fraction is None else HeldOut(fraction)


def check_held_out(source: ShardSource, fraction: float | None) -> None:
    """Check that documents fall on both sides, if any are to be held out.

    Raises:
        SettingsError: all or none would be held out; names the numbers.
    """
    first = source.training_documents
    if first is not None:
        for documents, name in ((first, "training"), (source.documents - first, "validation")):
            if not documents:
                raise SettingsError(
                    f"{source.directory}: the split for {name} holds no documents; export one "
                    "split with --split, or encode with other shares"
                )
    if fraction is None:
        return
    chosen = HeldOut(fraction)
    held_out = 0
    for start in range(0, source.documents, _BLOCK):
        size = min(_BLOCK, source.documents - start)
        held_out += int(chosen.rows(np.ones(size, np.bool_)).sum())
    if not 0 < held_out < source.documents:
        raise SettingsError(
            f"--val-fraction {fraction}: would hold out {held_out} of the {source.documents} "
            f"documents of {source.directory}; choose another fraction, or leave the option out"
        )
