"""tekken.json, Mistral's form of a tokenizer: ranks with their pattern and special tokens.

Special tokens have the first ids, and an ordinary token has its rank after them. Places that the
file leaves free have special tokens `<SPECIAL_20>` and so on. Merges are recovered by rank.
"""

from __future__ import annotations

import binascii
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bpe.backends.choice import get_backend
from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.tokenizer_model import MOST_TOKENS, TokenizerModel
from bpe.errors import ModelFileError, SettingsError, VocabularyError
from bpe.formats.file_access import decode_text, parse_json_object, shown
from bpe.formats.huggingface_patterns import find_difference, scheme_name_of
from bpe.pretokenizing.schemes import Scheme, get_scheme

__all__ = ["is_tekken", "parse_tekken"]

PathLike = str | os.PathLike[str]

_LAST_WITHOUT_SPECIALS = 7  # version of the form in which files need not name their special tokens
# What those have, by rank.
_UNNAMED_SPECIALS = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)
_VERSION = re.compile(r"v([0-9]{1,4})(?:m[0-9]+)?")


def is_tekken(data: bytes) -> bool:
    """Whether a JSON file's content is of this form, as far as its words tell."""
    return b'"token_bytes"' in data and b'"default_num_special_tokens"' in data


def parse_tekken(data: bytes, path: PathLike) -> TokenizerModel:
    """Model of the content of a tekken.json.

    Raises `ModelFileError` that names the file, the member and its value.
    """
    document = parse_json_object(decode_text(data, path), path)
    config = document.get("config")
    if not isinstance(config, dict):
        raise ModelFileError(f"{path}: config is {shown(config)}, not an object")
    specials = _special_texts(document.get("special_tokens"), config, path)
    size = _number(config, "default_vocab_size", path) - len(specials)
    ranks = _parse_ranks(document.get("vocab"), size, path)
    try:
        merges, unmerged = get_backend().recover_merges(
            {token: rank + len(specials) for token, rank in ranks.items()}
        )
        return TokenizerModel(
            tokens={rank + len(specials): token for token, rank in ranks.items()},
            merges=merges,
            scheme=_scheme(config.get("pattern"), path),
            added_tokens=special_added_tokens({text: rank for rank, text in enumerate(specials)}),
            whole_piece=bool(unmerged),
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _number(config: Mapping[str, Any], name: str, path: PathLike) -> int:
    value = config.get(name)
    if type(value) is not int or not 0 <= value <= MOST_TOKENS:
        raise ModelFileError(
            f"{path}: config.{name} is {shown(value)}, not a number from 0 to {MOST_TOKENS}"
        )
    return value


def _special_texts(listed: Any, config: Mapping[str, Any], path: PathLike) -> list[str]:
    """Texts of the special tokens by rank, those that only hold a place among them."""
    version = _VERSION.fullmatch(str(config.get("version")))
    if listed is None and version and int(version[1]) <= _LAST_WITHOUT_SPECIALS:
        texts: Sequence[str] = _UNNAMED_SPECIALS
    elif isinstance(listed, list):
        for rank, entry in enumerate(listed):
            if (
                not isinstance(entry, dict)
                or entry.get("rank") != rank
                or not isinstance(entry.get("token_str"), str)
            ):
                raise ModelFileError(
                    f"{path}: special_tokens[{rank}] is {shown(entry)}; it needs a token_str, and "
                    f"the rank {rank}"
                )
        texts = [entry["token_str"] for entry in listed]
    else:
        raise ModelFileError(
            f"{path}: special_tokens is {shown(listed)}, not a list, which version "
            f"{shown(config.get('version'))} of the form needs"
        )
    count = _number(config, "default_num_special_tokens", path)
    if len(texts) > count:
        raise ModelFileError(
            f"{path}: there are {len(texts)} special tokens, and "
            f"config.default_num_special_tokens is {count}"
        )
    found = [*texts, *(f"<SPECIAL_{rank}>" for rank in range(len(texts), count))]
    if len(set(found)) < len(found):
        twice = next(text for text in found if found.count(text) > 1)
        raise ModelFileError(f"{path}: special token {shown(twice)} is there twice")
    return found


def _parse_ranks(vocab: Any, size: int, path: PathLike) -> dict[bytes, int]:
    """The first tokens of the list, as many as the vocabulary has."""
    if not isinstance(vocab, list) or not 0 < size <= len(vocab):
        found = f"has {len(vocab)} tokens" if isinstance(vocab, list) else f"is {shown(vocab)}"
        raise ModelFileError(
            f"{path}: vocab {found}, and by config.default_vocab_size there must be {size}"
        )
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(vocab[:size]):
        try:
            token = binascii.a2b_base64(entry["token_bytes"], strict_mode=True)
            is_next = entry["rank"] == rank and ranks.setdefault(token, rank) == rank
        except (TypeError, KeyError, ValueError):
            is_next = False
        if not is_next:
            raise ModelFileError(
                f"{path}: vocab[{rank}] is {shown(entry)}; it needs the rank {rank}, and "
                "token_bytes in base64 that no other token has"
            )
    return ranks


def _scheme(pattern: Any, path: PathLike) -> Scheme:
    if not isinstance(pattern, str) or not pattern:
        raise ModelFileError(f"{path}: config.pattern is {shown(pattern)}, not a pattern")
    try:
        scheme = get_scheme(scheme_name_of(pattern) or f"regex:{pattern}")
    except SettingsError as error:
        raise ModelFileError(f"{path}: config.pattern: {error}") from error
    difference = None if scheme.is_named else find_difference(pattern)
    if difference is not None:
        raise ModelFileError(
            f"{path}: config.pattern is {shown(pattern)}, which cannot be honoured exactly "
            f"({difference})"
        )
    return scheme
