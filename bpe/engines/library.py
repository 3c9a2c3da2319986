"""What is asked of another tokenizer library, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bpe.encoding.added_tokens import AddedToken
from bpe.errors import BackendError, ModelFileError

__all__ = ["ENGINES", "OWN_ENGINES", "Encoded", "Library", "import_library", "open_library"]

ENGINES = ("tokenizers", "sentencepiece", "sentencepiece_fields", "sennrich")
"""What ids may come from: libraries, which the extra `hf` installs, and our own."""

OWN_ENGINES = ("sennrich",)
"""Those of `ENGINES` that are the native core, used as a library is."""

Encoded = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]
"""Ids of all texts, one after the other, and how many each text has."""


class Library(Protocol):
    """A library with one tokenizer's file open; several threads may use it.

    Attributes:
        name: of `ENGINES`.
        version: of the library.
        kind: what the file is, for messages.
        post_processor: what the file would put around each text, as tokenizer.json has it.
        finds_specials: whether it can find special tokens in texts by itself.
        unknown_id: id of what it has no other token for; None if there is none.
        words_apart: whether two words with a blank between them have the ids that each has alone,
            so that words can be encoded once.
        words_are_fields: whether that is so by definition: a text is what stands between its
            blanks, also between two of them, and each has a blank's sign before it.
    """

    name: str
    version: str
    kind: str
    post_processor: Any
    finds_specials: bool
    unknown_id: int | None
    words_apart: bool
    words_are_fields: bool

    def tokens(self) -> dict[int, bytes]:
        """Id to text."""

    def added_tokens(self) -> list[AddedToken]:
        """Those that the library looks for in texts, or that stand for no text."""

    def encode(self, texts: Sequence[str], *, specials: bool, threads: int) -> Encoded:
        """Ids of each text; specials: whether the text of a special token is that token."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens included."""


def open_library(engine: str, content: bytes) -> Library:
    """The library of that name, with a file's content.

    Raises `ModelFileError` for content or an engine that is none, `BackendError` for a library
    that is not installed.
    """
    if engine not in ENGINES:
        raise ModelFileError(f"engine {engine!r} is not known: it is one of {', '.join(ENGINES)}")
    # Each adapter imports its library, which not everybody has.
    adapter = import_module(f"bpe.engines.{engine}_library")
    opened: Library = adapter.open_content(content)
    return opened


def import_library(name: str) -> Any:
    """The module of that name; `BackendError` with the remedy if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise BackendError(
            f"this tokenizer needs the library {name!r}, which is not installed here ({error}); "
            "pip install 'beam-bpe[hf]', on every worker too"
        ) from error


def flatten(rows: Sequence[Sequence[int]]) -> Encoded:
    """Ids of lists, one after the other, and the lengths of the lists."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    total = int(lengths.sum())
    ids = np.fromiter((each for row in rows for each in row), np.uint32, total)
    return ids, lengths
