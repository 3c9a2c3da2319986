"""Segments of documents' ids on their way into packed rows: flat ids and a few columns beside.

Everything works on whole columns; no document becomes a Python object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.shards.token_rows import TokenRows

__all__ = ["SegmentReader", "Segments", "in_one"]

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Segments:
    """Consecutive segments; each is a document or goes on with the one before it.

    Attributes:
        ids: uint16 or uint32, of all segments in order.
        lengths: int64, ids of each.
        positions: int64, place of the first id of each in its document, from 0.
        is_first, is_last: whether its document starts or ends with it.
        joins: whether it goes on where the segment before it ends.
        document_id, source, byte_start: as in `schemas.token_shards`.
    """

    ids: npt.NDArray[Any]
    lengths: _Ints
    positions: _Ints
    is_first: _Bools
    is_last: _Bools
    joins: _Bools
    document_id: pa.Array
    source: pa.Array
    byte_start: _Ints

    def __len__(self) -> int:
        return len(self.lengths)

    def slice(self, start: int, end: int) -> Segments:
        """Segments `start` to `end`, without copying."""
        before = int(self.lengths[:start].sum())
        size = int(self.lengths[start:end].sum())
        part = slice(start, end)
        return Segments(
            self.ids[before : before + size],
            self.lengths[part],
            self.positions[part],
            self.is_first[part],
            self.is_last[part],
            self.joins[part],
            self.document_id.slice(start, end - start),
            self.source.slice(start, end - start),
            self.byte_start[part],
        )

    def copied(self) -> Segments:
        """The same in memory of their own, so that what they were cut from can go."""
        every = pa.array(np.arange(len(self)))
        columns = {name: getattr(self, name) for name in Segments.__dataclass_fields__}
        return Segments(
            **{
                name: column.copy() if isinstance(column, np.ndarray) else column.take(every)
                for name, column in columns.items()
            }
        )

    def cut(self, starts: _Ints, every: int) -> Segments:
        """The same, cut at multiples of a distance.

        Args:
            starts: int64, where each segment starts on the line on which the multiples lie.
            every: the distance.
        """
        ends = starts + self.lengths
        # Cuts strictly inside a segment; none in an empty one.
        cuts = np.where(self.lengths > 0, (ends - 1) // every - starts // every, 0)
        if not cuts.any():
            return self
        of = np.repeat(np.arange(len(self)), cuts + 1)
        within = np.arange(len(of)) - np.repeat(np.cumsum(cuts + 1) - (cuts + 1), cuts + 1)
        marks = (starts[of] // every + within) * every
        first = np.maximum(starts[of], marks)
        last = np.minimum(ends[of], marks + every)
        rows = pa.array(of)
        return Segments(
            self.ids,
            last - first,
            self.positions[of] + first - starts[of],
            self.is_first[of] & (within == 0),
            self.is_last[of] & (within == cuts[of]),
            self.joins[of] | (within > 0),
            self.document_id.take(rows),
            self.source.take(rows),
            self.byte_start[of],
        )

    def joined(self, places: _Ints) -> Segments:
        """The same, with those put together that go on in the same place.

        Args:
            places: int64, of each segment; ascending.
        """
        starts = ~self.joins | (np.diff(places, prepend=-1) != 0)
        if starts.all():
            return self
        first = np.flatnonzero(starts)
        last = np.append(first[1:], len(self)) - 1
        rows = pa.array(first)
        return Segments(
            self.ids,
            np.add.reduceat(self.lengths, first),
            self.positions[first],
            self.is_first[first],
            self.is_last[last],
            self.joins[first],
            self.document_id.take(rows),
            self.source.take(rows),
            self.byte_start[first],
        )


def in_one(parts: list[Segments]) -> Segments:
    """Segments one after the other; each part's ids are let go when they are copied.

    Args:
        parts: at least one; empty afterwards.
    """
    if len(parts) == 1:
        return parts.pop()
    columns = {
        name: _concatenated([getattr(part, name) for part in parts])
        for name in Segments.__dataclass_fields__
        if name != "ids"
    }
    ids = np.empty(sum(len(part.ids) for part in parts), parts[0].ids.dtype)
    end = len(ids)
    while parts:
        part = parts.pop()
        ids[end - len(part.ids) : end] = part.ids
        end -= len(part.ids)
    return Segments(ids=ids, **columns)


def _concatenated(columns: list[Any]) -> Any:
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    return pa.concat_arrays(columns)


class SegmentReader:
    """Turns rows of token shards, in order, into segments."""

    def __init__(self) -> None:
        self._document: str | None = None
        self._goes_on = False
        self._position = 0

    def read(self, rows: TokenRows) -> Segments:
        """The segments of a batch of rows, one each.

        Args:
            rows: columns of `schemas.token_shards`; at least one row.
        """
        batch = rows.batch
        lengths = pc.list_value_length(batch["input_ids"]).to_numpy().astype(np.int64)
        is_first = batch["part"].to_numpy() == 0
        is_last = batch["is_last"].to_numpy(zero_copy_only=False)
        names = batch["document_id"]
        joins = ~is_first
        if joins.any():
            same = np.ones(len(joins), np.bool_)
            same[0] = self._goes_on and names[0].as_py() == self._document
            same[1:] = pc.equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(
                zero_copy_only=False
            )
            same[1:] &= ~is_last[:-1]
            joins &= same
        positions = self._positions(lengths, joins)
        self._goes_on = not is_last[-1]
        self._document = names[-1].as_py()
        self._position = int(positions[-1] + lengths[-1])
        return Segments(
            batch["input_ids"].flatten().to_numpy(),
            lengths,
            positions,
            is_first,
            is_last,
            joins,
            names,
            batch["source"],
            batch["byte_start"].to_numpy(),
        )

    def _positions(self, lengths: _Ints, joins: _Bools) -> _Ints:
        """Ids of the same document before each row."""
        before = np.cumsum(lengths) - lengths
        begins = np.where(joins, -1, np.arange(len(joins)))
        begins = np.maximum.accumulate(begins)
        base = np.where(begins >= 0, before[np.maximum(begins, 0)], -self._position)
        positions: _Ints = before - base
        return positions
