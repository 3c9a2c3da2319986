"""`beam-bpe train --extend`: the tokenizer that is gone on from, and what goes with it."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from bpe.errors import SettingsError, VocabularyError
from bpe.extension import check_base
from bpe.tokenizer import Tokenizer
from pipelines.shards.tokenizer_files import as_tokenizer

__all__ = ["extension_settings", "load_base"]


def load_base(arguments: Namespace) -> Tokenizer | None:
    """The tokenizer of --extend, if it is given.

    Raises:
        ModelFileError: it cannot be loaded.
        SettingsError: it cannot be extended, or another option does not go with that.
    """
    if arguments.extend is None:
        return None
    for option, is_given in (
        ("--recipe", arguments.recipe != "bpe"),
        ("--preset", arguments.preset is not None),
        ("--superbpe-from", arguments.superbpe_from is not None),
        ("--digits", arguments.digits is not None),
        ("--engine rounds", arguments.engine == "rounds"),
        ("--tie-order first", arguments.tie_order == "first"),
    ):
        if is_given:
            raise SettingsError(f"{option}: does not go with --extend; leave it out")
    if os.path.realpath(arguments.extend) == os.path.realpath(arguments.output):
        raise SettingsError(
            f"--output {arguments.output}: holds the tokenizer of --extend; give another folder"
        )
    base = as_tokenizer(arguments.extend)
    try:
        check_base(base)
    except VocabularyError as error:
        raise SettingsError(f"--extend {arguments.extend}: {error}") from error
    _check_scheme(arguments, base.scheme.name)
    return base


def _check_scheme(arguments: Namespace, scheme: str) -> None:
    if scheme == "none":
        raise SettingsError(
            f"--extend {arguments.extend}: its merges cross words (pre-tokenizer none), and only "
            "words are counted; train on all of the text instead"
        )
    if arguments.pretokenizer not in (None, scheme):
        raise SettingsError(
            f"--pretokenizer {arguments.pretokenizer}: --extend {arguments.extend} is of "
            f"{scheme!r}; leave it out"
        )


def extension_settings(arguments: Namespace, base: Tokenizer) -> dict[str, Any]:
    """What `TrainSettings` takes of a training that goes on from `base`.

    Raises:
        SettingsError: a size that the tokenizer has already.
    """
    new = [each for each in arguments.special_token if each not in base.special_tokens]
    least = base.vocab_size + len(new)
    sizes = arguments.vocab_size or [least + each for each in arguments.merges]
    if min(sizes) <= least:
        raise SettingsError(
            f"--vocab-size {','.join(map(str, sizes))}: --extend {arguments.extend} has "
            f"{base.vocab_size:,} tokens, and {len(new)} special tokens are new; ask for more"
        )
    tie_order = base.tie_order if base.tie_order not in (None, "first") else "hf"
    return {
        "vocab_sizes": tuple(sizes),
        "pretokenizer": base.scheme.name,
        "tie_order": arguments.tie_order or tie_order,
        "min_frequency": arguments.min_frequency or 2,
        "special_tokens": (*base.special_tokens, *new),
        "extends": base.digest,
    }
