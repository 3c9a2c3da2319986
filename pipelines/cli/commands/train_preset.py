"""`beam-bpe train --preset`: what a preset sets where nothing was given."""

from __future__ import annotations

from argparse import Namespace

from bpe.errors import SettingsError
from pipelines.training.presets import PRESETS

__all__ = ["apply_preset"]


def apply_preset(arguments: Namespace) -> None:
    """Put recipe, size, special tokens and options of a preset in their places.

    What `resolve` puts together, pre-tokenizer, tie order and least frequency, is left to it.

    Raises:
        SettingsError: an option says something else than the preset.
    """
    if arguments.preset is None:
        arguments.recipe = arguments.recipe or "bpe"
        return
    preset = PRESETS[arguments.preset]
    arguments.recipe = arguments.recipe or preset.recipe
    if arguments.vocab_size is None and arguments.merges is None:
        arguments.vocab_size = None if preset.vocab_size is None else [preset.vocab_size]
        arguments.merges = None if preset.merges is None else [preset.merges]
    new = [token for token in arguments.special_token if token not in preset.special_tokens]
    arguments.special_token = [*preset.special_tokens, *new]
    for name, value in preset.options.items():
        given = getattr(arguments, name)
        if given not in (None, value):
            shown = f"--{name.replace('_', '-')}"
            raise SettingsError(
                f"{shown} {given}: --preset {arguments.preset} means {shown} {value}; leave one "
                "of them out"
            )
        setattr(arguments, name, value)
