"""The content of a tokenizer: tokens, merges, special tokens and rules, checked once when made.

Formats read it and write it; `bpe.tokenizer.Tokenizer` encodes and decodes with it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from bpe.backends.values import EncodingModel
from bpe.encoding import vocabulary_checks
from bpe.encoding.added_tokens import (
    AddedSearch,
    AddedToken,
    check_added_tokens,
    special_added_tokens,
)
from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.encoding.characters import BLANK_SIGN, assembled_characters
from bpe.encoding.missing_bytes import MissingBytes, find_missing_bytes
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, from_printable
from bpe.encoding.special_tokens import SpecialTokens
from bpe.encoding.token_table import TokenTable
from bpe.errors import SettingsError, VocabularyError
from bpe.pretokenizing.normalizers import Normalizer, get_normalizer
from bpe.pretokenizing.schemes import Scheme, get_scheme

__all__ = ["MOST_TOKENS", "TokenizerModel"]

MOST_TOKENS = 2**21
"""Largest number of ids, added tokens included; the native merge table numbers them in 21 bits."""

_HEADER = "beam-bpe tokenizer content"
_PROVENANCE = ("tie_order", "training", "post_processor")


@dataclass(frozen=True)
class TokenizerModel(TokenTable):
    """Everything that decides which ids a text has, and where it came from.

    tokens: id to bytes, special tokens excluded; every single byte is there, but for those that no
        valid UTF-8 holds; no bytes are twice.
    merges: (left id, right id, new id); index = rank.
    scheme: how documents are cut into pre-tokens.
    added_tokens: texts with ids of their own, special ones among them, in the order of their ids.
    whole_piece: a pre-token that is a token as a whole is that token, whatever merges make of it.
    normalizer: None, or the spec of what is done to documents first (`get_normalizer`); they decode
        to their normal form.
    characters: merges join characters, and one that is no token is encoded by its bytes:
        SentencePiece's kind, whose sign for a blank (U+2581) is a blank here.
    spare_tokens: further ids, which no text gets; their bytes may be those of other tokens.
    byte_preset: name of the `BYTE_PRESETS` that numbers the bytes; there are no merges then.
    tie_order: order that training broke ties by; None for imported vocabularies, whose files do
        not tell it.
    training: record of the training, JSON values only.
    post_processor: what a tokenizer.json said about framing; kept for the record, never applied.

    Raises `VocabularyError` where these contradict each other.
    """

    tokens: dict[int, bytes]
    merges: list[tuple[int, int, int]]
    scheme: Scheme
    added_tokens: Sequence[AddedToken] = ()
    whole_piece: bool = False
    normalizer: str | None = None
    characters: bool = False
    spare_tokens: dict[int, bytes] = field(default_factory=dict)
    byte_preset: str | None = None
    tie_order: str | None = None
    training: dict[str, Any] = field(default_factory=dict)
    post_processor: Any = None

    def __post_init__(self) -> None:
        if self.tie_order is not None:
            vocabulary_checks.check_tie_order(self.tie_order)
        if self.normalizer is not None:
            get_normalizer(self.normalizer)
        count = len(self.tokens) + len(self.added_tokens) + len(self.spare_tokens)
        if count > MOST_TOKENS:
            raise VocabularyError(
                f"the vocabulary has {count:,} tokens, and at most {MOST_TOKENS:,} are supported"
            )
        vocabulary_checks.check_tokens(self.tokens)
        vocabulary_checks.check_merges(self.merges, self.tokens)
        vocabulary_checks.check_ids(token.id for token in self.added_tokens)
        vocabulary_checks.check_ids(self.spare_tokens)
        check_added_tokens(self.added_tokens, self.tokens, spell=self.bytes_of_entry)
        in_order = sorted(self.added_tokens, key=lambda token: token.id)
        object.__setattr__(self, "added_tokens", tuple(in_order))
        self._check_normal_forms()
        self._check_byte_preset()

    def _check_byte_preset(self) -> None:
        if self.byte_preset is None:
            return
        name = self.byte_preset
        preset = BYTE_PRESETS.get(name) if isinstance(name, str) else None
        if preset is None:
            raise VocabularyError(
                f"byte preset {self.byte_preset!r} is not known: use one of "
                f"{', '.join(BYTE_PRESETS)}"
            )
        numbered = {byte + preset.offset: bytes([byte]) for byte in range(256)}
        if self.tokens != numbered or self.merges or self.normalizer or self.scheme.drops_text:
            raise VocabularyError(
                f"byte preset {self.byte_preset}: its tokens are the 256 bytes from id "
                f"{preset.offset} on, as they are, and there are others, or merges"
            )

    def _check_normal_forms(self) -> None:
        """Refuse two that the library would choose between by chance."""
        known: dict[str, str] = {}
        for token in self.added_tokens:
            if token.normalized:
                form = self._normal_entry(token)
                if form in known:
                    raise VocabularyError(
                        f"added tokens {token.text!r} and {known[form]!r} have the same normal "
                        "form: keep one of them"
                    )
                known[form] = token.text

    @classmethod
    def from_merges(
        cls,
        merges: Sequence[tuple[bytes, bytes]],
        *,
        scheme: Scheme,
        tie_order: str = "hf",
        special_tokens: Sequence[str] = (),
        training: Mapping[str, Any] | None = None,
    ) -> TokenizerModel:
        """Model with the ids of a trained vocabulary: 256 bytes, then merges, then specials.

        Byte ids follow the tie order's byte order: GPT-2's printable characters for `hf`, byte
        values for the others.
        """
        vocabulary_checks.check_tie_order(tie_order)
        order = PRINTABLE_ORDER if tie_order == "hf" else bytes(range(256))
        tokens = {rank: bytes([byte]) for rank, byte in enumerate(order)}
        ids = {data: token_id for token_id, data in tokens.items()}
        triples: list[tuple[int, int, int]] = []
        for index, (left, right) in enumerate(merges):
            for part in (left, right):
                if part not in ids:
                    raise VocabularyError(
                        f"merge {index} ({left!r}, {right!r}): {part!r} is neither a single byte "
                        "nor made by an earlier merge; give merges in the order they were learned"
                    )
            new_id = ids.setdefault(left + right, 256 + index)
            if new_id != 256 + index:
                raise VocabularyError(
                    f"merge {index} ({left!r}, {right!r}) makes {left + right!r}, which is token "
                    f"{new_id} already; leave the merge out"
                )
            tokens[new_id] = left + right
            triples.append((ids[left], ids[right], new_id))
        specials = _number_from(256 + len(triples), special_tokens)
        SpecialTokens(specials).check_against(tokens)
        return cls(
            tokens=tokens,
            merges=triples,
            scheme=scheme,
            added_tokens=special_added_tokens(specials),
            tie_order=tie_order,
            training=dict(training or {}),
        )

    @cached_property
    def all_tokens(self) -> dict[int, bytes]:
        """Bytes of every id: those of an added token are its text."""
        return self.spare_tokens | super().all_tokens

    def bytes_of_entry(self, text: str) -> bytes | None:
        """Bytes of a token as the vocabulary's file spells it; None if it spells none."""
        if self.characters:
            return text.replace(BLANK_SIGN, " ").encode()
        return from_printable(text)

    @cached_property
    def missing_bytes(self) -> MissingBytes:
        """The bytes that have no id; a text that holds one cannot be encoded."""
        return MissingBytes(find_missing_bytes(self.tokens.values()))

    @cached_property
    def encoding_model(self) -> EncodingModel:
        """The part that a backend's encoder needs."""
        added = tuple(
            dataclasses.replace(token, text=self._normal_entry(token))
            if token.normalized
            else token
            for token in self.added_tokens
        )
        parts, assembling = self.character_parts
        return EncodingModel(
            self.tokens | parts if parts else self.tokens,
            [*assembling, *self.merges] if assembling else self.merges,
            self.whole_piece,
            self.scheme,
            added,
        )

    @cached_property
    def character_parts(self) -> tuple[dict[int, bytes], list[tuple[int, int, int]]]:
        """Parts of characters and the merges that assemble them, in front of all others."""
        if not self.characters:
            return {}, []
        return assembled_characters(self.tokens, self.max_id + 1)

    @cached_property
    def added_search(self) -> AddedSearch:
        """What finds the added tokens, by the specification."""
        return AddedSearch(self.encoding_model.added_tokens)

    def whole_document_token(self, special_text: str) -> AddedToken | None:
        """Token that counts by a policy and for which a document must be seen as a whole, if any.

        It looks at the text around it, or its text is not what it decodes to.
        """
        for token in self.added_tokens:
            counts = special_text == "allow" or not token.special
            if counts and (token.looks_around or not self._decodes_to_itself(token)):
                return token
        return None

    def lossy_tokens(self, special_text: str) -> list[AddedToken]:
        """Tokens that count by a policy and decode to another text than they are found in."""
        return [
            token
            for token in self.added_tokens
            if (special_text == "allow" or not token.special)
            and (token.lstrip or token.rstrip or not self._decodes_to_itself(token))
        ]

    def _decodes_to_itself(self, token: AddedToken) -> bool:
        return self.all_tokens[token.id] == token.text.encode()

    def normalize(self, data: bytes, *, begins: bool = True) -> bytes:
        """Normal form of a text, if the model has a normalizer; invalid bytes stay.

        begins: whether a document begins with it.
        """
        steps = self.normalizing
        return data if steps is None else steps.normalize(data, begins=begins)

    def _normal_entry(self, token: AddedToken) -> str:
        """Text of an added token as the second pass looks for it."""
        data, steps = token.text.encode(), self.normalizing
        return (data if steps is None else steps.normalize(data, is_entry=True)).decode()

    @cached_property
    def normalizing(self) -> Normalizer | None:
        """The normalizer, if there is one."""
        return None if self.normalizer is None else get_normalizer(self.normalizer)

    @cached_property
    def digest(self) -> str:
        r"""sha256 (hex) over what decides the ids; provenance and storage play no part.

        The bytes hashed are the line `beam-bpe tokenizer content 1\n`, then JSON in UTF-8 with
        sorted keys, no white space and non-ASCII characters escaped: an object with `merges`
        ([left id, right id, new id] by rank), `normalizer`, `scheme` (its name),
        `special_tokens` ([id, text] by id), `tokens` ([id, hex bytes] by id),
        `unicode_version` and `whole_piece`. Where an added token is not special, or has a flag,
        the line ends with 2, and in place of `special_tokens` there is `added_tokens`: [id, text,
        special, normalized, lstrip, rstrip, single_word] by id. Where merges join characters, it
        ends with 3, and there is `spare_tokens`: [id, hex bytes] by id. Where bytes are numbered
        by a preset, it ends with 4, and there is `byte_preset`.
        """
        content = self._content()
        lists = {name: content.pop(name) for name in ("merges", "tokens")}
        # The two long lists are written by one format each, many times as fast as by `json`.
        written = {
            name: json.dumps(value, sort_keys=True, separators=(",", ":"))
            for name, value in content.items()
        }
        written["merges"] = _write_rows("[%d,%d,%d]", lists["merges"])
        written["tokens"] = _write_rows('[%d,"%s"]', lists["tokens"])
        text = ",".join(f'"{name}":{written[name]}' for name in sorted(written))
        version = 3 if self.characters else 2 if "added_tokens" in content else 1
        version = version if self.byte_preset is None else 4
        return hashlib.sha256(f"{_HEADER} {version}\n{{{text}}}".encode()).hexdigest()

    @property
    def has_merge_order(self) -> bool:
        """Whether the ids are those of a trained vocabulary: bytes 0-255, then merges by rank.

        Added tokens may have any ids.
        """
        made = [new_id for _, _, new_id in self.merges]
        return made == list(range(256, len(self.tokens))) and all(
            len(self.tokens.get(token_id, b"")) == 1 for token_id in range(256)
        )

    def truncate(self, vocab_size: int) -> TokenizerModel:
        """Model with the first merges only, so that 256 + merges + added tokens = vocab_size.

        Added tokens get the last ids, in the order of their ids before; a post-processor, which
        names the old ones, is dropped. The training record becomes that of the smaller size, with
        last_merge_count None: not known.

        Raises `SettingsError` for a size out of range, `VocabularyError` if ids are not in merge
        order.
        """
        if not self.has_merge_order:
            raise VocabularyError(
                "this vocabulary cannot be truncated: its ids are not the 256 bytes followed by "
                "the merges in rank order, so that a prefix of the merges is no prefix of the ids"
            )
        shared = [token for token in self.added_tokens if token.id in self.tokens]
        if shared:
            raise VocabularyError(
                f"this vocabulary cannot be truncated: its added token {shared[0].text!r} is an "
                "ordinary token too, and cannot be numbered anew"
            )
        least, most = 256 + len(self.added_tokens), self.vocab_size
        if not least <= vocab_size <= most:
            raise SettingsError(
                f"vocab size {vocab_size} is out of range: this vocabulary of {most} can be "
                f"truncated to {least} (256 bytes and {least - 256} added tokens) up to {most}"
            )
        kept = vocab_size - least
        return dataclasses.replace(
            self,
            tokens={token_id: self.tokens[token_id] for token_id in range(256 + kept)},
            merges=self.merges[:kept],
            added_tokens=[
                dataclasses.replace(token, id=256 + kept + index)
                for index, token in enumerate(self.added_tokens)
            ],
            training=self._training_of(vocab_size),
            post_processor=None,
        )

    def _training_of(self, vocab_size: int) -> dict[str, Any]:
        """The training record of a smaller size: that training stops at its vocabulary size."""
        if vocab_size == self.vocab_size:
            return self.training
        # How often the last merge occurred is on record for the largest size alone.
        new = {"vocab_size": vocab_size, "stop_reason": "vocab_size", "last_merge_count": None}
        return {name: new.get(name, value) for name, value in self.training.items()}

    def to_bytes(self) -> bytes:
        """Write the whole model, provenance included, as bytes that `from_bytes` reads."""
        provenance = {name: getattr(self, name) for name in _PROVENANCE}
        return json.dumps({"content": self._content(), "provenance": provenance}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> TokenizerModel:
        """Model that `to_bytes` wrote, in this or another process."""
        stored = json.loads(data)
        content = stored["content"]
        scheme = get_scheme(content["scheme"])
        return cls(
            tokens={token_id: bytes.fromhex(data) for token_id, data in content["tokens"]},
            merges=[(left, right, new) for left, right, new in content["merges"]],
            scheme=dataclasses.replace(scheme, unicode_version=content["unicode_version"]),
            added_tokens=[
                AddedToken(text, token_id, *flags)
                for token_id, text, *flags in _added_rows(content)
            ],
            whole_piece=content["whole_piece"],
            normalizer=content["normalizer"],
            characters="spare_tokens" in content,
            spare_tokens={i: bytes.fromhex(data) for i, data in content.get("spare_tokens", ())},
            byte_preset=content.get("byte_preset"),
            **stored["provenance"],
        )

    def _content(self) -> dict[str, Any]:
        return {
            "scheme": self.scheme.name,
            "unicode_version": self.scheme.unicode_version,
            "normalizer": self.normalizer,
            "whole_piece": self.whole_piece,
            **self._added_content(),
            **self._spare_content(),
            **({} if self.byte_preset is None else {"byte_preset": self.byte_preset}),
            "tokens": [(token_id, self.tokens[token_id].hex()) for token_id in sorted(self.tokens)],
            "merges": self.merges,
        }

    def _spare_content(self) -> dict[str, Any]:
        if not self.characters:
            return {}
        rows = [(token_id, data.hex()) for token_id, data in sorted(self.spare_tokens.items())]
        return {"spare_tokens": rows}

    def _added_content(self) -> dict[str, Any]:
        """Added tokens as rows by id; plain ones as they were written before there were others."""
        if all(token.is_plain for token in self.added_tokens):
            return {"special_tokens": [(token.id, token.text) for token in self.added_tokens]}
        rows = [dataclasses.astuple(token) for token in self.added_tokens]
        return {"added_tokens": [(token_id, text, *flags) for text, token_id, *flags in rows]}


def _added_rows(content: Mapping[str, Any]) -> Any:
    return content["added_tokens"] if "added_tokens" in content else content["special_tokens"]


def _write_rows(row: str, values: Sequence[tuple[Any, ...]]) -> str:
    """JSON of a list of rows, each written by the format `row`."""
    return f"[{','.join([row] * len(values)) % tuple(chain.from_iterable(values))}]"


def _number_from(first_id: int, texts: Sequence[str]) -> dict[str, int]:
    numbered = {text: first_id + index for index, text in enumerate(texts)}
    if len(numbered) < len(texts):
        twice = next(text for index, text in enumerate(texts) if text in texts[:index])
        raise VocabularyError(f"special token {twice!r} is given twice: name each once")
    return numbered
