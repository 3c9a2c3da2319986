"""Documents with bytes for which the vocabulary has no ids: bad records, or an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe import Tokenizer

Run = Callable[..., Any]
TEXTS = [b"one", b"t\xffo", "drei é".encode(), b"\xc0"]


@pytest.fixture
def lacking(tmp_path: Path) -> Path:
    """A vocabulary without c0, c1 and f5 to ff."""
    whole = Tokenizer.from_merges([(b"o", b"n")], pretokenizer="gpt2").model
    tokens = {i: d for i, d in whole.tokens.items() if d not in b"\xc0\xc1" and d < b"\xf5"}
    Tokenizer(replace(whole, tokens=tokens)).save(tmp_path / "lacking")
    return tmp_path / "lacking"


def write(path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": pa.array(TEXTS, pa.binary())}), path)
    else:
        path.write_bytes(b"".join(text + b"\n" for text in TEXTS))


@pytest.mark.parametrize(
    ("name", "place"), [("a.txt", "byte 4"), ("a.parquet", "row 2")], ids=["lines", "parquet"]
)
def test_such_a_document_is_a_bad_record(
    name: str, place: str, lacking: Path, tmp_path: Path, run: Run
) -> None:
    write(tmp_path / name)
    command = ["encode", "--input", tmp_path / name, "--tokenizer", lacking]
    if name == "a.txt":
        command += ["--input-format", "lines"]
    failed = run(*command, "--output", tmp_path / "failed")
    assert failed.code == 1
    assert f"{name}: {place}: the text holds 0xff at byte 1, which no valid UTF-8" in failed.err
    assert "set such rows aside with --on-bad-record=skip" in failed.err
    done = run(*command, "--output", tmp_path / "out", "--on-bad-record", "skip")
    assert done.code == 0, done.err
    (rejects,) = (tmp_path / "out").rglob("unit-*.jsonl")
    rows = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [row["reason"] for row in rows] == ["byte_without_id"] * 2
    assert run("verify", tmp_path / "out", "--full").code == 0
    (shard,) = (tmp_path / "out").glob("shard-*.arrow")
    with pa.memory_map(str(shard)) as file:
        ids = pa.ipc.open_file(file).read_all()["input_ids"].to_pylist()
    tokenizer = Tokenizer.load(lacking)
    assert [tokenizer.decode(row).strip() for row in ids] == [TEXTS[0], TEXTS[2]]


def test_a_document_in_pieces_stops_the_run(lacking: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "long.txt").write_bytes(b"some words\n" * 30_000 + b"\xff" + b"a b\n" * 9_000)
    done = run(
        *("encode", "--input", tmp_path / "long.txt", "--tokenizer", lacking),
        *("--output", tmp_path / "out", "--range-bytes", 65_536, "--on-bad-record", "skip"),
    )
    assert done.code == 1
    assert "the text holds 0xff at byte" in done.err
    assert "--on-bad-record=skip cannot leave the document out, because it is so long" in done.err
