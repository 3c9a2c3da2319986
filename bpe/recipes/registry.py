"""The recipes by name: what each takes, and where its trainer is.

A recipe that is new here needs an entry of `RECIPES`, and a module `bpe.recipes.NAME` with a
function `train_sizes` that is a `Trainer`. Byte-level BPE has no such module: `bpe.training` is it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from bpe.errors import BackendError, SettingsError

if TYPE_CHECKING:
    import pyarrow as pa

    from bpe.tokenizer import Tokenizer

__all__ = ["RECIPES", "Recipe", "RecipeSettings", "Trainer", "get_recipe", "train_recipe"]


@dataclass(frozen=True)
class Recipe:
    """What a recipe takes.

    Attributes:
        name: as in settings.
        pretokenizer: scheme that it takes if none is given.
        tie_orders: that it knows, its own default first.
        min_frequency: its default.
        merges: whether it merges, so that a number of merges can be asked for.
        options: names of options that it takes besides those of all recipes, and their defaults.
        pretokenizers: the only ones that it takes; empty for any.
        library: that it needs, and its extra; None for none.
    """

    name: str
    pretokenizer: str
    tie_orders: tuple[str, ...]
    min_frequency: int
    merges: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    pretokenizers: tuple[str, ...] = ()
    library: tuple[str, str] | None = None


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("bpe", "gpt2", ("hf", "id", "bytes", "first"), 2),
        Recipe(
            "wordpiece",
            "bert",
            ("id", "bytes", "first"),
            5,
            options={"limit_alphabet": None, "max_word_chars": 100},
            pretokenizers=("bert", "whitespace"),
            library=("tokenizers", "hf"),
        ),
        Recipe(
            "unigram",
            "whitespace",
            (),
            1,
            merges=False,
            pretokenizers=("whitespace",),
            library=("sentencepiece", "unigram"),
            options={
                "byte_fallback": False,
                "split_by_unicode_script": True,
                "split_by_number": True,
                "split_digits": False,
                "user_defined_symbols": [],
                "max_sentencepiece_length": 16,
                "seed_sentencepiece_size": 1_000_000,
                "num_threads": 1,
                "max_words": None,
            },
        ),
        Recipe(
            "sennrich",
            "spaces",
            ("greatest", "first"),
            2,
            options={"end_mark": "attached"},
            pretokenizers=("spaces",),
        ),
    )
}
"""Recipes by name."""


@dataclass(frozen=True)
class RecipeSettings:
    """What decides a vocabulary, besides the counts.

    Attributes:
        recipe: of `RECIPES`.
        pretokenizer: scheme that made the words.
        sizes: how many tokens, or merges, each vocabulary has; ascending.
        by_merges: whether `sizes` are numbers of merges.
        tie_order: of the recipe's.
        min_frequency: see the recipe.
        special_tokens: further ones, which get the last ids, in this order.
        options: all of `Recipe.options`.

    Raises:
        SettingsError: something that the recipe does not take.
        BackendError: the library that it needs is not installed.
    """

    recipe: str
    pretokenizer: str
    sizes: tuple[int, ...]
    by_merges: bool = False
    tie_order: str | None = None
    min_frequency: int | None = None
    special_tokens: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        recipe = get_recipe(self.recipe)
        if recipe.pretokenizers and self.pretokenizer not in recipe.pretokenizers:
            raise SettingsError(
                f"recipe {self.recipe!r} does not go with the pre-tokenizer "
                f"{self.pretokenizer[:80]!r}: use {' or '.join(recipe.pretokenizers)}"
            )
        tie_order = self.tie_order or next(iter(recipe.tie_orders), None)
        if tie_order is not None and tie_order not in recipe.tie_orders:
            known = ", ".join(recipe.tie_orders) or "none"
            raise SettingsError(
                f"recipe {self.recipe!r} does not know the tie order {tie_order!r}: it has {known}"
            )
        least = recipe.min_frequency if self.min_frequency is None else self.min_frequency
        if least < 1:
            raise SettingsError(f"min_frequency is {least}: it must be at least 1")
        if self.by_merges and not recipe.merges:
            raise SettingsError(
                f"recipe {self.recipe!r} makes no merges: give the size of the vocabulary"
            )
        unknown = sorted(set(self.options) - set(recipe.options))
        if unknown:
            taken = ", ".join(recipe.options) or "none"
            raise SettingsError(
                f"recipe {self.recipe!r} has no option {unknown[0]!r}: it has {taken}"
            )
        _check_special_tokens(self.special_tokens)
        _check_library(recipe)
        object.__setattr__(self, "tie_order", tie_order)
        object.__setattr__(self, "min_frequency", least)
        object.__setattr__(self, "options", {**recipe.options, **self.options})


class Trainer(Protocol):
    """Trains by one recipe."""

    def __call__(
        self,
        words: pa.LargeBinaryArray,
        counts: pa.Int64Array,
        firsts: pa.Int64Array | None,
        settings: RecipeSettings,
        *,
        progress: Callable[[int, int], None] | None,
        training_record: Mapping[str, Any],
    ) -> dict[int, Tokenizer]:
        """One tokenizer for each of `settings.sizes`, whose training record holds the given one.

        words: distinct, ascending by bytes or in any order. firsts: where each first occurs, where
        the tie order is `first`.
        Raises `SettingsError` for what cannot be honoured, `CountTableError` for counts that no
        counting can have made.
        """


def get_recipe(name: str) -> Recipe:
    """The recipe of a name; `SettingsError` for another name."""
    if name not in RECIPES:
        raise SettingsError(f"recipe {name!r} is not known: use one of {_names(RECIPES.values())}")
    return RECIPES[name]


def train_recipe(
    words: pa.LargeBinaryArray,
    counts: pa.Int64Array,
    firsts: pa.Int64Array | None,
    settings: RecipeSettings,
    *,
    progress: Callable[[int, int], None] | None = None,
    training_record: Mapping[str, Any] | None = None,
) -> dict[int, Tokenizer]:
    """Train by another recipe than `bpe`; see `Trainer`."""
    # Each recipe imports what it needs, which not everybody has.
    module = import_module(f"bpe.recipes.{settings.recipe}")
    trainer: Trainer = module.train_sizes
    record = {"recipe": settings.recipe, **(training_record or {})}
    return trainer(words, counts, firsts, settings, progress=progress, training_record=record)


def _check_special_tokens(tokens: Sequence[str]) -> None:
    for token in tokens:
        if not token or tokens.count(token) > 1:
            fault = "twice" if token else "empty"
            raise SettingsError(f"special token {token!r} is {fault}: give each its own text")


def _check_library(recipe: Recipe) -> None:
    if recipe.library is not None and find_spec(recipe.library[0]) is None:
        name, extra = recipe.library
        raise BackendError(
            f"recipe {recipe.name!r} needs the library {name!r}, which is not installed here; "
            f"pip install 'beam-bpe[{extra}]'"
        )


def _names(recipes: Any) -> str:
    return ", ".join(recipe.name for recipe in recipes)
