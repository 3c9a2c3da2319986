"""`beam-bpe train --recipe`, and `--merges` in place of a size."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.counting import count_pretokens
from bpe.recipes.registry import RECIPES
from bpe.tokenizer import Tokenizer
from bpe.training import train

Run = Callable[..., Any]


def test_merges_in_place_of_a_size(small: Path, tmp_path: Path, run: Run) -> None:
    done = run("train", "--input", small, "--merges", "20,30", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert len(Tokenizer.load(tmp_path / "out" / "276").merges) == 20
    assert len(Tokenizer.load(tmp_path / "out" / "286").merges) == 30


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--recipe", "unigram", "--merges", 9), "unigram"),
        (("--recipe", "wordpiece", "--merges", 9, "--digits", "single"), "wordpiece"),
        (("--recipe", "wordpiece", "--merges", 9, "--preset", "feste"), "--preset feste"),
        (("--merges", 9, "--tie-order", "greatest"), "greatest"),
        (("--recipe", "sennrich", "--merges", 9, "--pretokenizer", "gpt2"), "use spaces"),
        (("--recipe", "sennrich", "--merges", 9, "--max-word-chars", 4), "--recipe wordpiece"),
        (("--merges", 9, "--vocab-size", 300), "not allowed with"),
    ],
)
def test_what_does_not_go_together_is_refused_before_work(
    options: tuple[Any, ...], named: str, small: Path, tmp_path: Path, run: Run
) -> None:
    refused = run("train", "--input", small, "--output", tmp_path / "out", *options)
    assert refused.code in {1, 2}
    assert named in refused.err
    assert not (tmp_path / "out").exists()


def test_wordpiece_from_text_to_shards(small: Path, tmp_path: Path, run: Run) -> None:
    pytest.importorskip("tokenizers")
    given = ("train", "--input", small, "--recipe", "wordpiece", "--merges", "20,60")
    given = (*given, "--limit-alphabet", 50, "--max-word-chars", 30)
    done = run(*given, "--output", tmp_path / "out")
    assert done.code == 0, done.err
    again = run(*given, "--output", tmp_path / "out")
    assert "nothing to do" in again.err
    other = run(*given, "--min-frequency", 2, "--output", tmp_path / "out")
    assert "min_frequency: was 5, now 2" in other.err
    large = Tokenizer.load(tmp_path / "out" / "60")
    assert (tmp_path / "out" / "60" / "vocab.txt").read_bytes().count(b"\n") == large.vocab_size
    assert large.vocab_size - Tokenizer.load(tmp_path / "out" / "20").vocab_size == 40
    counted = run(
        *("train", "--from-counts", tmp_path / "out" / "counts", "--recipe", "wordpiece"),
        *("--merges", 60, "--limit-alphabet", 50, "--max-word-chars", 30),
        *("--output", tmp_path / "again"),
    )
    assert counted.code == 0, counted.err
    assert Tokenizer.load(tmp_path / "again").digest == large.digest
    shards = tmp_path / "shards"
    encode = ("encode", "--tokenizer", tmp_path / "out" / "60", "--input", small)
    assert run(*encode, "--output", shards).code == 0
    assert run("verify", shards, "--input", small).code == 0
    (tmp_path / "other.txt").write_text("\u2603the \u2603\u2603 the\n")
    encode = ("encode", "--tokenizer", tmp_path / "out" / "60", "--input", tmp_path / "other.txt")
    assert "accepted         unknown_tokens 2" in run(*encode, "--output", tmp_path / "other").out


def test_sennrich_from_text_to_shards_and_pieces(
    small: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("train", "--input", small, "--recipe", "sennrich", "--end-mark", "attached")
    done = run(*given, "--vocab-size", "150,200", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    model = tmp_path / "out" / "200"
    assert Tokenizer.load(model).vocab_size == 200
    codes = (model / "codes").read_text().splitlines()
    assert (tmp_path / "out" / "150" / "codes").read_text().splitlines() == codes[:-50]
    by_ranges = run(
        *given, "--vocab-size", 200, "--range-bytes", 5000, "--output", tmp_path / "ranges"
    )
    assert by_ranges.code == 0, by_ranges.err
    assert (tmp_path / "ranges" / "codes").read_bytes() == (model / "codes").read_bytes()
    shards = tmp_path / "shards"
    assert run("encode", "--tokenizer", model, "--input", small, "--output", shards).code == 0
    assert run("verify", shards, "--input", small).code == 0
    (tmp_path / "other.txt").write_text("\u2603 the \u2603\u2603 end\n")
    encode = ("encode", "--tokenizer", model, "--input", tmp_path / "other.txt")
    done = run(*encode, "--output", tmp_path / "other")
    assert "accepted         unknown_tokens 3" in done.out
    assert run("verify", tmp_path / "other", "--input", tmp_path / "other.txt").code == 0
    text = "the end\n  of the\u2603 play"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
    shown = run("encode-text", "--tokenizer", model, "--pieces")
    assert shown.code == 0, shown.err
    assert shown.out.replace("@@ ", "") == text


@pytest.mark.parametrize("extra", [("--engine", "rounds"), ("--driver-memory", "1kB")])
def test_rounds_are_refused_by_name(
    extra: tuple[str, str], small: Path, tmp_path: Path, run: Run
) -> None:
    options = ("train", "--input", small, "--recipe", "wordpiece", "--merges", 9, *extra)
    refused = run(*options, "--output", tmp_path / "out")
    assert refused.code == 1
    assert "--recipe wordpiece cannot be trained in rounds" in refused.err


@pytest.mark.parametrize("recipe", ["wordpiece", "sennrich"])
def test_ties_by_place_do_not_depend_on_ranges(
    recipe: str, small: Path, tmp_path: Path, run: Run
) -> None:
    if recipe == "wordpiece":
        pytest.importorskip("tokenizers")
    digests = set()
    for size in ("3kB", "1GB"):
        done = run(
            *("train", "--input", small, "--recipe", recipe, "--tie-order", "first"),
            *("--merges", 80, "--range-bytes", size, "--output", tmp_path / size),
        )
        assert done.code == 0, done.err
        digests.add(Tokenizer.load(tmp_path / size).digest)
    scheme = RECIPES[recipe].pretokenizer
    counts = count_pretokens(small.read_bytes(), scheme, first_positions=True)
    made = train(counts, merges=80, recipe=recipe, pretokenizer=scheme, tie_order="first")
    assert digests == {made.digest}
