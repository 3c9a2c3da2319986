"""`beam-bpe train --pretokenizer none`: merges that cross anything but document ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer
from bpe.training import train_raw

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]


def test_raw_training_beyond_the_memory_allowed_is_refused_before_reading(
    tiny: Path, tmp_path: Path, run: Run
) -> None:
    done = run(
        *("train", "--input", tiny, "--pretokenizer", "none", "--vocab-size", 300),
        *("--driver-memory", "1MB", "--engine", "driver", "--output", tmp_path / "out"),
    )
    assert done.code == 1
    assert "--driver-memory allows 1 MB; allow more, or train with --engine rounds" in done.err


@pytest.mark.usefixtures("backend")
def test_raw_training_takes_special_tokens_as_asked(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("abab<|x|>abab<|x|>ba")
    options = ("--vocab-size", 259, "--special-token", "<|x|>", "--min-frequency", 1)
    command = ("train", "--input", source, "--pretokenizer", "none", *options)
    text = run(*command, "--output", tmp_path / "text")
    assert "special text     2 '<|x|>' as ordinary text\n" in text.out
    cut = run(*command, "--output", tmp_path / "cut", "--special-text", "allow")
    assert cut.code == 0, cut.err
    assert "documents        1\n" in cut.out
    assert "special text     2 '<|x|>' where documents were cut\n" in cut.out
    parts = ["abab", "abab", "ba"]
    wanted = train_raw(parts, 259, special_tokens=["<|x|>"], min_frequency=1)
    found = Tokenizer.load(tmp_path / "cut")
    assert found.merges == wanted.merges != Tokenizer.load(tmp_path / "text").merges
    assert found.training["totals"]["special_text"] == {"<|x|>": 2}
    refused = run(*command, "--output", tmp_path / "no", "--special-text", "reject")
    assert refused.code == 1
    assert "a.txt: document 0:0 holds the special token '<|x|>' at byte 4; " in refused.err


def test_rows_that_raw_training_skips_are_listed_and_counted(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "some text"}\nnonsense\n{"text": 3}\n')
    output = tmp_path / "out"
    command = ("train", "--input", source, "--vocab-size", 300, "--pretokenizer", "none")
    done = run(*command, "--output", output, "--on-bad-record", "skip")
    assert done.code == 0, done.err
    assert "rejected         bad_json 1, text_not_string 1" in done.out
    listed = output / "rejects" / "unit-00000.jsonl"
    assert [json.loads(row)["row"] for row in listed.read_text().splitlines()] == [2, 3]
    totals = Tokenizer.load(output).training["totals"]
    assert totals["documents"] == 1
    assert sum(totals["rejects"].values()) == 2
    source.write_text('{"text": "some text"}\n')
    assert run(*command, "--output", output, "--overwrite").code == 0
    assert not listed.exists()
    source.write_text("nonsense\n" * 3 + '{"text": "some text"}\n')
    # One row a unit: the limit is over all of them.
    few = ("--on-bad-record", "skip", "--max-bad-records", 2, "--range-bytes", 9)
    refused = run(*command, "--output", tmp_path / "few", *few)
    assert refused.code == 1
    assert "--max-bad-records=2" in refused.err
