"""Takes fields out of rows of delimiter-separated text, by NumPy, a column of a block at a time.

Rows whose quotes all stand where they should are taken apart by parity, as in `csv_rows`; the
others one by one, and refused if what they say is not certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.corpus.csv.csv_rows import quotes_in_place
from pipelines.corpus.row_blocks import RowBlock

__all__ = ["FieldError", "Fields", "fields_of_row", "find_fields", "row_ends"]

_Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_QUOTE, _RETURN = 34, 13


class FieldError(Exception):
    """What is wrong with a row: a short name to count by, and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Fields:
    """One column of some rows.

    Attributes:
        data: bytes that hold the fields, without the quotes around them and with every quote in
            them once.
        starts, ends: int64, per row, in `data`.
    """

    data: bytes | memoryview
    starts: _Positions
    ends: _Positions


def find_fields(
    block: RowBlock, columns: list[int], width: int, delimiter: bytes
) -> tuple[list[Fields], dict[int, FieldError]]:
    """Take columns out of rows.

    Args:
        block: the rows, as `csv_rows` gives them, without blank ones.
        columns: which, from 0.
        width: number of columns that every row has.
        delimiter: one byte.

    Returns:
        The fields of each column, and the rows that cannot be used, by index, whose fields mean
        nothing.
    """
    line_ends = row_ends(block)
    values = np.frombuffer(block.data, np.uint8)
    first, last = int(block.starts[0]), int(block.ends[-1])
    quotes = np.flatnonzero(values[first:last] == _QUOTE) + first
    delimiters = np.flatnonzero(values[first:last] == delimiter[0]) + first
    # Parity starts anew with each row, whatever was wrong with the one before.
    first_quotes = np.searchsorted(quotes, block.starts)
    row_of_quote = np.searchsorted(block.starts, quotes, side="right") - 1
    is_opening = (np.arange(len(quotes)) - first_quotes[row_of_quote]) % 2 == 0
    in_place = quotes_in_place(values, quotes, is_opening, block.starts[row_of_quote], delimiter)
    odd = (np.searchsorted(quotes, block.ends) - first_quotes) % 2 == 1
    walked = np.union1d(np.flatnonzero(odd), row_of_quote[~in_place])

    row_of = np.searchsorted(block.starts, delimiters, side="right") - 1
    is_quoted = (np.searchsorted(quotes, delimiters) - first_quotes[row_of]) % 2 == 1
    delimiters = delimiters[~is_quoted]
    borders = np.searchsorted(delimiters, block.starts)
    counts = np.searchsorted(delimiters, block.ends) - borders
    starts, ends = _spans(block.starts, line_ends, delimiters, borders, columns, counts, width)

    errors = {
        int(row): _wrong_width(int(counts[row]) + 1, width)
        for row in np.flatnonzero(counts != width - 1)
    }
    is_plain = np.zeros((len(columns), len(line_ends)), np.bool_)
    for row in walked.tolist():
        errors.pop(row, None)
        first = int(block.starts[row])
        try:
            spans = _spans_of_row(bytes(block.data[first : int(line_ends[row])]), delimiter, width)
        except FieldError as error:
            errors[row] = error
            continue
        for place, column in enumerate(columns):
            start, end, quoted = spans[column]
            starts[place][row], ends[place][row] = first + start, first + end
            is_plain[place][row] = not quoted
    doubled = quotes[~is_opening & (values[np.minimum(quotes + 1, len(values) - 1)] == _QUOTE)]
    found = [
        _unquote(block.data, starts[place], ends[place], is_plain[place], doubled)
        for place in range(len(columns))
    ]
    return found, errors


def _spans_of_row(raw: bytes, delimiter: bytes, width: int) -> list[tuple[int, int, bool]]:
    """As `_field_spans`, of a row that should have so many columns."""
    spans = _field_spans(raw, delimiter)
    if len(spans) != width:
        raise _wrong_width(len(spans), width)
    return spans


def fields_of_row(raw: bytes, delimiter: bytes) -> list[bytes]:
    """All fields of one row, without quotes around them.

    Raises:
        FieldError: quotes are not as they should be.
    """
    return [
        raw[start + 1 : end - 1].replace(b'""', b'"') if quoted else raw[start:end]
        for start, end, quoted in _field_spans(raw, delimiter)
    ]


def _field_spans(raw: bytes, delimiter: bytes) -> list[tuple[int, int, bool]]:
    """Start and end of each field of a row, and whether it stands in quotes."""
    spans = []
    start = 0
    while True:
        end = start
        quoted = raw[start : start + 1] == b'"'
        if quoted:
            end = raw.find(b'"', start + 1) + 1
            while end and raw[end : end + 1] == b'"':
                end = raw.find(b'"', end + 1) + 1
            if not end:
                raise FieldError(
                    "unterminated_quote",
                    f"the quote at byte {start} of the row is never closed, so that the row goes "
                    f"on to the end of the file; close it, or double the quotes in a quoted field",
                )
            if end < len(raw) and raw[end : end + 1] != delimiter:
                raise FieldError(
                    "bad_quotes",
                    f"a field goes on after its closing quote, at byte {end} of the row; double "
                    f"the quotes in a quoted field",
                )
        found = raw.find(delimiter, end)
        spans.append((start, len(raw) if found < 0 else found, quoted))
        if found < 0:
            return spans
        start = found + 1


def _wrong_width(found: int, width: int) -> FieldError:
    return FieldError(
        "wrong_columns",
        f"the row has {found} column{'' if found == 1 else 's'}, and the first row {width}; "
        f"mend the row, and quote fields that hold delimiters or line feeds",
    )


def row_ends(block: RowBlock) -> _Positions:
    r"""Ends of rows, less the `\r` of a `\r\n`."""
    values = np.frombuffer(block.data, np.uint8)
    is_pair = (values[block.ends - 1] == _RETURN) & (block.ends > block.starts)
    if block.last_is_cut:
        is_pair[-1] = False
    ends: _Positions = block.ends - is_pair
    return ends


def _spans(
    row_starts: _Positions,
    row_ends: _Positions,
    delimiters: _Positions,
    borders: _Positions,
    columns: list[int],
    counts: _Positions,
    width: int,
) -> tuple[list[_Positions], list[_Positions]]:
    """Starts and ends of the fields of some columns; of rows with another width, the row's start.

    Args:
        row_starts: of the rows.
        row_ends: of the rows.
        delimiters: positions of those that are not quoted.
        borders: per row, index of its first delimiter.
        columns: which.
        counts: delimiters per row.
        width: columns per row.
    """
    starts, ends = [], []
    is_whole = counts == width - 1
    # Where a row has too few, the next row's may be looked at, and must exist.
    padded = np.concatenate([delimiters, np.zeros(width, np.int64)])
    for column in columns:
        start = row_starts if column == 0 else padded[borders + column - 1] + 1
        end = row_ends if column == width - 1 else padded[borders + column]
        starts.append(np.where(is_whole, start, row_starts))
        ends.append(np.where(is_whole, end, row_starts))
    return starts, ends


def _unquote(
    data: memoryview, starts: _Positions, ends: _Positions, is_plain: _Flags, doubled: _Positions
) -> Fields:
    """Fields without the quotes around them, and with each doubled quote in them once.

    Args:
        data: of the block.
        starts: of the fields as they stand there.
        ends: of the fields.
        is_plain: fields that hold quotes as characters of their own.
        doubled: positions of quotes that others follow, ascending.
    """
    values = np.frombuffer(data, np.uint8)
    quoted = (ends > starts) & ~is_plain
    quoted &= values[np.minimum(starts, len(values) - 1)] == _QUOTE
    starts, ends = starts + quoted, ends - quoted
    # A doubled quote belongs to the last field that starts before it, if it is in it at all.
    order = np.argsort(starts, kind="stable")
    field = np.searchsorted(starts[order], doubled, side="right") - 1
    inside = field >= 0
    field = order[np.maximum(field, 0)]
    dropped = doubled[inside & quoted[field] & (doubled < ends[field])]
    if not len(dropped):
        return Fields(data, starts, ends)
    shorter = np.delete(values, dropped).tobytes()
    return Fields(
        shorter,
        starts - np.searchsorted(dropped, starts),
        ends - np.searchsorted(dropped, ends),
    )
