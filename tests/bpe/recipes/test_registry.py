"""Recipes by name: what is refused, and that `merges` is the same as a size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe.counting import count_pretokens
from bpe.errors import BackendError, SettingsError
from bpe.file_training import train_from_files
from bpe.recipes.registry import RECIPES, RecipeSettings
from bpe.training import train

COUNTS = {b"low": 5, b"lower": 2, b" low": 3}


def test_a_number_of_merges_is_a_size() -> None:
    by_merges = train(COUNTS, merges=2, pretokenizer="gpt2", special_tokens=["<|x|>"])
    by_size = train(COUNTS, 256 + 2 + 1, pretokenizer="gpt2", special_tokens=["<|x|>"])
    assert by_merges.digest == by_size.digest
    assert len(by_merges.merges) == 2


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"recipe": "wordpeace", "merges": 1}, "wordpeace"),
        ({}, "vocab_size or merges"),
        ({"merges": 1, "vocab_size": 300}, "vocab_size or merges"),
        ({"merges": 1, "recipe_options": {"end_mark": "x"}}, "end_mark"),
        ({"merges": 1, "tie_order": "greatest"}, "greatest"),
        ({"merges": 1, "recipe": "wordpiece", "max_token_bytes": 5}, "wordpiece"),
        ({"merges": 1, "recipe": "unigram"}, "unigram"),
    ],
)
def test_what_a_recipe_does_not_take_is_refused_by_name(given: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        train(COUNTS, pretokenizer="gpt2", **given)


def test_files_train_as_their_counts(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "a.txt").write_text("low lower, lowest\n" * 9)
    counts = count_pretokens((tmp_path / "a.txt").read_bytes(), "bert")
    asked = {"recipe": "wordpiece", "merges": 5, "recipe_options": {"max_word_chars": 4}}
    made = train_from_files(tmp_path / "a.txt", **asked)
    assert made.digest == train(counts, pretokenizer="bert", **asked).digest
    with pytest.raises(SettingsError, match="end_mark"):
        train_from_files(tmp_path / "none.txt", merges=5, recipe_options={"end_mark": "separate"})


def test_a_library_that_is_missing_is_named_before_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe.recipes.registry.find_spec", lambda _: None)
    with pytest.raises(BackendError, match=r"tokenizers.*beam-bpe\[hf\]"):
        RecipeSettings("wordpiece", "bert", (300,))


def test_each_recipe_takes_its_own_defaults() -> None:
    for recipe in RECIPES.values():
        settings = RecipeSettings(recipe.name, recipe.pretokenizer, (300,))
        assert settings.min_frequency == recipe.min_frequency
        assert settings.tie_order == next(iter(recipe.tie_orders), None)
