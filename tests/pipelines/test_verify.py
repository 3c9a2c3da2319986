"""`beam-bpe verify` finds what does not agree, and names it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

Run = Callable[..., Any]


@pytest.fixture
def output(tiny: Path, model_dir: Path, tmp_path: Path, run: Run) -> Path:
    """An encoded folder with several shards, BOS and EOS, and rows over several."""
    source = tmp_path / "a.txt"
    source.write_bytes(tiny.read_bytes()[:9000])
    folder = tmp_path / "out"
    done = run(
        *("encode", "--input", source, "--input-format", "lines", "--tokenizer", model_dir),
        *("--range-bytes", 3000, "--max-row-tokens", 20, "--append-eos", 261),
        *("--prepend-bos", 261, "--output", folder),
    )
    assert done.code == 0, done.err
    return folder


def rewrite_shard(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the first shard's rows and make all hashes agree with it."""
    path = folder / "shard-00000-000.arrow"
    with pa.memory_map(str(path)) as file:
        table = change(pa.ipc.open_file(file).read_all())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(sink.getvalue())
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["shards"][0]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace_ids(table: pa.Table, change: Callable[[list[int]], list[int]]) -> pa.Table:
    rows = table["input_ids"].to_pylist()
    rows[0] = change(rows[0])
    kind = table.schema.field("input_ids")
    return table.set_column(0, kind, pa.array(rows, kind.type))


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_a_whole_folder_passes(full: list[str], output: Path, run: Run) -> None:
    done = run("verify", output, *full)
    assert done.code == 0, done.err
    assert "is whole: 3 shards" in done.out


def test_a_changed_byte_is_found(output: Path, run: Run) -> None:
    path = output / "shard-00001-000.arrow"
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00001-000.arrow" in done.err
    assert "sha256" in done.err


def test_a_missing_shard_is_found(output: Path, run: Run) -> None:
    (output / "shard-00002-000.arrow").unlink()
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00002-000.arrow: is missing" in done.err


def test_other_ids_of_the_same_number_are_found_by_encoding_again(output: Path, run: Run) -> None:
    # ' t' + 'he' spelled with single bytes decodes to the same text.
    rewrite_shard(output, lambda table: replace_ids(table, lambda ids: [ids[0], 83, *ids[2:]]))
    assert run("verify", output).code == 0  # one token for another: the text simply differs
    rewrite_shard(output, lambda table: replace_ids(table, lambda ids: [ids[0], 71, 68, *ids[3:]]))
    done = run("verify", output)
    assert done.code == 1
    assert "row 0" in done.err


def test_an_id_that_is_none_is_found(output: Path, run: Run) -> None:
    rewrite_shard(output, lambda table: replace_ids(table, lambda ids: [ids[0], 5000, *ids[2:]]))
    done = run("verify", output)
    assert done.code == 1
    assert "id 5000" in done.err


def test_a_lost_row_is_found(output: Path, run: Run) -> None:
    rewrite_shard(output, lambda table: table.slice(1))
    done = run("verify", output)
    assert done.code == 1
    assert "rows" in done.err


def test_a_tokenizer_that_fails_its_golden_set_is_found(output: Path, run: Run) -> None:
    config_path = output / "tokenizer" / "config.json"
    golden = output / "tokenizer" / "golden.jsonl"
    rows = [json.loads(line) for line in golden.read_text().split("\n") if line]
    changed = next(row for row in rows if len(row["ids"]) > 1)
    changed["ids"] = [*changed["ids"][::-1], 1]
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = json.loads(config_path.read_bytes())
    config["files"]["golden.jsonl"] = hashlib.sha256(golden.read_bytes()).hexdigest()
    config_path.write_text(json.dumps(config))
    done = run("verify", output)
    assert done.code == 1
    assert "golden" in done.err


def test_an_unfinished_folder_is_said_to_be_one(output: Path, run: Run) -> None:
    (output / "manifest.json").unlink()
    done = run("verify", output)
    assert done.code == 1
    assert "no finished output" in done.err


def test_a_trained_folder_is_checked_with_its_counts(tiny: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes(tiny.read_bytes()[:9000])
    trained = tmp_path / "trained"
    assert run("train", "--input", source, "--vocab-size", 300, "--output", trained).code == 0
    assert "counts of" in run("verify", trained).out
    bucket = trained / "counts" / "bucket-00000.arrow"
    bucket.write_bytes(b"")
    done = run("verify", trained)
    assert done.code == 1
    assert str(bucket) in done.err
