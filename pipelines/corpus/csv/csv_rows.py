"""Finds the rows of delimiter-separated text (RFC 4180), by NumPy, a block at a time.

The libraries at hand tell neither at which byte a row starts nor how long it is before it is in
memory, so rows are found here. Quotes are what makes that hard: a quote at the start of a field
opens it for delimiters and line feeds, two quotes in it stand for one, and a quote anywhere else
in a field is just a character. Where all quotes come in the pairs that the rule allows, parity
tells what is quoted; rows in which they do not are walked one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pipelines.corpus.row_blocks import LongRow, RowBlock, RowFinder, RowSource
from pipelines.corpus.text.read_text import BOM

__all__ = ["csv_rows", "find_row_ends", "quotes_in_place"]

_Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_QUOTE, _LINE_FEED, _RETURN = 34, 10, 13


def csv_rows(
    source: RowSource, delimiter: bytes, limit: int, end: int | None = None
) -> Iterator[RowBlock | LongRow]:
    """The rows of a file, the row of names too; blank lines are rows without bytes.

    The first row starts after a byte order mark.

    Args:
        source: stands at the file's start.
        delimiter: one byte.
        limit: rows with more bytes come as `LongRow`.
        end: rows that start here or after are left out; None for all.
    """
    return _CsvRowFinder(source, delimiter, limit, end).rows()


class _CsvRowFinder(RowFinder):
    """Ends rows at line feeds that are not quoted."""

    def __init__(self, source: RowSource, delimiter: bytes, limit: int, end: int | None) -> None:
        super().__init__(source, b"\n", 0, end, limit)
        self._delimiter = delimiter

    def _find(self) -> _Positions:
        if self._row == 0 and self._data[: len(BOM)] == BOM:
            self._row = len(BOM)
        # The current row is looked through from its start again. It grows with every read, so
        # that this is linear in its length.
        row = self._base if self._row is None else self._row
        found = find_row_ends(self._data, row - self._base, self._delimiter)
        self._search = self._base + len(self._data)
        return found

    def _rest_of_row(self) -> Iterator[bytes]:
        walk = _RowWalk(self._delimiter)
        while True:
            row = (self._row or 0) - self._base
            data = bytes(self._data)
            end = walk.find_end(data, row)
            yield data[row : len(data) if end is None else end]
            after = len(self._data) if end is None else end + 1
            self._row = self._search = self._base + after
            if end is not None or self._at_end:
                return
            self._read_more()


class _RowWalk:
    """Goes along one row, which may come in pieces, to its end."""

    def __init__(self, delimiter: bytes) -> None:
        self._border = _border(delimiter)
        self._state = "start"

    def find_end(self, data: bytes, position: int) -> int | None:
        """Position of the line feed that ends the row; None if that is not in these bytes.

        Args:
            data: bytes of the row.
            position: where to go on.
        """
        while position < len(data):
            if self._state == "quoted":
                position = data.find(b'"', position) + 1
                if not position:
                    return None
                self._state = "closing"
            elif self._state in {"start", "closing"} and data[position] == _QUOTE:
                # Two quotes in a quoted field stand for one.
                self._state = "quoted"
                position += 1
            else:
                border = self._border.search(data, position)
                if border is None:
                    self._state = "plain"
                    return None
                self._state = "start"
                if data[border.start()] == _LINE_FEED:
                    return border.start()
                position = border.end()
        return None


@lru_cache(maxsize=8)
def _border(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[" + re.escape(delimiter) + b"\n]")


def find_row_ends(data: bytes | memoryview, start: int, delimiter: bytes) -> _Positions:
    """Positions of the line feeds that end rows.

    Args:
        data: where to look.
        start: of a row.
        delimiter: one byte.

    Returns:
        int64, ascending.
    """
    values = np.frombuffer(data, np.uint8)
    line_feeds = np.flatnonzero(values[start:] == _LINE_FEED) + start
    quotes = np.flatnonzero(values[start:] == _QUOTE) + start
    if not len(quotes) or not len(line_feeds):
        return line_feeds
    is_opening = np.arange(len(quotes)) % 2 == 0
    good = quotes_in_place(values, quotes, is_opening, start, delimiter)
    ends: _Positions = line_feeds[np.searchsorted(quotes, line_feeds) % 2 == 0]
    if good.all():
        return ends
    # Up to the first quote out of place, parity holds.
    first_bad = quotes[np.argmin(good)]
    ends = ends[: np.searchsorted(ends, first_bad)]
    row = int(ends[-1]) + 1 if len(ends) else start
    walked = []
    raw = bytes(data)
    while (end := _RowWalk(delimiter).find_end(raw, row)) is not None:
        walked.append(end)
        row = end + 1
    return np.concatenate([ends, np.array(walked, np.int64)])


def quotes_in_place(
    values: npt.NDArray[np.uint8],
    quotes: _Positions,
    is_opening: _Flags,
    start: int | _Positions,
    delimiter: bytes,
) -> _Flags:
    """Whether quotes stand where the rule has them.

    An opening quote starts a field, or is the second of a pair; a closing one ends a field, or is
    the first of a pair.

    Args:
        values: the bytes.
        quotes: positions of quotes, ascending.
        is_opening: per quote, by parity; the others close.
        start: of the row, or of the first of several.
        delimiter: one byte.
    """
    before = values[quotes - 1]
    after = values[np.minimum(quotes + 1, len(values) - 1)]
    second_after = values[np.minimum(quotes + 2, len(values) - 1)]
    starts_field = (before == delimiter[0]) | (before == _LINE_FEED) | (quotes == start)
    is_second = np.zeros(len(quotes), np.bool_)
    is_second[1:] = np.diff(quotes) == 1
    ends_field = (after == delimiter[0]) | (after == _LINE_FEED)
    ends_field |= (after == _RETURN) & ((second_after == _LINE_FEED) | (quotes + 2 >= len(values)))
    ends_field |= quotes + 1 >= len(values)
    in_place: _Flags = np.where(
        is_opening, starts_field | is_second, ends_field | (after == _QUOTE)
    )
    return in_place
