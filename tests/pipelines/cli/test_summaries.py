"""What the commands say at their end, beside the totals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
TIMED, RATED = r"seconds +\d+\.\d\n", r"seconds +\d+\.\d \(.+/s\)\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("the and the " * 50)
    return path


def test_training_tells_a_rate_only_if_it_read_the_text(
    source: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "a"
    command = ("train", "--vocab-size", 260)
    first = run(*command, "--input", source, "--output", output)
    assert re.search(RATED, first.out)
    (output / "config.json").unlink()
    again = run(*command, "--input", source, "--output", output)
    assert again.code == 0, again.err
    assert re.search(TIMED, again.out)
    given = run(*command, "--from-counts", output / "counts", "--output", tmp_path / "b")
    assert given.code == 0, given.err
    assert re.search(TIMED, given.out)


def test_encoding_tells_a_rate_only_if_it_read_the_text(
    source: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("encode", "--input", source, "--tokenizer", model_dir, "--output", output)
    first = run(*command)
    assert re.search(RATED, first.out)
    (output / "__beam-bpe__/manifest.json").unlink()
    again = run(*command)
    assert "kept" in again.err
    assert re.search(TIMED, again.out)


def test_a_tokenizer_that_normalizes_is_noted(
    source: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    plain = Tokenizer.load(model_dir)
    Tokenizer(replace(plain.model, normalizer="NFC")).save(tmp_path / "nfc")

    def encode(tokenizer: Path) -> str:
        output = tmp_path / f"out-{tokenizer.name}"
        command = ("encode", "--input", source, "--tokenizer", tokenizer, "--output", output)
        done, verified = run(*command), run("verify", output)
        assert done.code == verified.code == 0, done.err + verified.err
        assert ("normal form" in done.err) == ("normal form" in verified.err)
        return str(done.err)

    assert "(NFC): decoding gives the normal form" in encode(tmp_path / "nfc")
    assert "normal form" not in encode(model_dir)
    assert "normal form" in run("verify", tmp_path / "nfc").err


def test_nothing_is_said_twice(tmp_path: Path, model_dir: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("the and " * 50)
    small = run("plan", "--input", source)
    assert "1 unit of 400 bytes, from 1 range of files" in small.out
    encode = ("encode", "--input", source, "--tokenizer", model_dir, "--output")
    one = run(*encode, tmp_path / "one")
    assert "bytes of text    400\n" in one.out
    assert "by unit" not in one.out
    trained = run("train", "--input", source, "--vocab-size", 260, "--output", tmp_path / "t")
    assert "bytes of text    400\n" in trained.out
    source.write_text("the and " * 50 + "x" * 700)
    several = ("--range-bytes", 500)
    assert "bytes of text    1,100 (1.1 kB)\n" in run(*encode, tmp_path / "two", *several).out
    assert re.search(
        r"\d units of \d+ bytes to \d+ bytes", run("plan", "--input", source, *several).out
    )
    assert run("inspect", model_dir, "--text", "").out == "0 tokens\n"
