"""Look-ups in a vocabulary: what any model knows of its ids, whatever makes them of a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import InputError
from bpe.pretokenizing.utf8_text import utf8_bytes

__all__ = ["TokenTable"]


class TokenTable:
    """Base of models: tokens and added tokens by id, by bytes and by text.

    tokens: id to bytes, added tokens excluded unless they are ordinary tokens too.
    added_tokens: by id.
    """

    tokens: dict[int, bytes]
    added_tokens: Sequence[AddedToken]

    @property
    def unknown_id(self) -> int | None:
        """Id of text that no other token stands for; None where there is no such text."""
        return None

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        """The special ones of the added tokens, text to id."""
        return {token.text: token.id for token in self.added_tokens if token.special}

    @cached_property
    def specials(self) -> SpecialTokens:
        """The special tokens, ready to be counted in documents."""
        return SpecialTokens(self.special_tokens)

    @cached_property
    def all_tokens(self) -> dict[int, bytes]:
        """Bytes of every id: those of an added token are its text."""
        return {token.id: token.text.encode() for token in self.added_tokens} | self.tokens

    @cached_property
    def ids_by_bytes(self) -> dict[bytes, int]:
        """Id of all tokens by their bytes; an added token hides an ordinary one of its text."""
        ids = {data: token_id for token_id, data in self.tokens.items()}
        return ids | {token.text.encode(): token.id for token in self.added_tokens}

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return len(self.all_tokens)

    @cached_property
    def max_id(self) -> int:
        """Largest id, added tokens included."""
        return max(self.all_tokens)

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of one id; an added token's are its text. `InputError` for an unknown id."""
        data = self.all_tokens.get(token_id)
        if data is None:
            raise InputError(f"id {token_id!r} is {self.no_such_id()}")
        return data

    def find_token(self, token: str | int) -> int:
        """Id of a token named by its text or its id; see `Tokenizer.token_id`."""
        for added in self.added_tokens:
            if token == added.text:
                return added.id
        if isinstance(token, int) or (token.isascii() and token.isdigit()):
            self.token_bytes(int(token))
            return int(token)
        found = self.ids_by_bytes.get(utf8_bytes(token, "the token's text"))
        if found is not None:
            return found
        specials = ", ".join(map(repr, self.special_tokens)) or "none"
        raise InputError(
            f"{token!r} is no token of this vocabulary (special tokens: {specials}); "
            "name one that is there, or give an id"
        )

    def no_such_id(self) -> str:
        """Say that an id is unknown, for messages: `no id of this vocabulary (...)`."""
        return f"no id of this vocabulary ({self.vocab_size} ids, the largest is {self.max_id})"
