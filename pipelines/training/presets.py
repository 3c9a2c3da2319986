r"""Settings of training by the name of what they reproduce."""

from __future__ import annotations

from dataclasses import dataclass

from bpe.errors import SettingsError
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
    """

    pretokenizer: str = "gpt2"
    tie_order: str = "hf"
    min_frequency: int = 2
    two_stages: bool = False


PRESETS = {
    "feste": Preset("none", "bytes", 1),
    "superbpe": Preset(_SUPERBPE_WORDS, "hf", 1, two_stages=True),
}
"""Presets by name. Feste trains on the first 200,000 bytes of longer texts for more than 2,256
tokens; that is `--sample-bytes feste-200000`, and not part of the preset."""


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
    if name and recipe.name != "bpe":
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
