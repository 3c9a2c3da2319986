"""`beam-bpe train --recipe`, and `--merges` in place of a size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]


def test_merges_in_place_of_a_size(small: Path, tmp_path: Path, run: Run) -> None:
    done = run("train", "--input", small, "--merges", "20,30", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert len(Tokenizer.load(tmp_path / "out" / "276").merges) == 20
    assert len(Tokenizer.load(tmp_path / "out" / "286").merges) == 30


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--recipe", "unigram", "--vocab-size", 300), "unigram"),
        (("--recipe", "wordpiece", "--merges", 9, "--digits", "single"), "wordpiece"),
        (("--recipe", "wordpiece", "--merges", 9, "--preset", "feste"), "--preset feste"),
        (("--merges", 9, "--tie-order", "greatest"), "greatest"),
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
