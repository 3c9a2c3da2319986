"""Packed rows: exactly N ids, every document in them with its borders, nothing lost uncounted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.encoding.pack_rows import Packer
from pipelines.shards.token_rows import RowMaker, TokenRows
from schemas.packed_shards import packed_shard_schema
from schemas.token_shards import token_shard_schema
from tests.pipelines.document_pieces import pieces

BOS, EOS, PAD = 997, 998, 999
# Bytes of each id, so that no sum of others looks the same.
LENGTHS = np.arange(1000, dtype=np.int64) % 7 + 1

Documents = list[list[list[int]]]


@dataclass(frozen=True)
class Settings:
    pack: int
    pack_mode: str
    pack_tail: str = "pad"
    pack_window: int = 1 << 24
    bos: int | None = None
    eos: int | None = None
    pad: int | None = PAD


def token_rows(documents: Documents, how: Settings, borders: list[int]) -> list[TokenRows]:
    """Documents as lists of pieces, as rows in batches with some borders."""
    batch, ids = pieces(documents)
    maker = RowMaker(
        token_shard_schema(pa.uint16()), ["a.txt"], bos=how.bos, eos=how.eos, max_row_tokens=1 << 30
    )
    places = sorted({0, len(ids), *(border % (len(ids) + 1) for border in borders)})
    return [
        maker.make(batch.slice(start, end - start), ids.slice(start, end - start))
        for start, end in itertools.pairwise(places)
    ]


def pack(
    documents: Documents, how: Settings, borders: list[int] | None = None
) -> tuple[list[dict[str, Any]], Packer, list[int]]:
    """The packed rows, the packer, and the bytes of text of each row."""
    packer = Packer(packed_shard_schema(pa.uint16(), how.pack), how, LENGTHS)
    batches = [
        packed for rows in token_rows(documents, how, borders or []) for packed in packer.add(rows)
    ]
    batches += packer.finish()
    for packed in batches:
        packed.batch.validate(full=True)
    rows = [row for packed in batches for row in packed.batch.to_pylist()]
    return rows, packer, [int(size) for packed in batches for size in packed.text_bytes]


def marked(documents: Documents, how: Settings) -> list[list[int]]:
    before = [] if how.bos is None else [how.bos]
    after = [] if how.eos is None else [how.eos]
    return [
        [*before, *(token for piece in document for token in piece), *after]
        for document in documents
    ]


def segments(row: dict[str, Any]) -> list[dict[str, Any]]:
    found, start = [], 0
    for number, length in enumerate(row["lengths"]):
        segment = {name: row[name][number] for name in row if name != "input_ids"}
        found.append({**segment, "ids": row["input_ids"][start : start + length]})
        start += length
    assert set(row["input_ids"][start:]) <= {PAD}
    return found


def put_together(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Documents from their segments, by position; borders are checked on the way."""
    pieces: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for segment in segments(row):
            pieces.setdefault(segment["document_ids"], []).append(segment)
    documents = {}
    for name, found in pieces.items():
        found.sort(key=lambda segment: (segment["positions"], segment["is_last"]))
        ids: list[int] = []
        for segment in found:
            assert segment["positions"] == len(ids)
            ids += segment["ids"]
        assert [segment["is_first"] for segment in found] == [True] + [False] * (len(found) - 1)
        assert [segment["is_last"] for segment in found] == [False] * (len(found) - 1) + [True]
        documents[name] = ids
    return documents


DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(0, 900), max_size=12), min_size=1, max_size=4),
    min_size=1,
    max_size=12,
)
BORDERS = st.lists(st.integers(0, 60), max_size=3)
MARKS = st.sampled_from([None, BOS]), st.sampled_from([None, EOS])


@settings(max_examples=100, deadline=None)
@given(
    DOCUMENTS,
    BORDERS,
    st.integers(1, 9),
    st.sampled_from(["concat", "best-fit", "pad"]),
    st.integers(1, 40),
    *MARKS,
)
def test_every_document_is_in_the_rows_whatever_the_batches(
    documents: Documents,
    borders: list[int],
    size: int,
    mode: str,
    window: int,
    bos: int | None,
    eos: int | None,
) -> None:
    how = Settings(size, mode, pack_window=window, bos=bos, eos=eos)
    rows, packer, sizes = pack(documents, how, borders)
    expected = marked(documents, how)
    assert put_together(rows) == {f"0:{n}": ids for n, ids in enumerate(expected)}
    tokens = sum(map(len, expected))
    assert {len(row["input_ids"]) for row in rows} <= {size}
    assert packer.padding == len(rows) * size - tokens
    assert (packer.dropped_tokens, packer.dropped_documents) == (0, 0)
    text = [token for ids in expected for token in ids if token not in {BOS, EOS}]
    assert sum(sizes) == int(LENGTHS[text].sum())
    assert pack(documents, how)[0] == rows


@settings(deadline=None)
@given(DOCUMENTS, st.integers(1, 9), *MARKS)
def test_concatenated_rows_are_the_stream(
    documents: Documents, size: int, bos: int | None, eos: int | None
) -> None:
    how = Settings(size, "concat", pack_tail="drop", bos=bos, eos=eos, pad=None)
    rows, packer, _ = pack(documents, how)
    stream = [token for ids in marked(documents, how) for token in ids]
    full = len(stream) // size * size
    assert [token for row in rows for token in row["input_ids"]] == stream[:full]
    assert packer.padding == 0
    assert packer.dropped_tokens == len(stream) - full
    ended = sum(sum(row["is_last"]) for row in rows)
    assert packer.dropped_documents == len(documents) - ended
    # A document has one segment in a row.
    for row in rows:
        assert len(set(row["document_ids"])) == len(row["document_ids"])


@settings(deadline=None)
@given(DOCUMENTS, st.integers(1, 9), st.integers(1, 200))
def test_best_fit_cuts_no_document_that_fits_a_row(
    documents: Documents, size: int, window: int
) -> None:
    how = Settings(size, "best-fit", pack_window=window)
    rows, _, _ = pack(documents, how)
    count: dict[str, int] = {}
    for row in rows:
        for segment in segments(row):
            assert segment["positions"] % size == 0
            count[segment["document_ids"]] = count.get(segment["document_ids"], 0) + 1
        # Documents of a row stand in their order.
        numbers = [int(name.split(":")[1]) for name in row["document_ids"]]
        assert numbers == sorted(numbers)
    for number, ids in enumerate(marked(documents, how)):
        # The last piece of a document in pieces may be empty.
        assert count[f"0:{number}"] <= max(1, -(-len(ids) // size)) + 1


def test_a_document_a_row_with_padding_behind_it() -> None:
    how = Settings(4, "pad", eos=EOS)
    rows, packer, _ = pack([[[1, 2, 3, 4, 5]], [[]], [[6]]], how)
    assert [row["input_ids"] for row in rows] == [
        [1, 2, 3, 4],
        [5, EOS, PAD, PAD],
        [EOS, PAD, PAD, PAD],
        [6, EOS, PAD, PAD],
    ]
    assert [row["positions"] for row in rows] == [[0], [4], [0], [0]]
    assert packer.padding == 7


def test_the_drawing_of_the_schema() -> None:
    a, b, c, d = ([[token] * size] for token, size in ((1, 3), (2, 2), (3, 5), (4, 1)))
    rows, _, _ = pack([a, b, c, d], Settings(8, "concat"))
    assert [row["input_ids"] for row in rows] == [
        [1, 1, 1, 2, 2, 3, 3, 3],
        [3, 3, 4, PAD, PAD, PAD, PAD, PAD],
    ]
    assert [row["lengths"] for row in rows] == [[3, 2, 3], [2, 1]]
    assert [row["positions"] for row in rows] == [[0, 0, 0], [3, 0]]
    assert [row["is_first"] for row in rows] == [[True, True, True], [False, True]]
    assert [row["is_last"] for row in rows] == [[True, True, False], [True, True]]


@pytest.mark.parametrize("mode", ["concat", "best-fit", "pad"])
def test_a_document_from_another_unit_starts_where_this_one_takes_it_up(mode: str) -> None:
    how = Settings(4, mode)
    rows = token_rows([[[1], [2, 3, 4, 5, 6]], [[7]]], how, [1])
    packer = Packer(packed_shard_schema(pa.uint16(), 4), how, LENGTHS)
    packed = [row for each in rows[1:] for row in packer.add(each)] + list(packer.finish())
    first = packed[0].batch.to_pylist()[0]
    assert first["input_ids"] == [2, 3, 4, 5]
    assert (first["positions"], first["is_first"], first["is_last"]) == ([0], [False], [False])


@pytest.mark.parametrize("mode", ["concat", "best-fit", "pad"])
def test_what_goes_on_from_elsewhere_is_not_taken_for_the_document_before(mode: str) -> None:
    """After a shuffle, the rest of a document from another unit may follow any other."""
    how = Settings(8, mode)
    first, rest = token_rows([[[1, 2]], [[3], [4, 5]]], how, [2])
    packer = Packer(packed_shard_schema(pa.uint16(), 8), how, LENGTHS)
    packed = [*packer.add(first.slice(0, 1)), *packer.add(rest), *packer.finish()]
    found = [
        segment for each in packed for row in each.batch.to_pylist() for segment in segments(row)
    ]
    assert [(each["document_ids"], each["ids"], each["positions"]) for each in found] == [
        ("0:0", [1, 2], 0),
        ("0:1", [4, 5], 0),
    ]


def test_no_rows_make_no_rows() -> None:
    packer = Packer(packed_shard_schema(pa.uint16(), 4), Settings(4, "best-fit"), LENGTHS)
    assert list(packer.finish()) == []
