"""`EncodeDocuments`: ids equal those of whole documents, whatever cuts and batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import msgspec
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline as BeamPipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.encoding.added_tokens import special_added_tokens
from bpe.errors import SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import Plan, make_plan
from pipelines.encoding.encode_documents import EncodeDocuments, EncodeSettings
from pipelines.encoding.encode_run import EncodeRun
from pipelines.runners.worker_errors import WorkerError
from pipelines.shards.tokenizer_files import save_copy
from schemas.sidecars import ShardSidecar


def encode_here(
    plan: Plan, output: Path, how: EncodeSettings, tokenizer: Tokenizer
) -> list[ShardSidecar]:
    """Encode all units in this thread; the sidecars."""
    save_copy(tokenizer, str(output / "__beam-bpe__/tokenizer"))
    step = EncodeDocuments(EncodeRun(str(output), how, plan, tokenizer))._encode
    elements = [unit.to_json().encode() for unit in plan.units]
    encoded = [data for element in elements for data in step.process(element)]
    return [msgspec.json.decode(data, type=ShardSidecar) for data in encoded]


def documents(output: Path, sidecars: list[ShardSidecar]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for sidecar in sidecars:
        with pa.memory_map(str(output / sidecar.file)) as file:
            for row in pa.ipc.open_file(file).read_all().to_pylist():
                found[row["source"], row["document_id"]] += row["input_ids"]
    return dict(found)


def test_units_become_shards_and_their_sidecars(tmp_path: Path, model_dir: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"the and {name}")
    tokenizer = Tokenizer.load(model_dir)
    read = ReadOptions(range_bytes=1 << 20)
    plan = make_plan(list_inputs([str(tmp_path / "*.txt")], read), read, unit_bytes=1)
    output = tmp_path / "out"
    save_copy(tokenizer, str(output / "__beam-bpe__/tokenizer"))
    how = EncodeSettings(tokenizer.digest, read)
    with BeamPipeline() as pipeline:
        sidecars = (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in plan.units])
            | EncodeDocuments(EncodeRun(output, how, plan, tokenizer))
            | beam.Map(lambda data: msgspec.json.decode(data)["file"])
        )
        assert_that(sidecars, equal_to(["shard-00000-000.arrow", "shard-00001-000.arrow"]))
    for name in ("shard-00000-000.arrow", "shard-00001-000.arrow"):
        assert (output / name).is_file()
        assert (output / f"__beam-bpe__/sidecars/{name}.json").is_file()


LINES = st.lists(st.text(alphabet="the an'd1 \u00e9\u4e2d.", max_size=30), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(LINES, st.integers(1, 60), st.integers(1, 40), st.integers(1, 12))
def test_ids_equal_those_of_whole_documents(
    tmp_path_factory: pytest.TempPathFactory,
    model_dir: Path,
    lines: list[str],
    range_bytes: int,
    shard_bytes: int,
    max_row_tokens: int,
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "a.txt").write_text("".join(line + "\n" for line in lines))
    tokenizer = Tokenizer.load(model_dir)
    read = ReadOptions(input_format="lines", range_bytes=range_bytes)
    plan = make_plan(list_inputs([str(folder)], read), read)
    how = EncodeSettings(
        tokenizer.digest, read, eos=261, shard_bytes=shard_bytes, max_row_tokens=max_row_tokens
    )
    output = folder / "out"
    sidecars = encode_here(plan, output, how, tokenizer)
    found = documents(output, sidecars)
    assert list(found.values()) == [[*tokenizer.encode(line).tolist(), 261] for line in lines]
    assert sum(each.documents for each in sidecars) == len(lines)


@settings(max_examples=20, deadline=None)
@given(st.text(alphabet="the and'1 \n", min_size=1, max_size=200), st.integers(1, 80))
def test_one_document_cut_into_ranges_equals_the_uncut_one(
    tmp_path_factory: pytest.TempPathFactory, model_dir: Path, text: str, range_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("text")
    (folder / "a.txt").write_text(text)
    tokenizer = Tokenizer.load(model_dir)
    read = ReadOptions(input_format="text", range_bytes=range_bytes)
    plan = make_plan(list_inputs([str(folder)], read), read)
    how = EncodeSettings(tokenizer.digest, read, bos=261, eos=261)
    output = folder / "out"
    sidecars = encode_here(plan, output, how, tokenizer)
    assert list(documents(output, sidecars).values()) == [
        [261, *tokenizer.encode(text).tolist(), 261]
    ]


def test_special_tokens_are_text_or_ids_or_an_error(tmp_path: Path, model_dir: Path) -> None:
    (tmp_path / "a.txt").write_text("the<|endoftext|>the")
    tokenizer = Tokenizer.load(model_dir)
    read = ReadOptions(range_bytes=4)
    plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)

    def encode(policy: str) -> list[int]:
        how = EncodeSettings(tokenizer.digest, read, special_text=policy)
        output = tmp_path / policy
        sidecars = encode_here(plan, output, how, tokenizer)
        return next(iter(documents(output, sidecars).values()))

    text = "the<|endoftext|>the"
    assert encode("text") == tokenizer.encode(text).tolist()
    assert encode("allow") == tokenizer.encode(text, special_text="allow").tolist()
    assert 261 in encode("allow")
    with pytest.raises(WorkerError, match=r"a\.txt.*<\|endoftext\|>"):
        encode("reject")


SPECIALS = ["<|endoftext|>", "<|a b|>", "<|endoftext|>!"]
WITH_SPECIALS = (
    "the<|endoftext|> an<|a b|>d 777 7777<|endoftext|>!<|endoftext|>'s<|end 77<|a b|>.\n"
)


def hits_in(sidecars: list[ShardSidecar]) -> dict[str, int]:
    hits: Counter[str] = Counter()
    for sidecar in sidecars:
        hits.update(sidecar.unit_totals.special_text if sidecar.unit_totals else {})
    return dict(hits)


@pytest.mark.one_in(5)
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("policy", ["text", "allow"])
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k", "whitespace", "none"])
def test_special_tokens_are_counted_as_in_the_whole_whatever_the_ranges(
    scheme: str, policy: str, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.from_merges(
        [(b"t", b"h"), (b"7", b"7"), (b"77", b"7"), (b"<", b"|")],
        pretokenizer=scheme,
        special_tokens=SPECIALS,
    )
    tokenizer.save(tmp_path / "model")
    text = WITH_SPECIALS * 3
    (tmp_path / "a.txt").write_text(text)
    expected = {
        "<|endoftext|>": text.count("<|endoftext|>") - text.count("<|endoftext|>!"),
        "<|endoftext|>!": text.count("<|endoftext|>!"),
        "<|a b|>": text.count("<|a b|>"),
    }
    whole = tokenizer.encode(text, special_text=policy).tolist()
    for range_bytes in (1, 2, 3, 7, 12, 20, 1000):
        read = ReadOptions(input_format="text", range_bytes=range_bytes)
        plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
        how = EncodeSettings(tokenizer.digest, read, special_text=policy)
        output = tmp_path / f"out-{range_bytes}"
        sidecars = encode_here(plan, output, how, tokenizer)
        assert hits_in(sidecars) == expected
        assert list(documents(output, sidecars).values()) == [whole]


@pytest.mark.usefixtures("backend")
def test_a_special_id_beyond_16_bits_decides_the_type_of_all_ids(tmp_path: Path) -> None:
    model = Tokenizer.from_merges([(b"t", b"h")], pretokenizer="gpt2").model
    tokenizer = Tokenizer(replace(model, added_tokens=special_added_tokens({"<|x|>": 70_000})))
    tokenizer.save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("th")
    read = ReadOptions()
    plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
    how = EncodeSettings(tokenizer.digest, read, bos=70_000, eos=70_000)
    sidecars = encode_here(plan, tmp_path / "out", how, tokenizer)
    with pa.memory_map(str(tmp_path / "out" / sidecars[0].file)) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table["input_ids"].type == pa.list_(pa.uint32())
    assert table["input_ids"].to_pylist() == [[70_000, 256, 70_000]]
    assert sidecars[0].max_id == 70_000


def test_a_tokenizer_that_changed_meanwhile_is_refused(tmp_path: Path, model_dir: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    read = ReadOptions()
    plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
    how = EncodeSettings("0" * 64, read)
    with pytest.raises(WorkerError, match="do not change an output folder"):
        encode_here(plan, tmp_path / "out", how, Tokenizer.load(model_dir))


def test_rows_without_room_are_refused() -> None:
    with pytest.raises(SettingsError, match="--max-row-tokens 0"):
        EncodeSettings("0" * 64, ReadOptions(), max_row_tokens=0)
