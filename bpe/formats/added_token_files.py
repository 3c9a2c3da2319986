"""What slow tokenizers of Hugging Face's `transformers` keep beside vocab.json and merges.txt.

added_tokens.json maps texts to ids. Flags are in tokenizer_config.json's `added_tokens_decoder`, by
id. Where that is missing, a token is special if tokenizer_config.json or special_tokens_map.json
names it in a role (`eos_token`, `additional_special_tokens`), and otherwise part of the vocabulary,
as `transformers` has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.encoding.added_tokens import AddedToken
from bpe.errors import ModelFileError
from bpe.formats.file_access import parse_json_object, read_text

__all__ = ["read_added_token_files"]

_ADDED, _CONFIG, _MAP = "added_tokens.json", "tokenizer_config.json", "special_tokens_map.json"
_FLAGS = {
    "special": False,
    "normalized": True,
    "lstrip": False,
    "rstrip": False,
    "single_word": False,
}
_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def read_added_token_files(folder: Path) -> dict[str, AddedToken]:
    """Added tokens of added_tokens.json by text; none without that file.

    Raises `ModelFileError` that names the file and the entry.
    """
    path = folder / _ADDED
    if not path.is_file():
        return {}
    config = _read_if_there(folder / _CONFIG)
    flags = _read_flags(config.get("added_tokens_decoder"), folder / _CONFIG)
    named = _named_in_roles(config) | _named_in_roles(_read_if_there(folder / _MAP))
    found: dict[str, AddedToken] = {}
    for text, token_id in parse_json_object(read_text(path), path).items():
        if isinstance(token_id, bool) or not isinstance(token_id, int) or token_id < 0:
            raise ModelFileError(
                f"{path}: entry {text!r} has id {token_id!r}; an id is an integer from 0"
            )
        special = text in named
        other = {"special": special, "normalized": not special}
        found[text] = AddedToken(text, token_id, **flags.get(text, other))
    return found


def _read_if_there(path: Path) -> dict[str, Any]:
    return parse_json_object(read_text(path), path) if path.is_file() else {}


def _read_flags(decoder: Any, path: Path) -> dict[str, dict[str, bool]]:
    """Flags by text, of `added_tokens_decoder`."""
    if decoder is None:
        return {}
    if not isinstance(decoder, dict):
        raise ModelFileError(f"{path}: added_tokens_decoder is {decoder!r}, not an object")
    found: dict[str, dict[str, bool]] = {}
    for key, entry in decoder.items():
        text = _text_of(entry)
        flags = {
            name: entry.get(name, default) if isinstance(entry, dict) else default
            for name, default in _FLAGS.items()
        }
        if text is None or not set(map(type, flags.values())) <= {bool}:
            raise ModelFileError(
                f"{path}: added_tokens_decoder[{key!r}] is {entry!r}; it needs a content, and "
                "flags that are true or false"
            )
        found[text] = flags
    return found


def _named_in_roles(config: Mapping[str, Any]) -> set[str]:
    values = [config.get(f"{role}_token") for role in _ROLES]
    further = config.get("additional_special_tokens")
    texts = map(_text_of, [*values, *(further if isinstance(further, list) else ())])
    return {text for text in texts if text is not None}


def _text_of(value: Any) -> str | None:
    """Text of a token that is written as text, or as an object with its flags."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None
