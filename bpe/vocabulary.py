"""The read-only side of a tokenizer: its tokens, ids, rules and provenance."""

from __future__ import annotations

from typing import Any

from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.encoding.special_tokens import SpecialTokens
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.engines.library_model import LibraryModel
from bpe.pretokenizing.schemes import Scheme
from bpe.pretokenizing.utf8_text import utf8_bytes

__all__ = ["Vocabulary"]


class Vocabulary:
    """What a tokenizer knows without encoding anything.

    Two are equal, and have the same hash, if they have the same `digest`: the same ids for every
    text. Provenance, such as the training record, plays no part.
    """

    def __init__(self, model: TokenizerModel | LibraryModel) -> None:
        self._model = model

    @property
    def model(self) -> TokenizerModel | LibraryModel:
        """The whole content."""
        return self._model

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left bytes, right bytes) by rank."""
        tokens = self._model.tokens
        return [(tokens[left], tokens[right]) for left, right, _ in self._model.merges]

    @property
    def vocab_size(self) -> int:
        """Number of ids: tokens and added tokens. Imported ids may have gaps; see `max_id`."""
        return self._model.vocab_size

    @property
    def max_id(self) -> int:
        """Largest id, added tokens included."""
        return self._model.max_id

    @property
    def digest(self) -> str:
        """sha256 (hex) over what decides the ids; see `TokenizerModel.digest` for the bytes."""
        return self._model.digest

    @property
    def scheme(self) -> Scheme:
        """How documents are cut into pre-tokens."""
        return self._model.scheme

    @property
    def tie_order(self) -> str | None:
        """Tie order of the training; None for an imported vocabulary, which does not tell it."""
        return self._model.tie_order

    @property
    def special_tokens(self) -> dict[str, int]:
        """Special tokens, text to id."""
        return dict(self._model.special_tokens)

    @property
    def reserved_texts(self) -> dict[str, int]:
        """What `special_text="reject"` refuses, to ids: special tokens, or bytes that are ids."""
        preset = BYTE_PRESETS.get(self._model.byte_preset or "")
        return dict(preset.reserved) if preset and preset.reserved else self.special_tokens

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """Special tokens and others with an id of their own, by id."""
        return tuple(self._model.added_tokens)

    @property
    def specials(self) -> SpecialTokens:
        """Special tokens with the rule that finds them in documents."""
        return self._model.specials

    @property
    def normalizer(self) -> str | None:
        """None, or "NFC"."""
        return self._model.normalizer

    @property
    def lossy(self) -> bool:
        """Whether decoding may give other bytes than were encoded, special tokens being text."""
        return self.is_lossy()

    def is_lossy(self, special_text: str = "text") -> bool:
        """Whether decoding may give other bytes than were encoded, by a policy.

        With a normalizer, with a scheme that drops text, and with added tokens that take white
        space next to them.
        """
        model = self._model
        changes = model.normalizer is not None or model.scheme.drops_text
        return changes or bool(model.lossy_tokens(special_text))

    @property
    def reencodes(self) -> bool:
        """Whether decoded text has the ids that it was decoded from.

        Another library may decode to text that gives others: an unknown word to `[UNK]`, say.
        """
        return not isinstance(self._model, LibraryModel)

    @property
    def training(self) -> dict[str, Any]:
        """Record of the training, as stored in the model directory; empty for imports."""
        return dict(self._model.training)

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of one id; a special token's are its text. `InputError` for an unknown id."""
        return self._model.token_bytes(token_id)

    def token_id(self, token: str | int) -> int:
        """Id of a token named by its text or by its id (`0` and "0" alike), checked to exist.

        Looked for among special tokens first, then, if it is a number, as an id, then among
        ordinary tokens.
        """
        return self._model.find_token(token)

    def token_to_id(self, token: str | bytes) -> int | None:
        """Id of a token given by its bytes, or by its text; None if there is none.

        A str is the text itself (`" the"`), not the printable spelling of vocab.json (`"Ġthe"`).
        Added tokens come first. `InputError` for a str that UTF-8 cannot write.
        """
        data = utf8_bytes(token, "the token's text") if isinstance(token, str) else bytes(token)
        return self._model.ids_by_bytes.get(data)

    def id_to_token(self, token_id: int) -> bytes | None:
        """Bytes of one id, None if there is no such id; `token_bytes` raises instead."""
        return self._model.all_tokens.get(token_id)

    def get_vocab(self) -> dict[bytes, int]:
        """A new dict, bytes to id: the inverse of `id_to_token`.

        Of an ordinary and an added token of the same bytes, it holds the added one.
        """
        tokens = self._model.tokens
        added = [token for token in self._model.added_tokens if token.id not in tokens]
        ids = {data: token_id for token_id, data in tokens.items()}
        return ids | {token.text.encode(): token.id for token in added}

    def __len__(self) -> int:
        """Number of ids, as `vocab_size`."""
        return self.vocab_size

    def __eq__(self, other: object) -> bool:
        """Whether the other one is of the same digest."""
        return self.digest == other.digest if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        """Hash of the digest."""
        return hash(self.digest)
