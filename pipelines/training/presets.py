r"""Settings of training by the name of what they reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bpe.errors import SettingsError
from bpe.formats.published_ranks import PUBLISHED_FILES
from bpe.recipes.registry import RECIPES, Recipe

__all__ = ["PRESETS", "Preset", "resolve"]

# Words as in the first stage of SuperBPE's published code: o200k's, without contractions.
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUPERBPE_WORDS = (
    rf"regex:[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Preset:
    """What a name stands for.

    Attributes:
        pretokenizer, tie_order, min_frequency: as the options of these names.
        two_stages: whether `--superbpe-from` has to be given.
        recipe: as `--recipe`.
        vocab_size, merges: as the options of these names, unless one of them is given; None for
            neither.
        special_tokens: as `--special-token`, before those that are given.
        options: of the recipe, by their names there.
        of: what was published with these settings.
        differs: what of the published recipe is not in the preset.
    """

    pretokenizer: str = "gpt2"
    tie_order: str = "hf"
    min_frequency: int = 2
    two_stages: bool = False
    recipe: str = "bpe"
    vocab_size: int | None = None
    merges: int | None = None
    special_tokens: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    of: str = ""
    differs: str = ""

    @property
    def has_size(self) -> bool:
        """Whether it says how large the vocabulary is."""
        return self.vocab_size is not None or self.merges is not None

    def settings(self) -> Iterator[tuple[str, str]]:
        """Options with their values, as the command line has them."""
        yield "--recipe", self.recipe
        for name in ("vocab_size", "merges"):
            if getattr(self, name) is not None:
                yield f"--{name.replace('_', '-')}", str(getattr(self, name))
        yield "--pretokenizer", self.pretokenizer
        if self.tie_order:
            yield "--tie-order", self.tie_order
        yield "--min-frequency", str(self.min_frequency)
        for name, value in self.options.items():
            yield f"--{name.replace('_', '-')}", str(value)
        if self.special_tokens:
            shown = " ".join(self.special_tokens[:_SHOWN_TOKENS])
            more = len(self.special_tokens) - _SHOWN_TOKENS
            yield "--special-token", shown + (f" and {more} others" if more > 0 else "")


_SHOWN_TOKENS = 3
_SPECIALS = {each.name: tuple(each.special_tokens) for each in PUBLISHED_FILES.values()}

PRESETS = {
    "gpt2": Preset(
        vocab_size=50_257,
        special_tokens=_SPECIALS["r50k_base"],
        of="GPT-2 (2019), r50k_base",
    ),
    "gpt4": Preset(
        "cl100k",
        vocab_size=100_261,
        special_tokens=_SPECIALS["cl100k_base"],
        of="GPT-4 (2023), cl100k_base: 100,256 tokens and 5 special ones",
        differs="special tokens have the ids after the last token, without gaps",
    ),
    "llama3": Preset(
        "llama3",
        vocab_size=128_256,
        special_tokens=_SPECIALS["Llama 3"],
        of="Llama 3 (2024): 128,000 tokens and 256 special ones",
        differs="Llama's first 100,256 tokens are those of cl100k_base: see --extend",
    ),
    "bert": Preset(
        "bert",
        "id",
        5,
        recipe="wordpiece",
        vocab_size=28_996,
        of="BERT (2018), the cased vocabulary",
        differs="the trainer was not published, nor its least frequency; Chinese characters are "
        "not set apart",
    ),
    "t5": Preset(
        "whitespace",
        "",
        1,
        recipe="unigram",
        vocab_size=32_000,
        of="T5 (2020): 32,000 pieces by sentencepiece",
        differs="texts are not normalized, every character is kept, and <s> is there; the models' "
        "100 extra ids come after",
    ),
    "superbpe": Preset(
        _SUPERBPE_WORDS,
        "hf",
        1,
        two_stages=True,
        of="SuperBPE (2025): give --vocab-size and --superbpe-from",
    ),
    "feste": Preset(
        "none",
        "bytes",
        1,
        of="Feste: give --vocab-size",
        differs="beyond 2,256 tokens it trains on 200,000 bytes: --sample-bytes feste-200000",
    ),
    "sennrich": Preset(
        "spaces",
        "greatest",
        2,
        recipe="sennrich",
        merges=89_500,
        options={"end_mark": "separate"},
        of="Sennrich et al. (2016), joint BPE of English and German",
        differs="subword-nmt since its version 0.2 has --end-mark attached",
    ),
}
"""Presets by name."""


def resolve(
    name: str | None,
    pretokenizer: str | None,
    tie_order: str | None,
    min_frequency: int | None,
    superbpe_from: int | None,
    recipe: Recipe = RECIPES["bpe"],
) -> Preset:
    """The settings of a preset, or the usual ones, with what the user gave in their place.

    Args:
        name: of a preset, or None.
        pretokenizer: as given; None if not; so for the others.
        tie_order: likewise.
        min_frequency: likewise.
        superbpe_from: likewise.
        recipe: whose usual settings are taken without a preset.

    Raises:
        SettingsError: what was given contradicts the preset.
    """
    if name and recipe.name != PRESETS[name].recipe:
        raise SettingsError(f"--preset {name}: does not go with --recipe {recipe.name}")
    usual = Preset(recipe.pretokenizer, next(iter(recipe.tie_orders), ""), recipe.min_frequency)
    preset = PRESETS[name] if name else usual
    given = {
        "pretokenizer": pretokenizer,
        "tie_order": tie_order,
        "min_frequency": min_frequency,
    }
    for option, value in given.items():
        meant = getattr(preset, option)
        if name and value is not None and value != meant:
            shown = f"--{option.replace('_', '-')}"
            raise SettingsError(
                f"{shown} {value}: --preset {name} means {shown} {meant}; leave one of them out"
            )
    if name and preset.two_stages != (superbpe_from is not None):
        need = "needs" if preset.two_stages else "does not go with"
        raise SettingsError(f"--preset {name}: {need} --superbpe-from")
    return Preset(
        pretokenizer or preset.pretokenizer,
        tie_order or preset.tie_order,
        preset.min_frequency if min_frequency is None else min_frequency,
        preset.two_stages,
    )
