"""Compare the files of a model directory with what the model itself is rendered as.

Loading a directory reads its vocabulary and merges, and believes the rest. Other programs read
tokenizer.json, and people read config.json: a directory is whole if all of them are of one model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.engines.library_model import LibraryModel
from bpe.errors import ModelFileError
from bpe.formats.file_access import parse_json_object, read_file, read_text
from bpe.formats.model_directory import (
    CONFIG_NAME,
    Encode,
    render_model_files,
)
from bpe.formats.tokenizer_json import read_tokenizer_json

__all__ = ["check_model_files"]

PathLike = str | os.PathLike[str]

_GOLDEN, _HUGGING_FACE = "golden.jsonl", "tokenizer.json"
_TRANSFORMERS = "tokenizer_config.json"
# Format versions: 3 is 2 with one file more.
_CURRENT = (2, 3, 4, 5)
_WITHOUT_TRANSFORMERS = (1, 2)
# What a directory may have of its own: its version; more golden texts, and so other hashes.
_OWN_FIELDS = frozenset({"files", "format_version", "engine_version"})


def check_model_files(
    directory: PathLike, model: TokenizerModel | LibraryModel, encode: Encode
) -> None:
    """Render the files of a model directory again, and compare.

    Files of an older format version may look otherwise: of those, vocabulary and merges are
    compared, tokenizer.json by the model that it gives, and golden.jsonl must hold texts.

    directory: as `model` was read from it, with right hashes. encode: as for `render_model_files`.

    Raises `ModelFileError` that names the file that is not of the model.
    """
    config_path = Path(directory, CONFIG_NAME)
    config = parse_json_object(read_text(config_path), config_path)
    rendered = render_model_files(model, encode, str(config.get("written_by")))
    version = config.get("format_version")
    is_current = version in _CURRENT
    if version in _WITHOUT_TRANSFORMERS:
        rendered.pop(_TRANSFORMERS, None)
    for name, data in rendered.items():
        path = Path(directory, name)
        if name == CONFIG_NAME:
            if is_current:
                _check_config(config, parse_json_object(data.decode(), path), path)
        elif name == _GOLDEN:
            # An older version had other texts, but never none.
            expected = data if is_current else b""
            _check_golden(read_file(path), expected, path)
        elif name == _HUGGING_FACE and not is_current:
            if path.exists() and isinstance(model, TokenizerModel):
                _check_same_model(model, path)
        elif not path.exists() or read_file(path) != data:
            raise ModelFileError(
                f"{path}: is missing, or is not what the model in the directory is written as; "
                "write the directory again"
            )
    names = [_HUGGING_FACE] if version in _WITHOUT_TRANSFORMERS else [_HUGGING_FACE, _TRANSFORMERS]
    for name in names if is_current else ():
        if name not in rendered and Path(directory, name).exists():
            raise ModelFileError(
                f"{Path(directory, name)}: this model has no such form; remove the file"
            )


def _check_config(found: Mapping[str, Any], rendered: Mapping[str, Any], path: Path) -> None:
    for name in sorted((found.keys() | rendered.keys()) - _OWN_FIELDS):
        if found.get(name) != rendered.get(name):
            raise ModelFileError(
                f"{path}: {name!r} is {str(found.get(name))[:80]!r}, and the model gives "
                f"{str(rendered.get(name))[:80]!r}; write the directory again"
            )


def _check_golden(found: bytes, rendered: bytes, path: Path) -> None:
    """The texts that every directory starts with are there; users may have added others."""
    lines = set(found.split(b"\n"))
    for number, line in enumerate(rendered.split(b"\n"), start=1):
        if line and line not in lines:
            raise ModelFileError(
                f"{path}: lacks the text {number} of those that every tokenizer is checked with: "
                "it was cut; write the directory again"
            )
    if not found.strip():
        raise ModelFileError(f"{path}: holds no texts: it was cut; write the directory again")


def _check_same_model(model: TokenizerModel, path: Path) -> None:
    other = read_tokenizer_json(path)
    for name in ("tokens", "merges", "special_tokens"):
        if getattr(other, name) != getattr(model, name):
            raise ModelFileError(
                f"{path}: its {name.replace('_', ' ')} are not those of the model in the "
                "directory; write the directory again"
            )
