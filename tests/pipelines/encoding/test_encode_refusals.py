"""`beam-bpe encode` refuses bad input and wrong arguments, with one message and before work."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", b'{"body": "b"}\n', "text"),
        ("a.jsonl", b"nonsense\n", "JSON"),
        ("a.txt.gz", gzip.compress(b"some text " * 999, mtime=0)[:-9], "a.txt.gz"),
        ("a.txt.zst", zstandard.compress(b"some text" * 999)[:-5], "a.txt.zst"),
    ],
)
def test_bad_input_stops_with_one_message(
    name: str, content: bytes, expected: str, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    refused = run(
        "encode", "--input", source, "--tokenizer", model_dir, "--output", tmp_path / "out"
    )
    assert refused.code == 1
    assert str(source) in refused.err
    assert expected in refused.err
    assert "Traceback" not in refused.err
    assert refused.err.count("error:") == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"--input": "nosuch/*.txt"}, "no file matches"),
        ({"--tokenizer": "nosuch"}, "nosuch"),
        ({"--append-eos": "<|nosuch|>"}, "--append-eos <|nosuch|>"),
        ({"--prepend-bos": "99999"}, "--prepend-bos 99999"),
        ({"--max-row-tokens": "5", "--range-bytes": "100"}, "--max-row-tokens 5"),
    ],
)
def test_wrong_arguments_are_refused_before_work(
    change: dict[str, str], expected: str, small: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    options: dict[str, Any] = {
        "--input": small,
        "--tokenizer": model_dir,
        "--output": tmp_path / "out",
        **change,
    }
    refused = run("encode", *(part for option in options.items() for part in option))
    assert refused.code == 1
    assert expected in refused.err
    assert not list((tmp_path / "out").glob("*"))


def test_a_damaged_model_directory_is_refused_by_file(
    small: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    copy = tmp_path / "model"
    copy.mkdir()
    for file in model_dir.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "merges.txt").write_text("#version: 0.2\nh e\n")
    refused = run("encode", "--input", small, "--tokenizer", copy, "--output", tmp_path / "out")
    assert refused.code == 1
    assert "merges.txt" in refused.err


def test_output_that_cannot_be_written_is_refused_before_work(
    small: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "file").write_text("not a folder")
    refused = run(
        *("encode", "--input", small, "--tokenizer", model_dir),
        *("--output", tmp_path / "file" / "out"),
    )
    assert refused.code == 1
    assert str(tmp_path / "file" / "out") in refused.err
