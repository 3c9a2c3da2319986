"""Finds the rows of a file: ranges of bytes that end with a terminator, or with the file.

Rows are found by NumPy, a block of them at a time. A row belongs to the range in which it starts.
Terminators are matched from the start of the file, each as early as possible and none overlapping
another, wherever a range starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipelines.corpus.text_checks import find_byte

__all__ = [
    "LongRow",
    "RowBlock",
    "RowFinder",
    "RowSource",
    "find_terminators",
    "first_match_position",
    "rows",
]

READ_BYTES = 4 << 20
# After the end of a range only the rest of one row is of interest.
LOOK_AHEAD_BYTES = 64 << 10

_Positions = npt.NDArray[np.int64]


class RowSource(Protocol):
    """What rows are read from; `pipelines.corpus.compression.byte_streams.ByteStream` is one."""

    position: int

    def read_behind(self, data: memoryview, size: int) -> bytes | memoryview:
        """Some bytes, and after them the next ones, fewer than asked for only at the end."""


@dataclass(frozen=True)
class RowBlock:
    """Rows that lie close to each other.

    Attributes:
        data: bytes that hold them; nothing changes them later.
        base: position of `data` in the file.
        starts, ends: int64, per row, in `data`; ends without the terminator.
        number: of the first row in the file, from 1; None where that is not known.
        last_is_cut: whether the last row ends with the file instead of a terminator.
    """

    data: memoryview
    base: int
    starts: _Positions
    ends: _Positions
    number: int | None
    last_is_cut: bool


@dataclass(frozen=True)
class LongRow:
    """A row over the limit, to be read (or not) before the next block is asked for.

    Attributes:
        start: position in the file.
        number: as in `RowBlock`.
        chunks: its bytes, in order.
    """

    start: int
    number: int | None
    chunks: Iterator[bytes]


def find_terminators(data: bytes | memoryview, terminator: bytes, start: int = 0) -> _Positions:
    """Positions of a terminator, leftmost first, none overlapping another.

    Args:
        data: where to look.
        terminator: at least one byte.
        start: first position at which one may start.

    Returns:
        int64, ascending: where each begins.
    """
    size = len(terminator)
    found = find_byte(data, terminator[0], start)
    if size == 1:
        return found
    values = np.frombuffer(data, np.uint8)
    found = found[: np.searchsorted(found, len(data) - size + 1)]
    for offset in range(1, size):
        found = found[values[found + offset] == terminator[offset]]
    if not len(found) or np.diff(found).min(initial=size) >= size:
        return found
    kept = []
    free_from = start
    for position in found.tolist():
        if position >= free_from:
            kept.append(position)
            free_from = position + size
    return np.array(kept, np.int64)


def first_match_position(
    read_at: Callable[[int, int], bytes], terminator: bytes, position: int
) -> int:
    """A position, `position` or before, from which on the search finds the right terminators.

    Only terminators that overlap themselves, such as an empty line's two line feeds, need a look
    back: in a run of line feeds it depends on the run's start which pairs of them count.

    Args:
        read_at: gives bytes of the file: position and size.
        terminator: at least one byte.
        position: anywhere in the file.
    """
    size = len(terminator)
    if not any(terminator.startswith(terminator[-border:]) for border in range(1, size)):
        return position
    window_start = position
    window = b""
    while True:
        # Does one start before `position` and reach beyond it?
        lowest = max(0, position - size + 1)
        if lowest < window_start:
            window_start = max(0, lowest - LOOK_AHEAD_BYTES)
            window = read_at(window_start, position + size - window_start)
        highest = position - 1 + size - window_start
        found = window.rfind(terminator, lowest - window_start, highest)
        if found < 0:
            return position
        position = window_start + found


def rows(
    source: RowSource, terminator: bytes, *, start: int, end: int | None, limit: int
) -> Iterator[RowBlock | LongRow]:
    """The rows that start in a range.

    Args:
        source: stands at 0 if that is `start`, else where `first_match_position` says for
            `start` less the terminator's length.
        terminator: ends a row; the bytes after the last one are a row only if there are any.
        start: of the range, in bytes.
        end: of the range; None for the end of the file.
        limit: rows with more bytes come as `LongRow`.
    """
    return RowFinder(source, terminator, start, end, limit).rows()


class RowFinder:
    """The bytes in hand, and how far they were looked through; arguments as for `rows`.

    A subclass may know other ends of rows: `_find` and `_rest_of_row` look for them.
    """

    def __init__(
        self, source: RowSource, terminator: bytes, start: int, end: int | None, limit: int
    ) -> None:
        self._source = source
        self._terminator = terminator
        self._start = start
        self._end = end
        self._limit = limit
        self._data = memoryview(b"")
        self._base = source.position
        self._at_end = False
        # Where the current row starts, and where the next terminator may start; both in the file.
        self._row: int | None = 0 if start == 0 else None
        self._search = source.position
        self._number = 1 if start == 0 else None

    def rows(self) -> Iterator[RowBlock | LongRow]:
        """All rows of the range."""
        while self._row_may_follow():
            self._read_more()
            found = self._find()
            if self._row is None:
                found = self._enter_range(found)
            if self._row is not None:
                yield from self._complete_rows(found)
                yield from self._incomplete_row()

    def _row_may_follow(self) -> bool:
        """Whether a row that is not given out yet can start in the range."""
        if self._row is None:
            # It would start after a terminator that ends at or before the last byte of the range.
            in_range = self._end is None or self._search + len(self._terminator) < self._end
            return in_range and not self._at_end
        if self._end is not None and self._row >= self._end:
            return False
        return not (self._at_end and self._row >= self._base + len(self._data))

    def _read_more(self) -> None:
        if self._at_end:
            return
        keep = self._search if self._row is None else min(self._row, self._search)
        kept = self._data[keep - self._base :]
        self._base = keep
        # Growing with what is in hand keeps the copying linear in the length of a row; a row over
        # the limit is not collected.
        growth = min(len(kept), self._limit + 1 - len(kept))
        wanted = max(READ_BYTES, growth)
        if self._end is not None:
            rest = self._end - self._source.position
            wanted = min(wanted, rest if rest > 0 else max(LOOK_AHEAD_BYTES, growth))
        # What was in hand is let go before more is there.
        self._data = memoryview(b"")
        self._data = memoryview(self._source.read_behind(kept, wanted))
        self._at_end = len(self._data) - len(kept) < wanted

    def _find(self) -> _Positions:
        """Terminators not met before, as positions in the data in hand."""
        size = len(self._terminator)
        found = find_terminators(self._data, self._terminator, self._search - self._base)
        free_from = self._base + int(found[-1]) + size if len(found) else self._search
        self._search = max(free_from, self._base + len(self._data) - size + 1, self._search)
        return found

    def _enter_range(self, found: _Positions) -> _Positions:
        """Find the first row of the range; returns the terminators after its start."""
        first_rows = self._base + found + len(self._terminator)
        index = int(np.searchsorted(first_rows, self._start))
        if index < len(found):
            self._row = int(first_rows[index])
        return found[index + 1 :]

    def _complete_rows(self, found: _Positions) -> Iterator[RowBlock | LongRow]:
        if self._row is None or not len(found):
            return
        following = found + len(self._terminator)
        starts = np.concatenate([[self._row - self._base], following[:-1]])
        if self._end is not None:
            count = int(np.searchsorted(starts, self._end - self._base))
            starts, found, following = starts[:count], found[:count], following[:count]
        if not len(starts):
            return
        self._row = self._base + int(following[-1])
        yield from self._blocks(starts, found, last_is_cut=False)

    def _blocks(
        self, starts: _Positions, ends: _Positions, *, last_is_cut: bool
    ) -> Iterator[RowBlock | LongRow]:
        """Rows in hand as blocks, with those over the limit between them."""
        first = 0
        for index in [*np.flatnonzero(ends - starts > self._limit).tolist(), len(starts)]:
            if index > first:
                yield RowBlock(
                    self._data,
                    self._base,
                    starts[first:index],
                    ends[first:index],
                    self._number,
                    last_is_cut=last_is_cut and index == len(starts),
                )
                self._count(index - first)
            if index < len(starts):
                start, end = int(starts[index]), int(ends[index])
                whole = iter((bytes(self._data[start:end]),))
                yield LongRow(self._base + start, self._number, whole)
                self._count(1)
            first = index + 1

    def _incomplete_row(self) -> Iterator[RowBlock | LongRow]:
        """What follows the last terminator, if the file ends there or it is over the limit."""
        if self._row is None or not self._row_may_follow():
            return
        start, end = self._row - self._base, len(self._data)
        if self._at_end:
            self._row = self._base + end
            yield from self._blocks(np.array([start]), np.array([end]), last_is_cut=True)
        elif self._search - self._row > self._limit:
            chunks = self._rest_of_row()
            yield LongRow(self._row, self._number, chunks)
            for _ in chunks:
                pass
            self._count(1)

    def _rest_of_row(self) -> Iterator[bytes]:
        """The current row up to its terminator, reading on; leaves the next row current."""
        row = self._row or 0
        while True:
            # Up to where the next terminator may start, all bytes are the row's.
            known = self._search - self._base
            yield bytes(self._data[row - self._base : known])
            row = self._row = self._search
            if self._at_end:
                if row < self._base + len(self._data):
                    yield bytes(self._data[row - self._base :])
                self._row = self._base + len(self._data)
                return
            self._read_more()
            size = len(self._terminator)
            more = bytes(self._data[row - self._base :])
            found = more.find(self._terminator)
            if found >= 0:
                yield more[:found]
                self._row = self._search = row + found + size
                return
            self._search = max(self._search, self._base + len(self._data) - size + 1)

    def _count(self, rows_given: int) -> None:
        if self._number is not None:
            self._number += rows_given
