"""`beam-bpe encode`: what is written, the same bytes however it runs, resuming."""

from __future__ import annotations

import gzip
import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]


@pytest.fixture
def corpus(tiny: Path, tmp_path: Path) -> Path:
    """A folder with a text, a JSONL file, and packed ones."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    text = tiny.read_bytes()
    (folder / "a.txt").write_bytes(text[:60_000])
    rows = [{"text": line} for line in text[60_000:80_000].decode().split("\n")]
    (folder / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "c.txt.gz").write_bytes(gzip.compress(text[80_000:90_000], mtime=0))
    (folder / "d.txt.zst").write_bytes(zstandard.compress(text[90_000:95_000]))
    return folder


def shards(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sorted(output.glob("shard-*.arrow")):
        with pa.memory_map(str(path)) as file:
            rows += pa.ipc.open_file(file).read_all().to_pylist()
    return rows


def test_every_document_is_there_with_the_ids_of_the_whole(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", corpus / "*", "--tokenizer", model_dir, "--output", output),
        *("--range-bytes", "7kB", "--append-eos", "<|endoftext|>", "--prepend-bos", 261),
    )
    assert done.code == 0, done.err
    found: dict[tuple[str, str], list[int]] = {}
    for row in shards(output):
        found.setdefault((row["source"], row["document_id"]), []).extend(row["input_ids"])
    texts = [
        (corpus / "a.txt").read_bytes(),
        *(json.loads(row)["text"] for row in (corpus / "b.jsonl").read_text().splitlines()),
        gzip.decompress((corpus / "c.txt.gz").read_bytes()),
        zstandard.decompress((corpus / "d.txt.zst").read_bytes()),
    ]
    tokenizer = Tokenizer.load(model_dir)
    expected = [[261, *tokenizer.encode(text).tolist(), 261] for text in texts]
    assert list(found.values()) == expected
    manifest = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
    assert manifest["totals"]["documents"] == len(texts)
    assert manifest["totals"]["tokens"] == sum(map(len, expected))
    assert f"documents        {len(texts)}" in done.out
    assert not (output / "_temporary").exists()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "options",
    [
        ["--direct_num_workers=1"],
        ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
        ["--runner=DirectRunner"],
    ],
)
def test_shards_are_the_same_bytes_however_the_job_runs(
    options: list[str], corpus: Path, model_dir: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    command = ("encode", "--input", corpus / "*", "--tokenizer", model_dir, "--range-bytes", 7000)
    done = run(*command, "--output", tmp_path / "a", "--direct_num_workers=2")
    assert done.code == 0, done.err
    done = run(*command, "--output", tmp_path / "b", *options)
    assert done.code == 0, done.err
    assert tree_bytes(tmp_path / "a") == tree_bytes(tmp_path / "b")


def test_other_programs_open_the_shards_with_the_column_types_intact(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    datasets = pytest.importorskip("datasets")
    output = tmp_path / "out"
    command = ("encode", "--input", corpus / "a.txt", "--tokenizer", model_dir)
    assert run(*command, "--output", output, "--range-bytes", 7000).code == 0
    files = [str(path) for path in sorted(output.glob("shard-*.arrow"))]
    with pa.memory_map(files[0]) as file:
        schema = pa.ipc.open_file(file).schema
    assert schema.field("input_ids").type == pa.list_(pa.uint16())
    assert schema.field("source").type == pa.dictionary(pa.int32(), pa.string())
    assert schema.metadata[b"beam_bpe.schema"] == b"token_shards"
    loaded = datasets.load_dataset(
        "arrow", data_files=files, split="train", cache_dir=str(tmp_path / "cache")
    )
    assert loaded.features["input_ids"].feature.dtype == "uint16"
    assert loaded.num_rows == len(shards(output))
    assert list(loaded[0]["input_ids"]) == shards(output)[0]["input_ids"]


def test_ids_beyond_uint16_make_uint32_columns(
    data_dir: Path, corpus: Path, tmp_path: Path, run: Run
) -> None:
    ranks = tmp_path / "tokenizer.model"
    packed = data_dir / "vocab" / "cl100k_base.tiktoken.gz"
    ranks.write_bytes(gzip.decompress(packed.read_bytes()))
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", corpus / "d.txt.zst", "--tokenizer", ranks, "--output", output),
    )
    assert done.code == 0, done.err
    # A published rank file is known by its content, and what it leaves unsaid is told once.
    assert done.err.count("is cl100k_base (by its sha256): pre-tokenizer cl100k and its spec") == 1
    with pa.memory_map(str(output / "shard-00000-000.arrow")) as file:
        assert pa.ipc.open_file(file).schema.field("input_ids").type == pa.list_(pa.uint32())
    assert run("verify", output, "--full").code == 0


def test_parts_close_at_shard_bytes_of_input(model_dir: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("".join(f"line {number:04d}\n" for number in range(100)))
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", source, "--input-format", "lines", "--tokenizer", model_dir),
        *("--output", output, "--shard-bytes", 90),
    )
    assert done.code == 0, done.err
    manifest = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
    assert [shard["part"] for shard in manifest["shards"]] == list(range(10))
    assert {shard["rows"] for shard in manifest["shards"]} == {10}
    assert [row["byte_start"] for row in shards(output)] == list(range(0, 1000, 10))


def test_a_killed_run_goes_on_and_ends_with_the_same_shards(
    tiny: Path, model_dir: Path, tmp_path: Path, run: Run, start: Run, tree_bytes: Tree
) -> None:
    command = ("encode", "--input", tiny, "--tokenizer", model_dir, "--range-bytes", "60kB")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    one = "--direct_num_workers=1"
    process = start(*command, "--output", killed, one, seconds_per_rename=0.1)
    deadline = time.monotonic() + 120
    while (
        time.monotonic() < deadline and len(list(killed.glob("__beam-bpe__/sidecars/*.json"))) < 3
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "__beam-bpe__/manifest.json").exists()
    (killed / "_temporary").mkdir(exist_ok=True)
    (killed / "_temporary" / f"shard-00001-000.arrow.{'0' * 32}").write_bytes(b"half")
    again = run(*command, "--output", killed)
    assert again.code == 0, again.err
    assert "resuming: kept " in again.err
    assert "kept 0 of" not in again.err
    assert run(*command, "--output", whole).code == 0
    assert tree_bytes(killed) == tree_bytes(whole)


@pytest.mark.parametrize("damage", ["shard", "sidecar", "missing", "settings", "stray"])
def test_only_shards_that_fit_are_kept(
    damage: str,
    corpus: Path,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    output = tmp_path / "out"
    command = ("encode", "--input", corpus / "a.txt", "--tokenizer", model_dir)
    command = (*command, "--range-bytes", 7000, "--output", output)
    assert run(*command).code == 0
    before = tree_bytes(output)
    (output / "__beam-bpe__/manifest.json").unlink()
    shard = output / "shard-00002-000.arrow"
    sidecar = output / "__beam-bpe__/sidecars/shard-00002-000.arrow.json"
    if damage == "shard":
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
    elif damage == "sidecar":
        sidecar.write_bytes(sidecar.read_bytes()[:50])
    elif damage == "missing":
        shard.unlink()
    elif damage == "settings":
        sidecar.write_text(
            sidecar.read_text().replace('settings_digest": "', 'settings_digest": "f')
        )
    else:
        (output / "shard-00777-000.arrow").write_bytes(b"of a longer plan")
    again = run(*command)
    assert again.code == 0, again.err
    kept = 9 if damage == "stray" else 8
    assert f"kept {kept} of 9 units" in again.err
    assert tree_bytes(output) == before


def test_a_changed_file_is_encoded_again_and_no_other(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    files = ("--input", corpus / "a.txt", corpus / "b.jsonl", "--range-bytes", "1MB")
    command = ("encode", *files, "--tokenizer", model_dir, "--output", output)
    assert run(*command).code == 0
    text = (corpus / "a.txt").read_bytes()
    (corpus / "a.txt").write_bytes(text[:-3] + b"end")
    again = run(*command)
    assert again.code == 0, again.err
    assert "1 input file changed" in again.err
    assert run("verify", output).code == 0
    tokenizer = Tokenizer.load(model_dir)
    assert shards(output)[0]["input_ids"] == tokenizer.encode(text[:-3] + b"end").tolist()


def test_a_finished_folder_is_left_alone_and_other_settings_are_refused(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    command = ("encode", "--input", corpus / "a.txt", "--tokenizer", model_dir, "--output", output)
    assert run(*command).code == 0
    before = tree_bytes(output)
    again = run(*command)
    assert again.code == 0
    assert "nothing to do" in again.err
    refused = run(*command, "--append-eos", "<|endoftext|>", "--shard-bytes", "1MB")
    assert refused.code == 1
    assert "eos: was not given, now 261" in refused.err
    assert "shard_bytes: was 268435456, now 1000000" in refused.err
    more = run(*command[:2], corpus / "*.txt", corpus / "b.jsonl", *command[3:])
    assert more.code == 1
    assert "another input: was 1 file, now 2" in more.err
    assert " is new; " in more.err
    assert "other settings" not in more.err
    assert tree_bytes(output) == before
    done = run(*command, "--append-eos", "<|endoftext|>", "--overwrite")
    assert done.code == 0
    assert shards(output)[-1]["input_ids"][-1] == 261


def test_a_folder_of_something_else_is_refused(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    command = ("encode", "--input", corpus / "a.txt", "--tokenizer", model_dir)
    refused = run(*command, "--output", tmp_path / "out")
    assert refused.code == 1
    assert "thesis.tex" in refused.err
    assert run(*command, "--output", tmp_path / "out", "--overwrite").code == 0
    assert (tmp_path / "out" / "thesis.tex").read_text() == "mine"


def test_a_run_stopped_by_a_bad_row_goes_on_when_told_to_skip(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    rows = corpus / "b.jsonl"
    rows.write_text(rows.read_text() + 'nonsense\n{"text": null}\n')
    output = tmp_path / "out"
    command = ("encode", "--input", rows, "--tokenizer", model_dir, "--range-bytes", 3000)
    stopped = run(*command, "--output", output, "--direct_num_workers=1")
    assert stopped.code == 1
    assert stopped.err.count("error:") == 1
    assert "Traceback" not in stopped.err
    assert str(rows) in stopped.err
    done = run(*command, "--output", output, "--on-bad-record", "skip")
    assert done.code == 0, done.err
    assert "rejected" in done.out
    manifest = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
    totals = manifest["totals"]
    assert totals["rejected"] == 2
    assert totals["documents_in"] == totals["documents"] + 2
    strict = run(*command, "--output", output)
    assert strict.code == 1
    assert "--on-bad-record=skip" in strict.err


def test_empty_documents_are_rows_or_left_out_and_counted(
    model_dir: Path, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": ""}\n{"text": "the"}\n{"text": ""}\n')
    command = ("encode", "--input", source, "--tokenizer", model_dir, "--append-eos", 261)
    assert run(*command, "--output", tmp_path / "keep").code == 0
    assert [len(row["input_ids"]) for row in shards(tmp_path / "keep")] == [1, 3, 1]
    done = run(*command, "--output", tmp_path / "drop", "--empty", "drop")
    assert done.code == 0
    assert len(shards(tmp_path / "drop")) == 1
    assert "dropped as empty 2" in done.out


@pytest.mark.parametrize(
    ("command", "record"),
    [("train", "counts/manifest.json"), ("encode", "__beam-bpe__/manifest.json")],
)
def test_what_was_read_all_the_same_is_summed_up_and_recorded(
    command: str, record: str, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"the hand \xff the hand the hand")
    (folder / "b.txt").write_bytes(b"")
    (folder / "_c.txt").write_bytes(b"hidden")
    options = {"train": ("--vocab-size", 260), "encode": ("--tokenizer", model_dir)}[command]
    inputs = ("--input", folder, folder / "a.txt")
    done = run(command, *inputs, *options, "--output", tmp_path / "out")
    assert done.code == 0, done.err
    listing = {"duplicate_files": 1, "hidden_files": 1, "empty_files": 1}
    manifest = json.loads((tmp_path / "out" / record).read_bytes())
    assert manifest["listing"] == listing
    line = next(line for line in done.out.splitlines() if line.startswith("accepted"))
    for name in [*listing, "invalid_utf8"]:
        assert f"{name} 1" in line


def test_special_tokens_in_the_text_are_counted_and_said(
    tmp_path: Path, model_dir: Path, run: Run
) -> None:
    (tmp_path / "a.txt").write_text("the<|endoftext|>and" * 1200)
    (tmp_path / "b.txt").write_text("nothing")

    def encode(name: str, *options: str) -> tuple[str, dict[str, int]]:
        command = ("encode", "--input", tmp_path / name, "--tokenizer", model_dir)
        output = tmp_path / f"out-{name}{''.join(options)}"
        done = run(*command, "--range-bytes", 1000, "--output", output, *options)
        assert done.code == 0, done.err
        manifest = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
        units = [shard["unit_totals"]["special_text"] for shard in manifest["shards"]]
        assert sum(unit.get("<|endoftext|>", 0) for unit in units) == sum(
            manifest["totals"]["special_text"].values()
        )
        return done.out, manifest["totals"]["special_text"]

    out, hits = encode("a.txt")
    assert hits == {"<|endoftext|>": 1200}
    assert "special text     1,200 '<|endoftext|>' as ordinary text\n" in out
    out, hits = encode("a.txt", "--special-text=allow")
    assert hits == {"<|endoftext|>": 1200}
    assert "special text     1,200 '<|endoftext|>' as special tokens\n" in out
    out, hits = encode("b.txt")
    assert hits == {}
    assert "special text" not in out
