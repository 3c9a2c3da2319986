"""What a tokenizer's file is that this library does not read, for the messages that refuse it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["SENTENCEPIECE", "WORDPIECE", "describe_bytes", "describe_document"]

SENTENCEPIECE = "a SentencePiece model (protobuf)"
WORDPIECE = "a WordPiece vocabulary (BERT's vocab.txt)"
"""What `describe_bytes` calls the kinds that another library reads."""

_READABLE = (
    "a byte-level BPE tokenizer.json, a .tiktoken file, or a folder with vocab.json and merges.txt "
    "is read"
)
_LATER = f"{_READABLE}; a later version may read this kind"
_BY_LIBRARY = "the library of its kind can encode with it"

_SUBWORD_MODELS = {
    "Unigram": "a Unigram vocabulary (SentencePiece's default kind)",
    "WordPiece": "a WordPiece vocabulary (BERT's kind)",
    "WordLevel": "a WordLevel vocabulary (whole words)",
}

# The beginnings of files, and what they are.
_BEGINNINGS = (
    (
        b"version https://git-lfs",
        "a Git LFS pointer, and not the file itself",
        "run `git lfs pull`",
    ),
    (b"GGUF", "a GGUF model", _LATER),
    (b"\x1f\x8b", "compressed with gzip", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "unpack it first"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unpack it first"),
    (b"BZh", "compressed with bzip2", "unpack it first"),
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (
        b"#version:",
        "a merges.txt without its vocabulary",
        "give the folder with vocab.json as well",
    ),
)
# Its first piece, in a message of its own.
_SENTENCEPIECE = re.compile(rb"\A\n[\x01-\x7f]\n[\x01-\x7f]")
_WORDPIECE = re.compile(rb"\A(?:[^\n]*\n){0,200}?\[UNK\]\r?\n")


def describe_bytes(data: bytes) -> tuple[str, str] | None:
    """What a file is by its content, and what to do; None for one that may be read."""
    for beginning, kind, remedy in _BEGINNINGS:
        if data.startswith(beginning):
            return kind, remedy
    if _SENTENCEPIECE.match(data):
        return SENTENCEPIECE, _BY_LIBRARY
    if _WORDPIECE.match(data):
        return WORDPIECE, _BY_LIBRARY
    return None


def describe_document(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a JSON object of another kind than byte-level BPE is, and what to do; None if unknown.

    document: a whole file. Looks at types before values: nothing of it has been checked.
    """
    model = document.get("model")
    if not isinstance(model, dict):
        return _describe_other_json(document)
    kind = model.get("type")
    if isinstance(model.get("vocab"), list):
        kind = "Unigram"
    if isinstance(kind, str) and kind in _SUBWORD_MODELS:
        return _SUBWORD_MODELS[kind], _BY_LIBRARY
    return _describe_bpe(document, model)


def _describe_other_json(document: Mapping[str, Any]) -> tuple[str, str] | None:
    vocab = document.get("vocab")
    if isinstance(vocab, list) and vocab and isinstance(vocab[0], dict) and "rank" in vocab[0]:
        return "a tekken.json (Mistral's ranks with their pattern)", "load_tokenizer reads it"
    if "tokenizer_class" in document:
        return "a tokenizer_config.json, which holds no vocabulary", "give its tokenizer.json"
    if "model_type" in document or "architectures" in document:
        return "a model's config.json, which holds no vocabulary", "give its tokenizer.json"
    if document and set(map(type, document.values())) == {int}:
        return "a vocab.json without its merges", "give the folder with merges.txt as well"
    return None


def _describe_bpe(document: Mapping[str, Any], model: Mapping[str, Any]) -> tuple[str, str] | None:
    suffix, prefix = model.get("end_of_word_suffix"), model.get("continuing_subword_prefix")
    steps = _step_types(document.get("pre_tokenizer"), "pretokenizers")
    found = None
    if model.get("byte_fallback") is True:
        found = "SentencePiece-style BPE with byte fallback"
    elif isinstance(suffix, str) and suffix:
        found = f"CLIP-style BPE with end-of-word suffix {suffix[:40]}"
    elif isinstance(prefix, str) and prefix:
        found = f"BPE with continuing-subword prefix {prefix[:40]}"
    elif "Metaspace" in [*steps, *_step_types(document.get("decoder"), "decoders")]:
        found = "SentencePiece-style BPE (Metaspace)"
    elif "ByteLevel" in steps[:-1]:
        found = f"byte-level BPE with steps after ByteLevel ({', '.join(steps)[:80]})"
    elif "ByteLevel" not in steps:
        found = "BPE over characters, and not over bytes"
    return None if found is None else (found, _BY_LIBRARY)


def _step_types(step: Any, members: str) -> list[str]:
    """Types of the steps of a pre-tokenizer or decoder, those of a Sequence one by one."""
    listed = step.get(members) if isinstance(step, dict) else None
    steps = listed if isinstance(listed, list) else [step]
    return [str(each.get("type"))[:40] for each in steps if isinstance(each, dict)]
