"""Puts rows of token shards into the order of their documents' keys (`document_keys`).

    shard    the documents of a unit, in ranges that hold `shard_bytes` of text: what one shard
             holds is in random order
    global   the documents of the whole input (`pipelines.encoding.shuffle_buckets`)

Rows of a document stay together and in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.document_keys import DocumentKeys
from pipelines.shards.token_rows import TokenRows

__all__ = ["ShuffleWindow", "in_order"]

# Rows are gathered in batches of about so many bytes.
_BLOCK_BYTES = 8 << 20
# What a row weighs besides its text, so that empty documents cannot fill the memory.
_ROW_BYTES = 64


class ShuffleWindow:
    """Holds the rows of a unit back until there are enough of them, and hands them on shuffled.

    Args:
        keys: of the unit's documents.
        window_bytes: of text; a window closes with the row that fills it.
    """

    def __init__(self, keys: DocumentKeys, window_bytes: int) -> None:
        self._keys = keys
        self._room = window_bytes
        self._rows: list[TokenRows] = []
        self._order: list[npt.NDArray[np.uint64]] = []
        self._size = 0

    def add(self, rows: TokenRows) -> Iterator[TokenRows]:
        """The windows that are full with these rows."""
        keys = self._keys.of(rows.batch)
        weights = np.cumsum(rows.text_bytes + _ROW_BYTES)
        is_last = rows.batch["is_last"].to_numpy(zero_copy_only=False)
        # Not inside a piece, whose bytes count at the last of its rows.
        borders = np.flatnonzero((rows.text_bytes > 0) | is_last) + 1
        start = 0
        while start < len(keys):
            before = int(weights[start - 1]) if start else 0
            filled = int(np.searchsorted(weights, before + self._room - self._size))
            border = int(np.searchsorted(borders, filled + 1))
            end = int(borders[border]) if border < len(borders) else len(keys)
            self._rows.append(rows.slice(start, end))
            self._order.append(keys[start:end])
            self._size += int(weights[end - 1]) - before
            start = end
            if self._size >= self._room:
                yield from self.finish()

    def finish(self) -> Iterator[TokenRows]:
        """The rows that are left at the unit's end."""
        rows, keys = self._rows, self._order
        self._rows, self._order, self._size = [], [], 0
        if rows:
            # Rows of equal keys, such as those of one document, keep their order.
            yield from in_order(rows, np.argsort(np.concatenate(keys), kind="stable"))


def in_order(rows: Sequence[TokenRows], order: npt.NDArray[np.int64]) -> Iterator[TokenRows]:
    """Rows of several batches in another order, in batches of bounded size.

    Args:
        rows: batches of one schema, the same dictionaries in all of them.
        order: int64, numbers of rows as if the batches were one.
    """
    starts = np.cumsum([0, *(len(each.text_bytes) for each in rows)])
    sizes = np.concatenate([_row_bytes(each.batch) for each in rows])[order]
    blocks = np.cumsum(sizes) // _BLOCK_BYTES
    borders = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(order)]
    for start, end in itertools.pairwise(borders):
        yield _gather(rows, starts, order[start:end])


def _row_bytes(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    ids = batch["input_ids"]
    lengths: npt.NDArray[np.int64] = np.diff(ids.offsets.to_numpy()).astype(np.int64)
    return lengths * int(ids.type.value_type.bit_width // 8) + _ROW_BYTES


def _gather(
    rows: Sequence[TokenRows], starts: npt.NDArray[np.int64], order: npt.NDArray[np.int64]
) -> TokenRows:
    """Some rows of all batches: taken from each batch at a time, then put in order."""
    batch_of = np.searchsorted(starts, order, side="right") - 1
    by_batch = np.argsort(batch_of, kind="stable")
    batches, counts = np.unique(batch_of, return_counts=True)
    taken, sizes, done = [], np.empty(len(order), np.int64), 0
    for batch, count in zip(batches.tolist(), counts.tolist(), strict=True):
        places = order[by_batch[done : done + count]] - starts[batch]
        taken.append(rows[batch].batch.take(pa.array(places)))
        sizes[done : done + count] = rows[batch].text_bytes[places]
        done += count
    (joined,) = pa.Table.from_batches(taken).combine_chunks().to_batches()
    back = np.empty(len(order), np.int64)
    back[by_batch] = np.arange(len(order))
    return TokenRows(joined.take(pa.array(back)), sizes[back])
