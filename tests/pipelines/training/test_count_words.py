"""Counting as Beam transforms: sums, first positions, buckets, overflow."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.test_pipeline import TestPipeline as BeamPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.count_sums import add_tables
from bpe.counting import count_pretokens
from bpe.errors import CountTableError, SettingsError, VocabularyError
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.runners.worker_errors import WorkerError
from pipelines.training.count_artifact import finish_counts
from pipelines.training.count_tables import from_ipc, split_by_bucket, to_ipc
from pipelines.training.count_words import (
    CountSettings,
    CountWords,
    SumCounts,
    WriteCountTable,
    _WriteBucket,
)

WORD_COUNTS = st.dictionaries(st.binary(max_size=6), st.integers(1, 2**40), min_size=1, max_size=20)


def table(counts: dict[bytes, int]) -> pa.Table:
    schema = pa.schema([("word", pa.binary()), ("count", pa.int64())])
    return pa.table([list(counts), list(counts.values())], schema=schema)


def as_dict(counts: pa.Table) -> dict[bytes, int]:
    return dict(zip(counts["word"].to_pylist(), counts["count"].to_pylist(), strict=True))


@given(st.lists(WORD_COUNTS, min_size=1, max_size=5))
def test_tables_add_up_word_by_word_in_byte_order(parts: list[dict[bytes, int]]) -> None:
    expected: dict[bytes, int] = {}
    for part in parts:
        for word, count in part.items():
            expected[word] = expected.get(word, 0) + count
    added = add_tables([table(part) for part in parts])
    assert as_dict(added) == expected
    assert added["word"].to_pylist() == sorted(expected)


@given(WORD_COUNTS, st.integers(1, 7))
def test_buckets_hold_each_word_once_and_depend_on_the_word_alone(
    counts: dict[bytes, int], buckets: int
) -> None:
    whole = {
        word: b for b, part in split_by_bucket(table(counts), buckets) for word in as_dict(part)
    }
    assert whole.keys() == counts.keys()
    for word in counts:
        assert [b for b, _ in split_by_bucket(table({word: 1}), buckets)] == [whole[word]]


def test_words_spread_over_buckets() -> None:
    words = {f" word{number}".encode(): 1 for number in range(4000)}
    sizes = [part.num_rows for _, part in split_by_bucket(table(words), 16)]
    assert len(sizes) == 16
    assert max(sizes) < 2 * min(sizes)


def test_an_overflowing_count_is_an_error_and_the_largest_is_none() -> None:
    half = table({b"a": 2**62, b"b": 1})
    with pytest.raises(CountTableError, match=r"b'a'.*9223372036854775807"):
        add_tables([half, half])
    almost = table({b"a": 2**62 - 1, b"b": 1})
    assert as_dict(add_tables([half, almost])) == {b"a": 2**63 - 1, b"b": 2}


def test_sum_counts_keeps_the_smallest_first_position() -> None:
    schema = pa.schema([("word", pa.binary()), ("count", pa.int64()), ("first", pa.int64())])
    early = pa.table([[b"a", b"b"], [1, 1], [7, 9]], schema=schema)
    late = pa.table([[b"b", b"c"], [1, 1], [3, 4]], schema=schema)
    with BeamPipeline() as pipeline:
        sums = (
            pipeline
            | beam.Create([(0, to_ipc(early)), (0, to_ipc(late))])
            | beam.CombinePerKey(SumCounts())
            | beam.MapTuple(lambda _, data: from_ipc(data).to_pydict())
        )
        expected = {"word": [b"a", b"b", b"c"], "count": [1, 2, 1], "first": [7, 3, 4]}
        assert_that(sums, equal_to([expected]))


def test_an_overflow_on_a_worker_is_reported_with_its_own_message() -> None:
    combine = SumCounts()
    half = to_ipc(table({b"a": 2**62}))
    with pytest.raises(WorkerError, match="exceeds 9223372036854775807"):
        combine.extract_output([half, half])


@pytest.mark.parametrize("range_bytes", [10**9, 20_000, 7_001])
def test_counts_of_a_cut_document_equal_the_uncut_ones(
    range_bytes: int, tiny: Path, tmp_path: Path
) -> None:
    text = tiny.read_bytes()[:60_000]
    source = tmp_path / "text.txt"
    source.write_bytes(text)
    read = ReadOptions(input_format="text", range_bytes=range_bytes)
    plan = make_plan(list_inputs([str(source)], read), read)
    output = tmp_path / "counts"
    with BeamPipeline() as pipeline:
        names = (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in plan.units])
            | CountWords(CountSettings("gpt2", first_positions=True), read, buckets=3)
            | WriteCountTable(str(output))
        )
        assert_that(names, equal_to([f"bucket-{bucket:05d}.arrow" for bucket in range(3)]))
    files = sorted(output.glob("bucket-*.arrow"))
    found = add_tables([pa.ipc.open_file(path).read_all() for path in files])
    expected = count_pretokens(text, "gpt2", first_positions=True)
    assert found.to_pydict() == expected.to_pydict()
    assert found.schema.metadata == expected.schema.metadata


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["lines", "parquet"]),
    st.lists(st.sampled_from(["a b", "b", "", "c a"]), min_size=1, max_size=6),
    st.integers(1, 9),
)
def test_first_positions_are_in_the_order_of_files_and_rows(
    tmp_path_factory: pytest.TempPathFactory, kind: str, lines: list[str], range_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    if kind == "lines":
        (folder / "a.txt").write_text("\n".join(lines) + "\n")
        (folder / "b.txt").write_text("z a\n")
    else:
        range_bytes *= 10
        pq.write_table(pa.table({"text": lines}), folder / "a", row_group_size=2)
        pq.write_table(pa.table({"text": ["z a"]}), folder / "b")
    read = ReadOptions(input_format=kind, range_bytes=range_bytes)
    plan = make_plan(list_inputs([str(folder)], read), read, unit_bytes=1)
    transform = CountWords(CountSettings("whitespace", first_positions=True), read, buckets=1)
    elements = [unit.to_json().encode() for unit in plan.units]
    parts = [
        from_ipc(data) for element in elements for _, data in transform._count.process(element)
    ]
    found = add_tables(parts)
    order = [found["word"][row.as_py()].as_py() for row in pa.compute.sort_indices(found["first"])]
    # The rule of the scheme: runs of white space and of other characters, seen in reading order.
    seen: dict[bytes, None] = {}
    for line in [*lines, "z a"]:
        for word in (
            count_pretokens(line, "whitespace", first_positions=True)
            .sort_by("first")["word"]
            .to_pylist()
        ):
            seen.setdefault(word)
    assert order == list(seen)


def test_special_tokens_are_text_or_cut_or_an_error(tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_bytes(b"end<|x|>end end")
    read = ReadOptions(input_format="text")
    plan = make_plan(list_inputs([str(source)], read), read)
    element = plan.units[0].to_json().encode()

    def count(policy: str) -> dict[bytes, int]:
        how = CountSettings("gpt2", special_text=policy, special_tokens=("<|x|>",))
        emitted = CountWords(how, read, buckets=1)._count.process(element)
        return as_dict(add_tables([from_ipc(data) for _, data in emitted]))

    assert count("text") == as_dict(count_pretokens("end<|x|>end end", "gpt2"))
    assert count("allow") == {b"end": 2, b" end": 1}
    with pytest.raises(WorkerError, match=r"text\.txt.*<\|x\|>"):
        count("reject")


@pytest.mark.one_in(5)
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("policy", ["text", "allow"])
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k"])
def test_special_tokens_are_counted_as_in_the_whole_whatever_the_ranges(
    scheme: str, policy: str, tmp_path: Path
) -> None:
    specials = ("<|x y|>", "<|x y|>1", "absent")
    text = "a1 b<|x y|><|x y|>1 c'<|x y|> 12<|x y|>\n" * 4
    (tmp_path / "a.txt").write_text(text)
    how = CountSettings(scheme, special_text=policy, special_tokens=specials)
    longer = text.count(specials[1])
    expected = {specials[0]: text.count(specials[0]) - longer, specials[1]: longer, "absent": 0}
    words = as_dict(
        count_pretokens(
            text, scheme, special_text=policy, special_tokens=specials if policy == "allow" else ()
        )
    )
    for range_bytes in (1, 2, 3, 5, 8, 13, 21, 1000):
        read = ReadOptions(input_format="text", range_bytes=range_bytes)
        plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
        output = tmp_path / f"out-{range_bytes}"
        step = CountWords(how, read, buckets=1, output=str(output))._count
        units = [unit.to_json().encode() for unit in plan.units]
        tables = [from_ipc(data) for unit in units for _, data in step.process(unit)]
        assert as_dict(add_tables(tables)) == words
        list(_WriteBucket(str(output)).process((0, to_ipc(add_tables(tables)))))
        totals = finish_counts(str(output), len(units), how.to_dict(), []).totals
        assert totals.special_text == expected


def test_settings_are_checked_when_the_transform_is_made() -> None:
    with pytest.raises(VocabularyError, match="empty"):
        CountWords(CountSettings("gpt2", special_tokens=("",)), ReadOptions())
    with pytest.raises(SettingsError, match="nosuch"):
        CountWords(CountSettings("nosuch"), ReadOptions())
    with pytest.raises(SettingsError, match="buckets=0"):
        CountWords(CountSettings("gpt2"), ReadOptions(), buckets=0)
