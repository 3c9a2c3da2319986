"""Rows of token shards: marks, capped rows, part numbers, one dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.shards.token_rows import RowMaker, TokenRows
from schemas.token_shards import token_shard_schema
from tests.pipelines.document_pieces import pieces

SCHEMA = token_shard_schema(pa.uint16())
BOS, EOS = 998, 999


def make(
    documents: list[list[list[int]]],
    *,
    bos: int | None = None,
    eos: int | None = None,
    cap: int = 1000,
    split_at: int = 0,
) -> list[TokenRows]:
    maker = RowMaker(SCHEMA, ["a.txt", "b.txt"], bos=bos, eos=eos, max_row_tokens=cap)
    batch, ids = pieces(documents)
    parts = [(0, split_at), (split_at, batch.num_rows - split_at)]
    return [maker.make(batch.slice(*part), ids.slice(*part)) for part in parts]


def test_marks_stand_at_the_ends_of_documents_not_of_pieces() -> None:
    (_, rows) = make([[[1, 2], [3]], [[]], [[4]]], bos=BOS, eos=EOS)
    assert rows.batch["input_ids"].to_pylist() == [
        [BOS, 1, 2],
        [3, EOS],
        [BOS, EOS],
        [BOS, 4, EOS],
    ]
    assert rows.batch["is_last"].to_pylist() == [False, True, True, True]
    assert rows.batch.schema == SCHEMA


def test_a_long_document_continues_in_the_next_row_with_the_next_part() -> None:
    (_, rows) = make([[[1, 2, 3, 4, 5], [6]], [[7]]], eos=EOS, cap=2)
    assert rows.batch["input_ids"].to_pylist() == [[1, 2], [3, 4], [5], [6, EOS], [7, EOS]]
    assert rows.batch["part"].to_pylist() == [0, 1, 2, 3, 0]
    assert rows.batch["is_last"].to_pylist() == [False, False, False, True, True]
    assert rows.text_bytes.tolist() == [0, 0, 5, 1, 1]


def test_the_dictionary_of_sources_is_the_same_in_every_batch() -> None:
    first, second = make([[[1]], [[2]]], split_at=1)
    for rows in (first, second):
        assert rows.batch["source"].dictionary.to_pylist() == ["a.txt", "b.txt"]


DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(0, 900), max_size=7), min_size=1, max_size=4),
    min_size=1,
    max_size=5,
)


@given(
    DOCUMENTS,
    st.sampled_from([None, BOS]),
    st.sampled_from([None, EOS]),
    st.integers(1, 5),
    st.integers(0, 20),
)
def test_rows_put_together_are_the_documents_however_batches_fall(
    documents: list[list[list[int]]], bos: int | None, eos: int | None, cap: int, split: int
) -> None:
    count = sum(map(len, documents))
    batches = make(documents, bos=bos, eos=eos, cap=cap, split_at=min(split, count))
    found: dict[str, list[int]] = {}
    last_part: dict[str, int] = {}
    for rows in batches:
        for row in rows.batch.to_pylist():
            assert len(row["input_ids"]) <= cap
            assert row["part"] > last_part.get(row["document_id"], -1)
            last_part[row["document_id"]] = row["part"]
            found.setdefault(row["document_id"], []).extend(row["input_ids"])
    expected = [
        [
            *([] if bos is None else [bos]),
            *(token for piece in each for token in piece),
            *([] if eos is None else [eos]),
        ]
        for each in documents
    ]
    assert list(found.values()) == expected
    total = sum(int(np.sum(rows.text_bytes)) for rows in batches)
    assert total == sum(len(piece) for each in documents for piece in each)
