"""The content of a tokenizer whose ids another library makes: a file, and what it holds.

It stands where a `TokenizerModel` does. Byte-level BPE never comes here: what the core encodes
exactly, it encodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from bpe.encoding import vocabulary_checks
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.missing_bytes import MissingBytes
from bpe.encoding.token_table import TokenTable
from bpe.engines.library import Library, open_library
from bpe.errors import VocabularyError
from bpe.pretokenizing.schemes import Scheme, get_scheme

__all__ = ["LibraryModel"]

_HEADER = "beam-bpe library tokenizer content 1"


@dataclass(frozen=True, eq=False)
class LibraryModel(TokenTable):
    """A tokenizer's file, and the name of the library that encodes with it.

    Attributes:
        engine: `tokenizers` or `sentencepiece`.
        content: the file as it is: a tokenizer.json, or a SentencePiece `.model`.
        training: record of the training, JSON values only; empty for imports.

    Raises `ModelFileError` if the library does not read the file, `BackendError` if it is not
    installed.
    """

    engine: str
    content: bytes
    training: dict[str, Any] = field(default_factory=dict)

    # What such a model has none of. Documents are seen as a whole, and may be normalized.
    merges: list[tuple[int, int, int]] = field(default_factory=list, init=False)
    tie_order: str | None = field(default=None, init=False)
    byte_preset: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        vocabulary_checks.check_ids(self.all_tokens)

    @cached_property
    def library(self) -> Library:
        """The library with the file open."""
        return open_library(self.engine, self.content)

    @cached_property
    def tokens(self) -> dict[int, bytes]:  # type: ignore[override]
        """Id to the text that stands for it in decoding, as bytes; added tokens excluded."""
        added = {token.id for token in self.added_tokens}
        return {i: text for i, text in self.library.tokens().items() if i not in added}

    @cached_property
    def added_tokens(self) -> tuple[AddedToken, ...]:  # type: ignore[override]
        """Special tokens, and others that the library finds in every text, by id."""
        return tuple(sorted(self.library.added_tokens(), key=lambda token: token.id))

    @property
    def unknown_id(self) -> int | None:
        """Id of what the file has no token for, if there is one."""
        return self.library.unknown_id

    @property
    def kind(self) -> str:
        """What the file is, such as `Unigram`."""
        return self.library.kind

    @property
    def normalizer(self) -> str:
        """Says, for messages, whose rules texts are changed by."""
        return f"as {self.engine} does"

    @property
    def scheme(self) -> Scheme:
        """Documents are not cut here."""
        return get_scheme("none")

    @property
    def post_processor(self) -> Any:
        """What the file would put around each text; never applied."""
        return self.library.post_processor

    @cached_property
    def missing_bytes(self) -> MissingBytes:
        """Every byte can be encoded, if only as unknown."""
        return MissingBytes(b"")

    def lossy_tokens(self, special_text: str) -> list[AddedToken]:
        """None beyond what the library does to any text."""
        del special_text
        return []

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) over what decides the ids, but for the library's version.

        The bytes hashed are the line `beam-bpe library tokenizer content 1`, the engine's name and
        the sha256 of the file, each with a line feed.
        """
        text = f"{_HEADER}\n{self.engine}\n{self.file_sha256}\n"
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def file_sha256(self) -> str:
        """sha256 (hex) of the file."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def has_merge_order(self) -> bool:
        """Whether the ids are those of merges by rank: there are none."""
        return False

    def truncate(self, vocab_size: int) -> NoReturn:
        """Raise `VocabularyError`: there is no order of merges to stop in."""
        raise VocabularyError(
            f"vocab size {vocab_size}: a tokenizer of {self.engine} ({self.kind}) cannot be "
            "truncated; train a smaller one"
        )

    def to_bytes(self) -> bytes:
        """Write the whole model as bytes that `from_bytes` reads."""
        head = json.dumps({"engine": self.engine, "training": self.training}).encode()
        return head + b"\n" + self.content

    @classmethod
    def from_bytes(cls, data: bytes) -> LibraryModel:
        """Model that `to_bytes` wrote, in this or another process."""
        head, _, content = data.partition(b"\n")
        stored: Mapping[str, Any] = json.loads(head)
        return cls(engine=stored["engine"], content=content, training=stored["training"])
