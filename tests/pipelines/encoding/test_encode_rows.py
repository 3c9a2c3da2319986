"""`EncodeToBatches` and `ReadTokenShards`: the product inside somebody else's pipeline."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from bpe.errors import BadRecordError, InputError, OutputError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.encoding.encode_rows import EncodeToBatches
from pipelines.runners.job_metrics import read_metrics
from pipelines.runners.worker_errors import own_error
from pipelines.shards.read_token_shards import ReadTokenShards
from schemas.encoded_batches import encoded_batch_schema

Run = Callable[..., Any]
TEXTS = ["the hand", "", "and 'the' \u00e9", "hand" * 50]


class Document(NamedTuple):
    id: str
    text: str


def flat(batch: pa.RecordBatch) -> list[tuple[str | None, tuple[int, ...]]]:
    assert batch.schema == encoded_batch_schema(pa.uint16())
    return [(row["document_id"], tuple(row["input_ids"])) for row in batch.to_pylist()]


def expected(model_dir: Path, ids: list[str | None]) -> list[tuple[str | None, tuple[int, ...]]]:
    tokenizer = Tokenizer.load(model_dir)
    return [
        (name, tuple(tokenizer.encode(text).tolist()))
        for name, text in zip(ids, TEXTS, strict=True)
    ]


NAMES = ["a", "b", "c", "d"]
ROWS: dict[str, tuple[list[Any], bool]] = {
    "str": (list(TEXTS), False),
    "bytes": ([text.encode() for text in TEXTS], False),
    "dict": ([{"id": n, "text": t} for n, t in zip(NAMES, TEXTS, strict=True)], True),
    "dict without id": ([{"text": text} for text in TEXTS], False),
    "named tuple": ([Document(n, t) for n, t in zip(NAMES, TEXTS, strict=True)], True),
    "beam row": ([beam.Row(id=n, text=t) for n, t in zip(NAMES, TEXTS, strict=True)], True),
    "batch": ([pa.RecordBatch.from_pydict({"text": TEXTS, "id": NAMES})], True),
    "table": ([pa.table({"text": pa.chunked_array([TEXTS[:1], TEXTS[1:]]), "id": NAMES})], True),
    "dictionary": ([pa.table({"text": pa.array(TEXTS).dictionary_encode()})], False),
    "list": ([[TEXTS[0].encode(), *TEXTS[1:]]], False),
    "array": ([pa.array(TEXTS[:1]), pa.chunked_array([TEXTS[1:]])], False),
    "binary": ([pa.table({"text": [text.encode() for text in TEXTS]})], False),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("kind", "batch_bytes"),
    [*((kind, 1 << 20) for kind in ROWS), ("dict", 1), ("str", 60), ("batch", 1)],
)
def test_rows_of_every_kind_become_batches_of_ids(
    kind: str, batch_bytes: int, model_dir: Path
) -> None:
    rows, has_ids = ROWS[kind]
    names: list[str | None] = [*NAMES] if has_ids else [None] * 4
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = (
            pipeline
            | beam.Create(rows)
            | EncodeToBatches(str(model_dir), batch_bytes=batch_bytes)
            | beam.FlatMap(flat)
        )
        assert_that(encoded, equal_to(expected(model_dir, names)))


def test_marks_other_fields_and_a_tokenizer_in_hand(model_dir: Path) -> None:
    tokenizer = Tokenizer.load(model_dir)
    rows = [{"url": 7, "body": "the"}, {"url": 8, "body": ""}]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = (
            pipeline
            | beam.Create(rows)
            | EncodeToBatches(tokenizer, text="body", id="url", bos=0, eos="<|endoftext|>")
            | beam.FlatMap(flat)
        )
        ids = tuple(tokenizer.encode("the").tolist())
        assert_that(encoded, equal_to([("7", (0, *ids, 261)), ("8", (0, 261))]))


@pytest.mark.parametrize("kind", ["path", "tokenizer.json", "folder", "pair"])
def test_what_the_command_takes_the_transform_takes(
    kind: str, model_dir: Path, tmp_path: Path
) -> None:
    tokenizer = Tokenizer.load(model_dir)
    path = model_dir if kind == "path" else tmp_path
    if kind in ("tokenizer.json", "folder"):
        tokenizer.to_huggingface(tmp_path / "tokenizer.json")
        path = path / "tokenizer.json" if kind == "tokenizer.json" else path
    elif kind == "pair":
        for name in ("vocab.json", "merges.txt"):
            shutil.copy(model_dir / name, tmp_path)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = pipeline | beam.Create(["the and"]) | EncodeToBatches(path) | beam.FlatMap(flat)
        ids = tuple(tokenizer.encode("the and").tolist())
        assert_that(encoded, equal_to([(None, ids)]))


def test_rows_stay_in_their_windows(model_dir: Path) -> None:
    def starts(batch: pa.RecordBatch, window: Any = beam.DoFn.WindowParam) -> list[tuple[int, str]]:
        return [(int(window.start), name) for name, _ in flat(batch) if name]

    rows = [
        TimestampedValue({"id": str(second), "text": "the"}, second) for second in (1, 2, 11, 12, 3)
    ]
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = (
            pipeline
            | beam.Create(rows)
            | beam.Map(lambda each: each)
            | beam.WindowInto(FixedWindows(10))
            | EncodeToBatches(str(model_dir))
            | beam.FlatMap(starts)
        )
        assert_that(encoded, equal_to([(0, "1"), (0, "2"), (0, "3"), (10, "11"), (10, "12")]))


@pytest.mark.parametrize(
    ("row", "kind", "expected_text"),
    [
        (["a", None], BadRecordError, r"row\[1\] is of type NoneType: pass str or bytes"),
        (pa.array([1]), BadRecordError, "row is an array of int64"),
        ({"body": "x"}, BadRecordError, r"holds no text in 'text': \{'body': 'x'\}"),
        (7, BadRecordError, "holds no text in 'text': 7"),
        (pa.table({"body": ["x"]}), BadRecordError, "columns body and no 'text'"),
        (pa.table({"text": [1]}), BadRecordError, "of int64, which is no text"),
        (pa.table({"text": ["x", None]}), BadRecordError, "1 nulls"),
        ({"id": "me", "text": "a<|endoftext|>"}, InputError, "rows me to me: .*endoftext"),
    ],
)
def test_what_is_no_text_is_refused_with_the_row(
    row: Any, kind: type[Exception], expected_text: str, model_dir: Path
) -> None:
    transform = EncodeToBatches(str(model_dir), special_text="reject")
    with pytest.raises(RuntimeError) as raised, beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | beam.Create([row]) | transform
    error = own_error(raised.value)
    assert isinstance(error, kind)
    with pytest.raises(kind, match=expected_text):
        raise error


def test_text_that_is_no_unicode_is_refused() -> None:
    # Beam's own coders would refuse such a row before, but for those of objects.
    encode = EncodeToBatches(Tokenizer.from_merges([], pretokenizer="gpt2"))._encode
    with pytest.raises(BadRecordError, match=r"no valid Unicode.*pass bytes"):
        encode._row({"text": "a\ud800"})
    assert encode._row({"text": "a\ud83d\ude00"}) == ("a😀".encode(), None)


@pytest.mark.parametrize(
    "options", [{"special_text": "maybe"}, {"batch_bytes": 0}, {"bos": 70_000}, {"eos": "<|no|>"}]
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], model_dir: Path) -> None:
    with pytest.raises(InputError):
        EncodeToBatches(str(model_dir), **options)


def test_the_runner_counts_what_was_encoded(model_dir: Path) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | beam.Create(TEXTS) | EncodeToBatches(str(model_dir))
    result = pipeline.run()
    result.wait_until_finish()
    found = read_metrics([result])
    assert found is not None
    tokens = sum(len(ids) for _, ids in expected(model_dir, [None] * 4))
    size = sum(len(text.encode()) for text in TEXTS)
    assert found.counters == {"documents": 4, "bytes": size, "tokens": tokens}
    assert found.least_ratio is not None
    assert found.largest_ratio is not None
    assert found.least_ratio <= found.largest_ratio


def test_a_runner_that_tells_nothing_is_no_error() -> None:
    class Silent:
        def metrics(self) -> None:
            raise NotImplementedError

    assert read_metrics([Silent()]) is None


@pytest.fixture
def encoded(tiny: Path, model_dir: Path, tmp_path: Path, run: Run) -> Path:
    source = tmp_path / "a.txt"
    source.write_bytes(tiny.read_bytes()[:6000])
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", source, "--input-format", "lines", "--tokenizer", model_dir),
        *("--split", "train=0.8,test=0.2", "--shard-bytes", 1000, "--output", output),
    )
    assert done.code == 0, done.err
    return output


def is_some_of(lines: list[bytes]) -> Callable[[list[bytes]], None]:
    def check(found: list[bytes]) -> None:
        assert set(found) <= set(lines)
        assert 0 < len(found) < len(lines) / 2

    return check


def test_shards_are_a_source(encoded: Path, tmp_path: Path) -> None:
    lines = (tmp_path / "a.txt").read_bytes().splitlines()
    tokenizer = Tokenizer.load(encoded / "__beam-bpe__/tokenizer")

    def texts(batch: pa.RecordBatch) -> list[bytes]:
        return [tokenizer.decode(ids) for ids in batch["input_ids"]]

    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        everything = pipeline | "All" >> ReadTokenShards(str(encoded), check=True)
        assert_that(everything | beam.FlatMap(texts), equal_to(lines))
        one = pipeline | "Test" >> ReadTokenShards(str(encoded), split="test")
        few = one | "Texts" >> beam.FlatMap(texts)
        assert_that(few, is_some_of(lines), "few")


def test_a_damaged_or_unfinished_output_is_no_source(encoded: Path) -> None:
    with pytest.raises(SettingsError, match="has the splits train, test"):
        ReadTokenShards(str(encoded), split="validation")
    source = ReadTokenShards(str(encoded), check=True)
    shard = encoded / "train" / "shard-00000-000.arrow"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(RuntimeError) as raised, beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | source
    assert "sha256" in str(own_error(raised.value))
    (encoded / "__beam-bpe__/manifest.json").unlink()
    with pytest.raises(OutputError, match="is not finished"):
        ReadTokenShards(str(encoded))
