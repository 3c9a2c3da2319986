"""Raw text as sequences: the same whatever the ranges, cut only where no merge may pass."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import InputError
from pipelines.corpus.listing.inputs import list_inputs
from pipelines.corpus.plan import Plan, make_plan
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.unit_reports import UnitReport
from pipelines.training.rounds.options import BLOCK_BYTES, Sample
from pipelines.training.rounds.raw_sequences import RawReading, RawSequences, read_sequences
from pipelines.training.rounds.sequence_builder import SequenceBuilder, Sequences, divide

TOKEN = "<|x|>"


def plan_of(folder: Path, read: ReadOptions) -> Plan:
    inputs = list_inputs([str(folder)], read)
    return make_plan(inputs, read, unit_bytes=read.range_bytes, fewest_units=1)


def sequences_by_unit(
    plan: Plan, read: ReadOptions, special_text: str, sample: Sample
) -> tuple[list[Sequences], UnitReport]:
    how = RawReading(read, (TOKEN,), special_text, sample)
    totals = UnitReport.start()
    taken = []
    for unit in plan.units:
        builder = SequenceBuilder()
        rejects = Rejects(unit, read)
        for found in read_sequences(unit, how, rejects, totals):
            builder.add(found)
        if builder.size:
            taken.append(builder.take())
    return taken, totals


def joined(parts: list[Sequences]) -> list[bytes]:
    """Sequences of all units, checked to fit together."""
    whole: list[bytes] = []
    goes_on = False
    for part in parts:
        assert part.open_left == goes_on
        rows = part.to_binary().to_pylist()
        if goes_on:
            whole[-1] += rows.pop(0)
        whole += rows
        goes_on = part.open_right
    assert not goes_on
    return whole


def expected(documents: list[bytes], special_text: str) -> list[bytes]:
    cut = [each.split(TOKEN.encode()) if special_text == "allow" else [each] for each in documents]
    return [piece for pieces in cut for piece in pieces if piece]


pieces = st.lists(
    st.sampled_from(["a", "é", "\r\n", TOKEN, "<|x", "|>", "語", "\r", "<", " "]), max_size=40
).map("".join)


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(pieces, min_size=1, max_size=3),
    rows=st.lists(pieces, max_size=4),
    range_bytes=st.integers(1, 60),
    special_text=st.sampled_from(["text", "allow"]),
)
def test_sequences_are_the_documents_whatever_the_ranges(
    texts: list[str], rows: list[str], range_bytes: int, special_text: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = ["start", *texts]
        for number, text in enumerate(documents):
            (folder / f"{number}.txt").write_bytes(text.encode())
        (folder / "z.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
        read = ReadOptions(range_bytes=range_bytes)
        parts, totals = sequences_by_unit(plan_of(folder, read), read, special_text, Sample())
    everything = [text.encode() for text in [*documents, *rows]]
    assert joined(parts) == expected(everything, special_text)
    assert totals.documents == len(everything)
    assert totals.bytes == sum(map(len, everything))
    hits = sum(text.count(TOKEN.encode()) for text in everything)
    assert totals.special_text == Counter({TOKEN: hits})


def test_a_compressed_document_comes_in_pieces_of_bounded_length(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"abc" * 10_000))
    read = ReadOptions(range_bytes=1000)
    unit = plan_of(tmp_path, read).units[0]
    how = RawReading(read, (), "text", Sample())
    found = list(read_sequences(unit, how, Rejects(unit, read), UnitReport.start()))
    # Small pieces are joined to batches; each range is what was read at a time.
    lengths = np.concatenate([each.ends - each.starts for each in found])
    assert len(lengths) > 10
    assert lengths.max() <= 2000
    assert lengths.sum() == 30_000


def test_a_special_token_that_is_refused_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"abc{TOKEN}")
    read = ReadOptions(range_bytes=2)
    with pytest.raises(InputError, match=r"a\.txt: document 0:0 holds the special token"):
        sequences_by_unit(plan_of(tmp_path, read), read, "reject", Sample())


def test_a_sample_is_the_same_whatever_the_ranges(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    data = generator.integers(97, 123, 40 * BLOCK_BYTES + 77).astype(np.uint8).tobytes()
    (tmp_path / "a.txt").write_bytes(data)
    lines = [f"{number:06d}".encode() for number in range(4000)]
    (tmp_path / "b.jsonl").write_bytes(b"".join(b'{"text": "%s"}\n' % line for line in lines))
    sample = Sample(share=0.3, seed=7)
    results = []
    for range_bytes in (1 << 24, 200_000, BLOCK_BYTES, 10_001):
        read = ReadOptions(range_bytes=range_bytes)
        parts, totals = sequences_by_unit(plan_of(tmp_path, read), read, "text", sample)
        results.append(joined(parts))
        assert totals.bytes == len(data) + 6 * len(lines)
        assert totals.kept_bytes == sum(map(len, results[-1]))
    assert all(each == results[0] for each in results)
    blocks = [data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES)]
    kept_blocks = [each for each in results[0] if each in blocks]
    kept_lines = [each for each in results[0] if each in lines]
    assert kept_blocks + kept_lines == results[0]
    assert 4 <= len(kept_blocks) <= 22
    assert len(kept_lines) == pytest.approx(1200, abs=120)
    read = ReadOptions()
    others, _ = sequences_by_unit(plan_of(tmp_path, read), read, "text", Sample(0.3, seed=8))
    assert joined(others) != results[0]


def test_special_tokens_in_a_sample_cut_as_in_the_whole(tmp_path: Path) -> None:
    text = (b"ab" * 20_000 + TOKEN.encode()) * 12
    (tmp_path / "a.txt").write_bytes(text)
    results = []
    for range_bytes in (1 << 24, 30_000, 777):
        read = ReadOptions(range_bytes=range_bytes)
        parts, totals = sequences_by_unit(
            plan_of(tmp_path, read), read, "allow", Sample(share=0.5, seed=3)
        )
        results.append(joined(parts))
        assert totals.special_text[TOKEN] == 12
    assert results[0] == results[1] == results[2]
    assert 0 < len(b"".join(results[0])) < len(text)
    assert TOKEN.encode() not in b"|".join(results[0])


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 5), max_size=8),
    flags=st.lists(st.booleans(), min_size=8, max_size=8),
    rooms=st.lists(st.integers(1, 6), min_size=1, max_size=12),
)
def test_divided_ranges_are_the_same_sequences(
    lengths: list[int], flags: list[bool], rooms: list[int]
) -> None:
    ends = np.cumsum(lengths) if lengths else np.zeros(0, np.int64)
    starts = ends - np.array(lengths, np.int64)
    content = np.arange(1, 1 + sum(lengths), dtype=np.uint8)
    joins = np.array([False, *flags][: len(lengths)], np.bool_)
    # Only an empty document is an empty range, and it neither goes on nor comes from elsewhere.
    some = np.array(lengths, np.int64) > 0
    joins &= some & np.concatenate([[False], some[:-1]])[: len(lengths)]
    found = RawSequences(content, starts, ends, joins, is_open=False)
    whole = SequenceBuilder()
    whole.add(found)
    parts = []
    rest: RawSequences | None = found
    for room in [*rooms, 100]:
        if rest is None:
            break
        first, rest = divide(rest, room)
        builder = SequenceBuilder()
        builder.add(first)
        assert builder.size <= room
        if builder.size:
            parts.append(builder.take())
    assert joined(parts) == whole.take().to_binary().to_pylist()
