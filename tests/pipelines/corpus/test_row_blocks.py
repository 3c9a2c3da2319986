"""Rows: the same whatever the range, the size of reads, and the terminator's overlaps."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus import row_blocks
from pipelines.corpus.row_blocks import LongRow, find_terminators, first_match_position, rows

TERMINATORS = [b"\n", b"ab", b"\n\n", b"aba", b"aa", b"abab", b"aabaa"]


class Source:
    """Bytes that are read like a stream."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)
        self.position = 0

    def seek(self, position: int) -> None:
        self.position = self._file.seek(position)

    def read(self, size: int) -> bytes:
        return self.read_behind(b"", size)

    def read_behind(self, data: bytes | memoryview, size: int) -> bytes:
        more = self._file.read(size)
        self.position += len(more)
        return bytes(data) + more


def rows_one_by_one(data: bytes, terminator: bytes) -> list[tuple[int, bytes]]:
    """What the rows are: the plain definition."""
    found = []
    start = 0
    while start < len(data):
        end = data.find(terminator, start)
        if end < 0:
            found.append((start, data[start:]))
            break
        found.append((start, data[start:end]))
        start = end + len(terminator)
    return found


def rows_of_range(
    data: bytes, terminator: bytes, start: int, end: int | None, limit: int
) -> list[tuple[int, bytes]]:
    source = Source(data)

    def read_at(position: int, size: int) -> bytes:
        source.seek(position)
        return source.read(size)

    if start:
        before = max(0, start - len(terminator))
        source.seek(first_match_position(read_at, terminator, before))
    found = []
    number = 1
    for block in rows(source, terminator, start=start, end=end, limit=limit):
        assert block.number == (number if start == 0 else None)
        if isinstance(block, LongRow):
            row = b"".join(block.chunks)
            assert len(row) > limit
            found.append((block.start, row))
            number += 1
            continue
        places = list(zip(block.starts.tolist(), block.ends.tolist(), strict=True))
        assert places
        assert all(last - first <= limit for first, last in places)
        found += [(block.base + first, block.data[first:last]) for first, last in places]
        assert block.last_is_cut == (block.base + places[-1][1] == len(data))
        number += len(places)
    return found


texts = st.lists(st.sampled_from(b"ab\n"), max_size=40).map(bytes)


@settings(max_examples=300)
@given(
    texts, st.sampled_from(TERMINATORS), st.integers(1, 45), st.integers(0, 9), st.integers(1, 9)
)
def test_rows_do_not_depend_on_ranges(
    data: bytes, terminator: bytes, range_bytes: int, limit: int, read_bytes: int
) -> None:
    expected = rows_one_by_one(data, terminator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "READ_BYTES", read_bytes)
        patch.setattr(row_blocks, "LOOK_AHEAD_BYTES", read_bytes)
        found = []
        for start in range(0, len(data), range_bytes):
            end = min(start + range_bytes, len(data))
            in_range = rows_of_range(data, terminator, start, end, limit)
            assert all(start <= position < end for position, _ in in_range)
            found += in_range
        assert found == expected
        assert rows_of_range(data, terminator, 0, None, limit) == expected


def test_every_short_text_at_every_cut() -> None:
    for terminator in (b"b", b"bb", b"aba"):
        for code in range(2**8):
            data = bytes(b"ab"[code >> place & 1] for place in range(8))
            expected = rows_one_by_one(data, terminator)
            for cut in range(1, 8):
                left = rows_of_range(data, terminator, 0, cut, 100)
                assert left + rows_of_range(data, terminator, cut, 8, 100) == expected


@given(texts, st.sampled_from(TERMINATORS), st.integers(0, 5))
def test_terminators_are_leftmost_and_do_not_overlap(
    data: bytes, terminator: bytes, start: int
) -> None:
    expected = []
    place = data.find(terminator, start)
    while place >= 0:
        expected.append(place)
        place = data.find(terminator, place + len(terminator))
    assert find_terminators(data, terminator, start).tolist() == expected


def test_a_range_in_a_long_row_reads_nothing_beyond_itself() -> None:
    source = Source(b"x" * 100_000)
    source.seek(999)
    assert list(rows(source, b"\n", start=1000, end=2000, limit=10)) == []
    assert source.position <= 2000


def test_a_long_row_that_nobody_reads_is_passed_over() -> None:
    source = Source(b"short\n" + b"x" * 50 + b"\nlast")
    kinds = [type(block).__name__ for block in rows(source, b"\n", start=0, end=None, limit=10)]
    assert kinds == ["RowBlock", "LongRow", "RowBlock"]
