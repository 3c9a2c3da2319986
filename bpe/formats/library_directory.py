"""A model directory of a tokenizer that another library encodes: its file, and how to check it.

config.json      engine, the library's version and the file's name and sha256, added tokens
tokenizer.json   or tokenizer.model: the file as it was; of a Unigram trained here, both
vocab.txt        of a WordPiece that was trained here: its tokens by id, a line each
codes            of BPE as subword-nmt has it (sennrich.json): its merges as that reads them
golden.jsonl     texts with their ids
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bpe.engines.library import ENGINES, open_library
from bpe.engines.library_model import LibraryModel
from bpe.engines.sennrich_library import SennrichLibrary
from bpe.errors import ModelFileError
from bpe.formats.golden import GoldenText, check_golden, default_texts, render_golden
from bpe.formats.sentencepiece_model import parse_sentencepiece
from bpe.formats.unigram_json import render_unigram_json

__all__ = ["FILE_NAMES", "FURTHER_NAMES", "read_library_model", "render_library_files"]

FILE_NAMES = {
    "tokenizers": "tokenizer.json",
    "sentencepiece": "tokenizer.model",
    "sennrich": "sennrich.json",
    "sentencepiece_fields": "tokenizer.model",
}
"""Name of the file in a model directory, by engine."""

_VOCAB_LINES, _CODES = "vocab.txt", "codes"
FURTHER_NAMES = (_VOCAB_LINES, _CODES)
"""Names of files that say the same in another form, for other programs."""

_GOLDEN = "golden.jsonl"


def render_library_files(
    model: LibraryModel, encode: Callable[[bytes], Iterable[int]]
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Files of a model directory by name, and what config.json says of the model."""
    texts = [GoldenText(data, None) for data in default_texts(model.scheme, model.special_tokens)]
    files = {
        FILE_NAMES[model.engine]: model.content,
        **_further_files(model),
        _GOLDEN: render_golden(check_golden(texts, encode)),
    }
    facts = {
        "digest": model.digest,
        "engine": model.engine,
        "engine_version": model.library.version,
        "kind": model.kind,
        "file": FILE_NAMES[model.engine],
        "file_sha256": hashlib.sha256(model.content).hexdigest(),
        "vocab_size": model.vocab_size,
        "lossy": True,
        "added_tokens": [token.to_json() for token in model.added_tokens],
        "training": model.training,
    }
    return files, facts


def _further_files(model: LibraryModel) -> dict[str, bytes]:
    if isinstance(model.library, SennrichLibrary):
        return {_CODES: model.library.content.render_codes()}
    if model.engine == "sentencepiece_fields":
        rendered = render_unigram_json(parse_sentencepiece(model.content, "the model"))
        return {} if rendered is None else {FILE_NAMES["tokenizers"]: rendered}
    if model.training.get("recipe") != "wordpiece":
        return {}
    by_id = sorted(model.all_tokens.items())
    return {_VOCAB_LINES: b"".join(token + b"\n" for _, token in by_id)}


def read_library_model(
    config: Mapping[str, Any], contents: Mapping[str, bytes], config_path: Path
) -> LibraryModel:
    """Model of a directory whose config.json names an engine.

    contents: of the files that config.json lists, with right hashes.

    Raises `ModelFileError` that names the field or the file; warns if the library has another
    version than the one that wrote the directory.
    """
    engine, training = config.get("engine"), config.get("training")
    if engine not in ENGINES or not isinstance(training, dict):
        raise ModelFileError(
            f"{config_path}: engine is {engine!r} and training is {str(training)[:80]!r}; an "
            f"engine is one of {', '.join(ENGINES)}: write the directory again"
        )
    name = FILE_NAMES[engine]
    if name not in contents:
        raise ModelFileError(f"{config_path}: 'files' does not list {name}; write it again")
    version = open_library(engine, contents[name]).version
    if version != config.get("engine_version"):
        warnings.warn(
            f"{config_path}: the ids of this tokenizer are made by {engine}, and the directory was "
            f"written with version {config.get('engine_version')!r}; here is {version!r}",
            UserWarning,
            stacklevel=5,
        )
    model = LibraryModel(engine, contents[name], training)
    if model.digest != config.get("digest"):
        raise ModelFileError(
            f"{config_path}: the digest is {config.get('digest')!r}, the content of the directory "
            f"has {model.digest!r}: config.json was changed after it was written"
        )
    return model
