"""Files of other kinds: the refusal says what the file is, and what can be done."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from bpe import BackendError, ModelFileError, load_tokenizer
from bpe.engines import loading

INSTALL = r"pip install 'beam-bpe\[hf\]'"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False}
SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated"}
METASPACE = {"type": "Metaspace", "replacement": "\u2581"}


@pytest.fixture(autouse=True)
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither tokenizers nor sentencepiece is installed."""

    def missing(name: str) -> None:
        raise BackendError(f"{name} is not installed here; pip install 'beam-bpe[hf]'")

    monkeypatch.setattr(loading, "import_library", missing)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bert/vocab.txt", "a WordPiece vocabulary"),
        ("t5/tokenizer.json.xz", "a Unigram vocabulary"),
        ("clip/tokenizer.json.xz", "CLIP-style BPE with end-of-word suffix </w>"),
    ],
)
def test_published_files_of_other_kinds_are_named(
    name: str, kind: str, shared_data: Path, tmp_path: Path
) -> None:
    source = shared_data / "zoo" / "files" / name
    data = source.read_bytes()
    path = tmp_path / source.name.removesuffix(".xz")
    path.write_bytes(lzma.decompress(data) if source.suffix == ".xz" else data)
    with pytest.raises(ModelFileError, match=f"{path.name}.* is {kind}"):
        load_tokenizer(path)
    with pytest.raises(ModelFileError, match=f"{kind}.*{INSTALL}"):
        load_tokenizer(tmp_path)


def in_model(**model: Any) -> dict[str, Any]:
    whole = {"type": "BPE", "vocab": {"a": 0}, "merges": [], **model}
    return {"pre_tokenizer": BYTE_LEVEL, "model": whole}


def pre_tokenized(*steps: dict[str, Any]) -> dict[str, Any]:
    return {**in_model(), "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (in_model(byte_fallback=True), "this is SentencePiece-style BPE with byte fallback"),
        (in_model(vocab=[["a", -1.5]], type=None), "this is a Unigram vocabulary"),
        (in_model(type="WordPiece"), "this is a WordPiece vocabulary"),
        (in_model(type="WordLevel"), "this is a WordLevel vocabulary"),
        (in_model(continuing_subword_prefix="##"), "BPE with continuing-subword prefix ##"),
        (in_model(end_of_word_suffix="</w>"), "CLIP-style BPE with end-of-word suffix </w>"),
        (
            pre_tokenized(SPLIT, BYTE_LEVEL, {"type": "Digits"}),
            r"byte-level BPE with steps after ByteLevel \(Split, ByteLevel, Digits\)",
        ),
        (pre_tokenized(METASPACE), r"SentencePiece-style BPE \(Metaspace\)"),
        (pre_tokenized({"type": "Whitespace"}), "BPE over characters, and not over bytes"),
        ({"tokenizer_class": "X"}, "a tokenizer_config.json, which holds no vocabulary; give its"),
        ({"model_type": "llama"}, "a model's config.json, which holds no vocabulary; give its"),
        ({"a": 0, "b": 1}, "a vocab.json without its merges; give the folder with merges.txt"),
        ({"x": None}, "'model' is missing, where a dict is expected; give a file without it"),
    ],
)
def test_documents_of_other_kinds_are_named(
    document: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=rf"tokenizer\.json.*{message}"):
        load_tokenizer(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "tokenizer.json",
            b"version https://git-lfs.github.com/spec/v1\n",
            "a Git LFS pointer.*pull",
        ),
        ("tokenizer.json", b"\x1f\x8b\x08", "compressed with gzip; unpack it first"),
        ("model.gguf", b"GGUF\x03", "a GGUF model"),
        ("merges.txt", b"#version: 0.2\na b\n", "a merges.txt without its vocabulary; give the f"),
        ("x", b"hello", "is none of a tokenizer's files"),
    ],
)
def test_other_files_are_named_by_their_content(
    name: str, data: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelFileError, match=f"{name}.* {message}"):
        load_tokenizer(tmp_path / name)
