"""`beam-bpe train --extend`: from text and from counts, to several sizes, again and refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bpe import Tokenizer, count_files, extend


@pytest.fixture
def base(small: Path, run: Callable, tmp_path: Path) -> Path:
    """A tokenizer of half of the text."""
    (tmp_path / "half.txt").write_bytes(small.read_bytes()[:20_000])
    done = run(
        *("train", "--input", tmp_path / "half.txt", "--output", tmp_path / "base"),
        *("--vocab-size", 400, "--special-token", "<|end|>", "--tie-order", "bytes"),
    )
    assert done.code == 0, done.err
    return tmp_path / "base"


def test_one_command_gives_what_the_library_gives(
    base: Path, small: Path, run: Callable, tree_bytes: Callable, tmp_path: Path
) -> None:
    command = ("train", "--extend", base, "--vocab-size", "450,500", "--special-token", "<x>")
    for output in ("one", "two"):
        done = run(*command, "--input", small, "--range-bytes", 9000, "--output", tmp_path / output)
        assert done.code == 0, done.err
    one, two = tree_bytes(tmp_path / "one"), tree_bytes(tmp_path / "two")
    models = [name for name in one if not name.startswith(("counts", "__beam"))]
    assert {name: one[name] for name in models} == {name: two[name] for name in models}
    old = Tokenizer.load(base)
    for size in (450, 500):
        made = Tokenizer.load(tmp_path / "one" / str(size))
        assert made == extend(count_files(small, "gpt2"), old, size, special_tokens=["<x>"])
        assert made.vocab_size == size
        assert made.token_id("<|end|>") == old.token_id("<|end|>") == 399
    again = run(*command, "--input", small, "--range-bytes", 9000, "--output", tmp_path / "one")
    assert again.code == 0
    assert "nothing to do" in again.err
    # What is left of an interrupted run goes on from its counts.
    (tmp_path / "one" / "450" / "config.json").unlink()
    resumed = run(*command, "--input", small, "--range-bytes", 9000, "--output", tmp_path / "one")
    assert "kept the counts" in resumed.err
    assert tree_bytes(tmp_path / "one") == one
    counts = tmp_path / "one" / "counts"
    done = run(*command, "--from-counts", counts, "--output", tmp_path / "three")
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "three" / "500") == Tokenizer.load(tmp_path / "one" / "500")


def test_a_number_of_merges_comes_on_top(
    base: Path, small: Path, run: Callable, tmp_path: Path
) -> None:
    done = run(
        *("train", "--extend", base, "--merges", 30, "--input", small),
        *("--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "out").vocab_size == 430


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vocab-size", 400], "has 400 tokens, and 0 special tokens are new"),
        (["--vocab-size", 500, "--pretokenizer", "cl100k"], "is of 'gpt2'; leave it out"),
        (["--vocab-size", 500, "--engine", "rounds"], "--engine rounds: does not go with --extend"),
        (["--vocab-size", 500, "--tie-order", "first"], "--tie-order first: does not go"),
        (["--vocab-size", 500, "--preset", "feste"], "--preset: does not go"),
        (["--vocab-size", 500, "--driver-memory", "1KiB"], "--extend cannot be trained in rounds"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    options: list[object], message: str, base: Path, small: Path, run: Callable, tmp_path: Path
) -> None:
    done = run(
        *("train", "--extend", base, "--input", small, "--output", tmp_path / "out", *options)
    )
    assert done.code == 1
    assert message in done.err


def test_other_kinds_and_places_are_refused(
    base: Path, small: Path, run: Callable, tmp_path: Path
) -> None:
    train = ("train", "--input", small, "--vocab-size", 500)
    done = run(*train, "--extend", "byt5", "--output", tmp_path / "out")
    assert "byt5 numbers bytes" in done.err
    done = run(*train, "--extend", base, "--output", base)
    assert "holds the tokenizer of --extend" in done.err
    raw = run(
        *("train", "--input", small, "--vocab-size", 260, "--pretokenizer", "none"),
        *("--output", tmp_path / "raw"),
    )
    assert raw.code == 0, raw.err
    done = run(*train, "--extend", tmp_path / "raw", "--output", tmp_path / "out")
    assert "its merges cross words" in done.err
