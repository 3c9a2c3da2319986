"""What shards send is added exactly, in any grouping, and refused where it does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.rounds.bucket_sums import add_pair_tables
from bpe.rounds.pair_ranking import PAIR_SCHEMA
from bpe.tokenizer import Tokenizer
from pipelines.runners.worker_errors import WorkerError
from pipelines.training.count_tables import from_ipc
from pipelines.training.rounds.table_sums import AddTables, pack_table

Run = Callable[..., Any]
Rows = list[tuple[int, int, int]]


def table(rows: Rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([list(column) for column in columns], schema=PAIR_SCHEMA)


rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3_000_000_000)), max_size=5
)


@settings(max_examples=50, deadline=None)
@given(groups=st.lists(st.lists(rows, max_size=3), min_size=1, max_size=3))
def test_tables_add_up_whatever_the_grouping(groups: list[list[Rows]]) -> None:
    adder = AddTables(add_pair_tables)
    accumulators = []
    expected: Counter[tuple[int, int]] = Counter()
    for group in groups:
        accumulator = adder.create_accumulator()
        for each in group:
            accumulator = adder.add_input(accumulator, (pack_table(table(each)), b""))
            for left, right, count in each:
                expected[left, right] += count
        accumulators.append(accumulator)
    sent = adder.extract_output(adder.merge_accumulators(accumulators))
    found = add_pair_tables([from_ipc(each) for each in sent.tables]).to_pylist()
    assert [(row["left"], row["right"], row["count"]) for row in found] == [
        (*pair, expected[pair]) for pair in sorted(expected)
    ]
    assert (sent.size > 0) == any(groups)


def test_a_sum_beyond_64_bits_is_refused() -> None:
    adder = AddTables(add_pair_tables)
    accumulator = adder.create_accumulator()
    for _ in range(3):
        accumulator = adder.add_input(accumulator, (pack_table(table([(1, 2, 2**62)])), b""))
    with pytest.raises(WorkerError, match="exceeds"):
        adder.extract_output(accumulator)


def test_counts_of_billions_keep_their_order(tmp_path: Path, run: Run) -> None:
    """Two pairs of 3e9 each, and one that is rarer by one: no wrap, and the exact order."""
    billions = 3_000_000_000
    words = {b"ab": billions, b"cd": billions, b"ef": billions - 1, b"ghab": 7, b"cdcd": 5}
    counts = pa.table(
        {"word": pa.array(list(words), pa.large_binary()), "count": list(words.values())}
    )
    path = tmp_path / "counts.arrow"
    with pa.ipc.new_file(str(path), counts.schema) as writer:
        writer.write_table(counts)
    command = ("train", "--from-counts", path, "--pretokenizer", "gpt2", "--vocab-size", 261)
    rounds = ("--engine", "rounds", "--state-shards", 3, "--segment-budget", "10B")
    done = run(*command, *rounds, "--output", tmp_path / "rounds")
    assert done.code == 0, done.err
    made = Tokenizer.load(tmp_path / "rounds")
    assert made.merges[:3] == [(b"c", b"d"), (b"a", b"b"), (b"e", b"f")]
    assert run(*command, "--output", tmp_path / "driver").code == 0
    assert made.digest == Tokenizer.load(tmp_path / "driver").digest
