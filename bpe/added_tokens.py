"""Added tokens: texts with an id of their own beside what merges make, and how they are found.

The flags are those of Hugging Face's tokenizer.json and mean what they mean there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bpe.errors import InputError, VocabularyError
from bpe.printable_bytes import from_printable

__all__ = ["AddedToken", "check_added_tokens", "special_added_tokens"]


@dataclass(frozen=True)
class AddedToken:
    """A text that is one token wherever it is found.

    text: not empty, and writable as UTF-8.
    id: may be that of an ordinary token that vocab.json spells alike; then the two are one entry.
    special: what its text means is for the policy to say; one that is not special is part of the
        vocabulary, and found in every text.
    normalized: looked for in its normal form in the normalized text, after all others were found.
    lstrip, rstrip: takes the white space before it, or behind it, into the token.
    single_word: only where no word character is next to it.
    """

    text: str
    id: int
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is special and has no other flag."""
        return self == AddedToken(self.text, self.id)

    def to_json(self) -> dict[str, Any]:
        """As JSON values, all fields."""
        return dataclasses.asdict(self)


def special_added_tokens(ids: Mapping[str, int]) -> tuple[AddedToken, ...]:
    """Special tokens without further flags, by id; ids: text to id."""
    return tuple(AddedToken(text, token_id) for text, token_id in ids.items())


def check_added_tokens(added: Iterable[AddedToken], tokens: Mapping[int, bytes]) -> None:
    """Raise `VocabularyError` for added tokens that contradict each other or ordinary tokens."""
    by_text: dict[str, int] = {}
    by_id: dict[int, str] = {}
    for token in added:
        _check_text(token.text)
        if token.text in by_text:
            raise VocabularyError(f"added token {token.text!r} is there twice: keep one of them")
        if token.id in by_id:
            raise VocabularyError(
                f"special tokens {by_id[token.id]!r} and {token.text!r} both have id {token.id}: "
                "give each an id of its own"
            )
        by_text[token.text], by_id[token.id] = token.id, token.text
    spelled = {text: from_printable(text) for text in by_text}
    for text, token_id in by_text.items():
        if token_id in tokens and tokens[token_id] != spelled[text]:
            raise VocabularyError(
                f"special token {text!r} has id {token_id}, which is token {tokens[token_id]!r}: "
                "give it an id that is not in use"
            )
    # vocab.json would have one entry for the two.
    texts = {data: text for text, data in spelled.items() if data is not None}
    for token_id in [i for i, data in tokens.items() if data in texts]:
        text = texts[tokens[token_id]]
        if by_text[text] != token_id:
            raise VocabularyError(
                f"token {token_id} ({tokens[token_id]!r}) spells the special token {text!r}, which "
                f"has id {by_text[text]}: rename the special token, or train with it so that no "
                "merge makes it"
            )


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InputError(
            f"special token {text!r} is of type {type(text).__name__}: write it as str"
        )
    if not text:
        raise VocabularyError("a special token is empty: it would occur everywhere")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"special token {text!r} holds a lone surrogate at index {error.start}: "
            "a special token must be text that UTF-8 can write"
        ) from error
