"""Rows in the order of their keys, in bounded batches, those of a document together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.document_keys import DocumentKeys
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange, Unit
from pipelines.encoding import shuffle_rows
from pipelines.encoding.shuffle_rows import ShuffleWindow, in_order
from pipelines.shards.token_rows import TokenRows
from schemas.token_shards import token_shard_schema

SCHEMA = token_shard_schema(pa.uint16())
UNIT = Unit(0, (FileRange(InputFile(0, "/a", 9, "x", "text", "none", "a"), 0, 9),))


def rows(first: int, sizes: list[int]) -> TokenRows:
    """Documents of so many ids and bytes, numbered from `first`."""
    count = len(sizes)
    columns = [
        pa.array([[number % 1000] * size for number, size in enumerate(sizes, first)]),
        pa.array([f"0:{number}" for number in range(first, first + count)], pa.string()),
        pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["a"])),
        pa.array(range(first, first + count), pa.int64()),
        pa.array([0] * count, pa.int32()),
        pa.array([True] * count, pa.bool_()),
    ]
    columns[0] = columns[0].cast(SCHEMA.field("input_ids").type)
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return TokenRows(batch, np.array(sizes, np.int64))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
    st.integers(1, 400),
)
def test_rows_of_several_batches_are_put_in_any_order(
    sizes: list[list[int]], random: np.random.Generator, block: int
) -> None:
    starts = np.cumsum([0, *map(len, sizes)])
    batches = [rows(int(start), each) for start, each in zip(starts, sizes, strict=False)]
    order = list(range(int(starts[-1])))
    random.shuffle(order)  # type: ignore[arg-type]
    before = shuffle_rows._BLOCK_BYTES
    shuffle_rows._BLOCK_BYTES = block
    try:
        found = list(in_order(batches, np.array(order)))
    finally:
        shuffle_rows._BLOCK_BYTES = before
    names = [name for each in found for name in each.batch["document_id"].to_pylist()]
    assert names == [f"0:{number}" for number in order]
    flat = [size for each in sizes for size in each]
    assert [n for each in found for n in each.text_bytes.tolist()] == [flat[i] for i in order]
    ids = [row for each in found for row in each.batch["input_ids"].to_pylist()]
    assert ids == [[number] * flat[number] for number in order]


@settings(deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 2000))
def test_windows_depend_on_the_rows_alone_and_lose_none(sizes: list[int], room: int) -> None:
    def shuffle(split: int) -> list[str]:
        window = ShuffleWindow(DocumentKeys(UNIT, 1), room)
        batches = [rows(0, sizes[:split]), rows(split, sizes[split:])]
        done = [each for batch in batches for each in window.add(batch)] + list(window.finish())
        return [name for each in done for name in each.batch["document_id"].to_pylist()]

    found = shuffle(len(sizes) // 2)
    assert sorted(found) == sorted(f"0:{number}" for number in range(len(sizes)))
    assert found == shuffle(0) == shuffle(len(sizes) // 3)


def test_the_order_is_that_of_the_keys() -> None:
    batch = rows(0, [1] * 200)
    keys = DocumentKeys(UNIT, 1).of(batch.batch)
    window = ShuffleWindow(DocumentKeys(UNIT, 1), 1 << 20)
    assert list(window.add(batch)) == []
    (only,) = window.finish()
    order = np.argsort(keys, kind="stable")
    assert only.batch["byte_start"].to_pylist() == order.tolist()
    assert order.tolist() != sorted(order)


@pytest.mark.parametrize("room", [1, 600, 660, 700, 10_000])
def test_a_window_never_closes_inside_a_piece(room: int) -> None:
    """The rows of a piece count their text at the last of them."""
    batch = rows(0, [1] * 8 + [0, 0, 0, 6, 1])
    columns = batch.batch.columns
    columns[1] = pa.array([*(f"0:{n}" for n in range(8)), *["0:8"] * 4, "0:12"])
    columns[3] = pa.array([*range(8), 8, 8, 8, 8, 12], pa.int64())
    columns[4] = pa.array([0] * 8 + [0, 1, 2, 3, 0], pa.int32())
    columns[5] = pa.array([True] * 8 + [False, False, False, True, True])
    piece = TokenRows(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), batch.text_bytes)
    for seed in range(20):
        window = ShuffleWindow(DocumentKeys(UNIT, seed), room)
        done = [*window.add(piece), *window.finish()]
        places = [n for each in done for n in each.batch["part"].to_pylist()]
        names = [n for each in done for n in each.batch["document_id"].to_pylist()]
        first = names.index("0:8")
        assert names[first : first + 4] == ["0:8"] * 4
        assert places[first : first + 4] == [0, 1, 2, 3]
