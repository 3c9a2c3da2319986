"""Hugging Face's `tokenizers` as an engine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bpe.encoding.added_tokens import AddedToken
from bpe.engines.library import Encoded, flatten, import_library
from bpe.errors import ModelFileError

__all__ = ["open_content"]

# Steps that treat each word alone, if the text between words is one blank and a printable ASCII
# character stands on either side of it. `Precompiled` works on grapheme clusters: a blank between
# two such characters is one of its own.
_WORDWISE_NORMALIZERS = frozenset(
    (
        "BertNormalizer",
        "Lowercase",
        "NFC",
        "NFD",
        "NFKC",
        "NFKD",
        "Nmt",
        "Precompiled",
        "Strip",
        "StripAccents",
    )
)
# Patterns of Replace that match runs of white space alone.
_SPACE_RUNS = ({"Regex": " {2,}"}, {"Regex": r"\s+"}, {"Regex": " +"})
# Pre-tokenizers that take the white space between words away.
_DROPS_SPACES = frozenset(("WhitespaceSplit", "BertPreTokenizer", "Whitespace"))


class TokenizersLibrary:
    """A tokenizer.json; see `Library`."""

    name = "tokenizers"
    finds_specials = True
    words_are_fields = False

    def __init__(self, content: bytes) -> None:
        # Threads are asked for by who encodes, and the library's own do not outlive a fork.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        library = import_library(self.name)
        document = json.loads(content)
        try:
            self._with_specials, self._as_text = (
                library.Tokenizer.from_str(content.decode()) for _ in range(2)
            )
        except BaseException as error:  # the library raises nothing narrower, and it panics
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise ModelFileError(
                f"tokenizers {library.__version__} does not read it: {str(error)[:500]}"
            ) from error
        self._as_text.encode_special_tokens = True
        for tokenizer in (self._with_specials, self._as_text):
            tokenizer.no_padding()
            tokenizer.no_truncation()
        self.version: str = library.__version__
        self.kind = _kind_of(document["model"])
        self.post_processor = document.get("post_processor")
        self.unknown_id = self._find_unknown(document["model"])
        self.words_apart = _are_words_apart(document)

    def _find_unknown(self, model: Mapping[str, Any]) -> int | None:
        text, number = model.get("unk_token"), model.get("unk_id")
        if isinstance(text, str):
            number = self._with_specials.token_to_id(text)
        return number if isinstance(number, int) else None

    def tokens(self) -> dict[int, bytes]:
        """Id to text as the vocabulary has it."""
        vocab = self._with_specials.get_vocab(with_added_tokens=True)
        return {token_id: text.encode() for text, token_id in vocab.items()}

    def added_tokens(self) -> list[AddedToken]:
        """Those of the file."""
        return [
            AddedToken(
                token.content,
                token_id,
                special=token.special,
                normalized=token.normalized,
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                single_word=token.single_word,
            )
            for token_id, token in self._with_specials.get_added_tokens_decoder().items()
        ]

    def encode(self, texts: Sequence[str], *, specials: bool, threads: int) -> Encoded:
        """Ids of each text."""
        tokenizer = self._with_specials if specials else self._as_text
        if threads <= 1 or len(texts) < 2 * threads:
            return _encode(tokenizer, texts)
        size = -(-len(texts) // threads)
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(lambda part: _encode(tokenizer, part), parts))
        ids, lengths = zip(*found, strict=True)
        return np.concatenate(ids), np.concatenate(lengths)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens included."""
        text: str = self._with_specials.decode(list(ids), skip_special_tokens=False)
        return text


def open_content(content: bytes) -> TokenizersLibrary:
    """The library with a tokenizer.json."""
    return TokenizersLibrary(content)


def _encode(tokenizer: Any, texts: Sequence[str]) -> Encoded:
    found = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
    return flatten([encoding.ids for encoding in found])


def _kind_of(model: Mapping[str, Any]) -> str:
    kind = "Unigram" if isinstance(model.get("vocab"), list) else str(model.get("type") or "BPE")
    suffix = model.get("end_of_word_suffix")
    return f"{kind} with end-of-word suffix {suffix}" if suffix else kind


def _are_words_apart(document: Mapping[str, Any]) -> bool:
    """Whether nothing of the file looks across a single blank between two ASCII characters."""
    normalizers = all(map(_is_wordwise, _steps(document.get("normalizer"), "normalizers")))
    steps = list(_steps(document.get("pre_tokenizer"), "pretokenizers"))
    added = document.get("added_tokens") or ()
    looks = any(
        token.get(flag) for token in added for flag in ("lstrip", "rstrip", "single_word")
    ) or any(" " in token["content"] for token in added)
    return normalizers and bool(steps) and _drops_spaces(steps[0]) and not looks


def _is_wordwise(step: Mapping[str, Any]) -> bool:
    if step.get("type") == "Replace":
        return step.get("pattern") in _SPACE_RUNS and step.get("content") == " "
    return step.get("type") in _WORDWISE_NORMALIZERS


def _drops_spaces(step: Mapping[str, Any]) -> bool:
    # CLIP's pattern finds words, and what it does not find goes.
    is_clip = step.get("type") == "Split" and step.get("pattern") == {"Regex": _CLIP_PATTERN}
    keeps_matches = (step.get("behavior"), step.get("invert")) == ("Removed", True)
    return step.get("type") in _DROPS_SPACES or (is_clip and keeps_matches)


_CLIP_PATTERN = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)


def _steps(step: Any, members: str) -> Iterator[Mapping[str, Any]]:
    """Steps of a normalizer or pre-tokenizer, those of a Sequence one by one."""
    if isinstance(step, dict) and step.get("type") == "Sequence":
        for inner in step.get(members) or ():
            yield from _steps(inner, members)
    elif isinstance(step, dict):
        yield step
