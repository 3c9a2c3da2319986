"""Packs documents into rows of exactly N ids, with their borders kept (`schemas.packed_shards`).

- `concat`: documents one after another, cut wherever a row is full. The last row of a unit of the
  plan is filled up or left out.
- `best-fit`: documents longer than N are cut into rows; what remains of them, and all others, are
  put whole into rows by best-fit-decreasing over windows of a set number of ids, as in "Fewer
  Truncations Improve Language Modeling" (Ding et al. 2024). No document is cut more than its
  length demands.
- `pad`: a document a row, or several if it is longer than N.

Nothing is carried from one unit to the next, so that rows are a function of the plan. What is added
or left out is counted (`schemas.sidecars.PackingTotals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.token_lengths import TokenLengths
from pipelines.encoding.best_fit import best_fit_decreasing
from pipelines.encoding.ranges import SegmentReader, Segments, in_one
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.token_rows import TokenRows
from schemas.packed_shards import PACKED_LISTS
from schemas.sidecars import PackingTotals

__all__ = ["Packer"]

_Ints = npt.NDArray[np.int64]
# Ids that are put in their places at a time, which takes some 50 bytes each meanwhile; a batch.
_BLOCK_IDS = 1 << 19


class Packer:
    """Packs the documents of one unit (and split), in order.

    Args:
        schema: of the packed rows.
        settings: how to pack.
        lengths: bytes of each id.

    Attributes:
        padding, dropped_tokens, dropped_documents: as in `schemas.sidecars.PackingTotals`.
    """

    def __init__(
        self, schema: pa.Schema, settings: EncodeSettings, lengths: TokenLengths | _Ints
    ) -> None:
        self.padding = 0
        self.dropped_tokens = 0
        self.dropped_documents = 0
        self._schema = schema
        self._settings = settings
        self._size = int(settings.pack or 0)
        self._pad = 0 if settings.pad is None else settings.pad
        self._lengths = lengths
        self._reader = SegmentReader()
        self._waiting: list[Segments] = []
        self._waiting_ids = 0

    def add(self, rows: TokenRows) -> Iterator[TokenRows]:
        """The packed rows that can be made now.

        Args:
            rows: columns of `schemas.token_shards`, in order.
        """
        if not rows.batch.num_rows:
            return
        self._wait(self._reader.read(rows))
        if self._settings.pack_mode == "concat":
            yield from self._concatenated(self._waited())
            return
        least = self._settings.pack_window if self._settings.pack_mode == "best-fit" else 0
        if self._waiting_ids < least:
            return
        waiting, complete = self._cut_documents(self._waited())
        taken = 0
        for start, end in self._windows(waiting.lengths[:complete], is_end=False):
            yield from self._fitted(waiting.slice(start, end))
            taken = end
        self._wait(waiting.slice(taken, len(waiting)).copied())

    def finish(self) -> Iterator[TokenRows]:
        """The rows that are left at the unit's end."""
        if not self._waiting:
            return
        waiting = self._waited()
        if self._settings.pack_mode != "concat":
            waiting, _ = self._cut_documents(waiting)
            for start, end in self._windows(waiting.lengths, is_end=True):
                yield from self._fitted(waiting.slice(start, end))
        elif self._settings.pack_tail == "pad":
            yield from self._rows(waiting, np.zeros(len(waiting), np.int64), 1)
        else:
            self.dropped_tokens += int(waiting.lengths.sum())
            self.dropped_documents += int(waiting.is_last.sum())

    def totals(self) -> PackingTotals:
        """What was added or left out so far."""
        return PackingTotals(
            padding=self.padding,
            dropped_tokens=self.dropped_tokens,
            dropped_documents=self.dropped_documents,
        )

    def _wait(self, segments: Segments) -> None:
        if len(segments):
            self._waiting.append(segments)
            self._waiting_ids += int(segments.lengths.sum())

    def _waited(self) -> Segments:
        """All segments that wait, of which there are some; none do afterwards."""
        self._waiting_ids = 0
        return in_one(self._waiting)

    def _concatenated(self, waiting: Segments) -> Iterator[TokenRows]:
        starts = np.cumsum(waiting.lengths) - waiting.lengths
        pieces = waiting.cut(starts, self._size)
        places = (np.cumsum(pieces.lengths) - pieces.lengths) // self._size
        pieces = pieces.joined(places)
        places = (np.cumsum(pieces.lengths) - pieces.lengths) // self._size
        full = int(pieces.lengths.sum()) // self._size
        taken = int(np.searchsorted(places, full))
        self._wait(pieces.slice(taken, len(pieces)).copied())
        if full:
            yield from self._rows(pieces.slice(0, taken), places[:taken], full)

    def _cut_documents(self, waiting: Segments) -> tuple[Segments, int]:
        """Documents as pieces of at most a row, and how many of them will not grow."""
        pieces = waiting.cut(waiting.positions, self._size)
        # Pieces of a document that share a row of it; documents lie in different places anyway.
        chunks = np.cumsum(~pieces.joins) + pieces.positions // self._size
        pieces = pieces.joined(chunks)
        ends = len(pieces) > 0 and (pieces.is_last[-1] or pieces.lengths[-1] == self._size)
        return pieces, len(pieces) - (not ends)

    def _windows(self, lengths: _Ints, *, is_end: bool) -> Iterator[tuple[int, int]]:
        """Segments that are packed together, as ranges: a window closes when it is full."""
        if self._settings.pack_mode == "pad":
            # Any range will do: each segment has rows of its own.
            step = max(1, _BLOCK_IDS // self._size)
            for start in range(0, len(lengths), step):
                yield start, min(start + step, len(lengths))
            return
        ends = np.cumsum(lengths)
        start, before = 0, 0
        while start < len(lengths):
            full = int(np.searchsorted(ends, before + self._settings.pack_window))
            if full >= len(lengths):
                if is_end:
                    yield start, len(lengths)
                return
            yield start, full + 1
            start, before = full + 1, int(ends[full])

    def _fitted(self, pieces: Segments) -> Iterator[TokenRows]:
        """Rows that hold whole pieces: in `best-fit` several, in `pad` one each."""
        count = len(pieces)
        if self._settings.pack_mode == "pad":
            yield from self._rows(pieces, np.arange(count), count)
            return
        filled = np.flatnonzero(pieces.lengths)
        bins = best_fit_decreasing(pieces.lengths[filled], self._size)
        # Rows in the order of their first documents, documents of a row in their own order.
        _, first = np.unique(bins, return_index=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))
        places = np.zeros(count, np.int64)
        if len(filled):
            # An empty document goes where the one before it does, or else the first of all.
            latest = np.searchsorted(filled, np.arange(count), side="right") - 1
            places = rank[bins[np.maximum(latest, 0)]]
        order = np.argsort(places, kind="stable")
        yield from self._rows(pieces, places[order], max(1, len(first)), order)

    def _rows(
        self, pieces: Segments, places: _Ints, count: int, order: _Ints | None = None
    ) -> Iterator[TokenRows]:
        """Packed rows, in batches.

        Args:
            pieces: what is in the rows.
            places: int64, row of each, ascending; every row has a piece.
            count: number of rows.
            order: int64, the pieces in the order in which they stand in the rows; None for theirs.
        """
        starts = np.cumsum(pieces.lengths) - pieces.lengths
        step = max(1, _BLOCK_IDS // self._size)
        borders = np.searchsorted(places, np.arange(0, count + step, step))
        for index, start in enumerate(range(0, count, step)):
            within = slice(int(borders[index]), int(borders[index + 1]))
            if order is None:
                part = pieces.slice(within.start, within.stop)
            else:
                part = _picked(pieces, starts, order[within])
            yield self._batch(part, places[within] - start, min(step, count - start))

    def _batch(self, pieces: Segments, places: _Ints, count: int) -> TokenRows:
        ids = self._placed(pieces, places, count)
        offsets = pa.array(np.searchsorted(places, np.arange(count + 1)), pa.int32())
        values = {
            "lengths": pa.array(pieces.lengths, pa.int32()),
            "positions": pa.array(pieces.positions),
            "document_ids": pieces.document_id,
            "sources": pieces.source,
            "byte_starts": pa.array(pieces.byte_start),
            "is_first": pa.array(pieces.is_first),
            "is_last": pa.array(pieces.is_last),
        }
        columns = [
            pa.FixedSizeListArray.from_arrays(
                pa.array(ids), type=self._schema.field("input_ids").type
            )
        ]
        columns += [
            pa.ListArray.from_arrays(offsets, values[name], type=self._schema.field(name).type)
            for name in PACKED_LISTS
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return TokenRows(batch, self._text_bytes(pieces, places, ids, count))

    def _placed(self, pieces: Segments, places: _Ints, count: int) -> npt.NDArray[Any]:
        """Flat ids of the rows, filled up with padding."""
        room = count * self._size
        self.padding += room - len(pieces.ids)
        if len(pieces.ids) == room:
            return pieces.ids
        ids = np.full(room, self._pad, pieces.ids.dtype)
        before = np.cumsum(pieces.lengths) - pieces.lengths
        # An id moves by what its row lies further on than the row's first piece does.
        shift = places * self._size - before[np.searchsorted(places, places)]
        ids[np.arange(len(pieces.ids)) + np.repeat(shift, pieces.lengths)] = pieces.ids
        return ids

    def _text_bytes(
        self, pieces: Segments, places: _Ints, ids: npt.NDArray[Any], count: int
    ) -> _Ints:
        """Bytes that the ids of each row decode to, without BOS, EOS and padding."""
        sizes: _Ints = self._lengths[ids].reshape(count, self._size).sum(axis=1)
        filled = np.bincount(places, pieces.lengths, count).astype(np.int64)
        sizes -= (self._size - filled) * self._lengths[self._pad]
        for mark, where in ((self._settings.bos, "is_first"), (self._settings.eos, "is_last")):
            if mark is not None:
                marks = np.bincount(places, getattr(pieces, where), count).astype(np.int64)
                sizes -= marks * self._lengths[mark]
        return sizes


def _picked(pieces: Segments, starts: _Ints, order: _Ints) -> Segments:
    """Some of the segments, in another order.

    Args:
        pieces: all of them.
        starts: int64, place of each among the ids.
        order: int64, numbers of those that are wanted.
    """
    lengths = pieces.lengths[order]
    shift = starts[order] - (np.cumsum(lengths) - lengths)
    rows = pa.array(order)
    return Segments(
        pieces.ids[np.arange(int(lengths.sum())) + np.repeat(shift, lengths)],
        lengths,
        pieces.positions[order],
        pieces.is_first[order],
        pieces.is_last[order],
        np.zeros(len(order), np.bool_),
        pieces.document_id.take(rows),
        pieces.source.take(rows),
        pieces.byte_start[order],
    )
