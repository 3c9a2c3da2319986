"""`beam-bpe train --recipe unigram`: seeds from the workers, pieces as of the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bpe import Tokenizer, count_files, train

pytest.importorskip("sentencepiece")

COMMAND = ("train", "--recipe", "unigram", "--vocab-size")


def test_one_command_gives_what_the_library_gives(
    small: Path, run: Callable, tree_bytes: Callable, tmp_path: Path
) -> None:
    command = (*COMMAND, "300,400", "--input", small, "--range-bytes", 9000)
    done = run(*command, "--output", tmp_path / "one", "--special-token", "<x>")
    assert done.code == 0, done.err
    assert not (tmp_path / "one" / "seeds").exists()
    for size in (300, 400):
        made = Tokenizer.load(tmp_path / "one" / str(size))
        expected = train(
            count_files(small, "whitespace"),
            size,
            pretokenizer="whitespace",
            recipe="unigram",
            special_tokens=["<x>"],
        )
        assert made.digest == expected.digest
        assert made.vocab_size == size
    one = tree_bytes(tmp_path / "one")
    # An interrupted run goes on from its counts; what is left of its seeds goes.
    (tmp_path / "one" / "400" / "config.json").unlink()
    (tmp_path / "one" / "seeds").mkdir()
    (tmp_path / "one" / "seeds" / "bucket-00999.arrow").write_bytes(b"cut")
    again = run(*command, "--output", tmp_path / "one", "--special-token", "<x>")
    assert again.code == 0, again.err
    assert "kept the counts" in again.err
    assert tree_bytes(tmp_path / "one") == one
    third = run(*command, "--output", tmp_path / "one", "--special-token", "<x>")
    assert "nothing to do" in third.err
    counted = run(
        *(*COMMAND, 400, "--from-counts", tmp_path / "one" / "counts"),
        *("--special-token", "<x>", "--output", tmp_path / "counted"),
    )
    assert counted.code == 0, counted.err
    assert Tokenizer.load(tmp_path / "counted") == Tokenizer.load(tmp_path / "one" / "400")


def test_options_decide_and_are_recorded(small: Path, run: Callable, tmp_path: Path) -> None:
    options = ("--max-words", 500, "--byte-fallback", "--no-split-by-number", "--min-frequency", 2)
    done = run(*COMMAND, 500, "--input", small, *options, "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert "left out of training" in done.err
    made = Tokenizer.load(tmp_path / "out")
    expected = train(
        count_files(small, "whitespace"),
        500,
        pretokenizer="whitespace",
        recipe="unigram",
        min_frequency=2,
        recipe_options={"max_words": 500, "byte_fallback": True, "split_by_number": False},
    )
    assert made.digest == expected.digest
    assert made.training["settings"]["max_words"] == 500
    other = run(*COMMAND, 500, "--input", small, "--output", tmp_path / "out")
    assert other.code == 1
    assert "max_words" in other.err


@pytest.mark.slow
def test_shards_of_fields_are_verified(small: Path, run: Callable, tmp_path: Path) -> None:
    done = run(*COMMAND, 300, "--input", small, "--output", tmp_path / "tok")
    assert done.code == 0, done.err
    encode = ("encode", "--tokenizer", tmp_path / "tok", "--input", small, "--pack", 64)
    done = run(*encode, "--append-eos", "</s>", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert run("verify", tmp_path / "out", "--input", small).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--merges", 9), "makes no merges"),
        (("--vocab-size", 300, "--driver-memory", "1kB"), "or give --max-words"),
        (("--vocab-size", 300, "--pretokenizer", "gpt2"), "use whitespace"),
        (("--vocab-size", 9_999_999), "sentencepiece does not train it"),
        (("--vocab-size", 300, "--limit-alphabet", 5), "belongs to --recipe wordpiece"),
    ],
)
def test_what_does_not_go_is_refused(
    options: tuple[object, ...], message: str, small: Path, run: Callable, tmp_path: Path
) -> None:
    done = run(
        *("train", "--recipe", "unigram", "--input", small),
        *("--output", tmp_path / "out", *options),
    )
    assert done.code == 1
    assert message in done.err
