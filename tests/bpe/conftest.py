"""Published vocabularies and nasty inputs, read once for all tests of the library."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.formats.gpt2_files import read_gpt2_files
from bpe.formats.tiktoken_ranks import published_file, read_tiktoken_ranks
from bpe.pretokenizing.schemes import get_scheme

PUBLISHED_NAMES = ("gpt2", "cl100k_base", "o200k_base")


@dataclass(frozen=True)
class NastyInput:
    """An input of cases/nasty_inputs.jsonl; ids by vocabulary, empty where it is not UTF-8."""

    name: str
    data: bytes
    is_valid: bool
    ids: dict[str, list[int]]


@pytest.fixture(scope="session")
def nasty_inputs(data_dir: Path) -> list[NastyInput]:
    lines = (data_dir / "cases" / "nasty_inputs.jsonl").read_text().splitlines()
    rows = map(json.loads, lines)
    found = [
        NastyInput(row["name"], base64.b64decode(row["b64"]), row["valid_utf8"], row["ids"] or {})
        for row in rows
    ]
    assert len(found) == 125
    return found


@pytest.fixture(scope="session")
def rank_files(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Unpacked `.tiktoken` files by the vendor's name."""
    folder = tmp_path_factory.mktemp("vocab")
    unpacked = {}
    for name in ("cl100k_base", "o200k_base"):
        unpacked[name] = folder / f"{name}.tiktoken"
        packed = (data_dir / "vocab" / f"{name}.tiktoken.gz").read_bytes()
        unpacked[name].write_bytes(gzip.decompress(packed))
    return unpacked


@pytest.fixture(scope="session")
def published_models(data_dir: Path, rank_files: dict[str, Path]) -> dict[str, TokenizerModel]:
    """Models of `PUBLISHED_NAMES`, with their published special tokens."""
    vocab = data_dir / "vocab"
    models = {
        "gpt2": read_gpt2_files(
            vocab / "encoder.json", vocab / "vocab.bpe", scheme=get_scheme("gpt2")
        )
    }
    for name, path in rank_files.items():
        known = published_file(path)
        assert known is not None
        assert known.name == name
        models[name] = read_tiktoken_ranks(
            path, pretokenizer=known.pretokenizer, special_tokens=known.special_tokens
        )
    return models
