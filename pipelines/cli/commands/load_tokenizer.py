"""The tokenizer that a command line names."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.errors import ModelFileError
from bpe.formats.tokenizer_loading import find_lone_pair, find_published
from bpe.tokenizer import Tokenizer

__all__ = ["NO_MARK", "load_given_tokenizer"]

NO_MARK = "none"
"""In place of a token: what a preset of bytes puts around documents is left out."""

# Of what is none of these, the error of the format that was tried says more.
_OURS = {"shards", "unfinished", "split", "counts", "training", "export", "parent"}


def load_given_tokenizer(arguments: Namespace) -> Tokenizer:
    """The tokenizer of `--tokenizer` and `--pretokenizer`; tells on stderr what had to be guessed.

    Raises:
        ModelFileError: it cannot be loaded; of a folder that is something else of ours, says what
            it is, and what to give.
    """
    path = arguments.tokenizer
    try:
        tokenizer = Tokenizer.load(
            path,
            pretokenizer=arguments.pretokenizer,
            special_tokens=_marks_on_request(arguments, path),
        )
    except ModelFileError as error:
        # Brings Beam, which the command does without.
        from pipelines.shards.artifact_kind import recognize, what_to_give  # noqa: PLC0415

        place = recognize(path)
        if place.kind not in _OURS:
            raise
        remedy = what_to_give(place, tokenizer=True)
        raise ModelFileError(f"{path}: {place.what}; {remedy}") from error
    if path in BYTE_PRESETS and os.path.exists(path):
        sys.stderr.write(
            f"note: {path} is taken as what lies there, not as the preset of that name; move it, "
            "or work in another folder, for the preset\n"
        )
    if arguments.pretokenizer is None:
        _say_what_was_guessed(path, tokenizer)
    return tokenizer


def _marks_on_request(arguments: Namespace, path: str) -> list[str] | None:
    """Special tokens that a preset of bytes has if a document is to be marked, padded, or read."""
    if path not in BYTE_PRESETS or os.path.exists(path):
        return None
    marks = (getattr(arguments, name, None) for name in ("append_eos", "prepend_bos", "pad_id"))
    wanted = [mark for mark in marks if mark not in (None, NO_MARK)]
    return list(BYTE_PRESETS[path].framing_tokens) if wanted else None


def _say_what_was_guessed(path: str, tokenizer: Tokenizer) -> None:
    pair = find_lone_pair(path)
    if pair is not None:
        names = " and ".join(each.name for each in pair)
        sys.stderr.write(
            f"note: {path} is taken as {tokenizer.scheme.name}: {names} do not name their "
            "pre-tokenizer; --pretokenizer says otherwise\n"
        )
    published = find_published(path)
    if published is not None:
        normalizer = f", normalizer {published.normalizer}" if published.normalizer else ""
        sys.stderr.write(
            f"note: {path} is {published.name} (by its sha256): pre-tokenizer "
            f"{published.pretokenizer}{normalizer} and its special tokens are taken as published\n"
        )
