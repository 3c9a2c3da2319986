"""Merge lists of other trainers, reproduced merge for merge."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from bpe.backends.protocol import Backend
from bpe.backends.values import MergeList, MergeRules
from bpe.pretokenizing.schemes import get_scheme

Merges = list[tuple[bytes, bytes]]


def golden(data_dir: Path, name: str) -> Merges:
    stored = json.loads((data_dir / "merges" / f"{name}.json").read_text())["merges"]
    return [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in stored]


def tiny(data_dir: Path) -> bytes:
    return (data_dir / "tiny_shakespeare.txt").read_bytes()


def corpus(shared_data: Path, name: str, size: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    with (shared_data / "corpora" / name).open("rb") as file:
        data = decompressor.stream_reader(file).read(size)
    assert len(data) == size
    return data


def learn(backend: Backend, data: bytes, scheme: str, merges: int, tie_order: str) -> MergeList:
    texts = pa.array([data], pa.large_binary())
    rules = MergeRules(merges, tie_order, min_frequency=1)
    if scheme == "none":
        return backend.train_raw(texts, rules)
    first = tie_order == "first"
    words = backend.count_words(texts, get_scheme(scheme), first_positions=first)
    return backend.train_words(*words, rules)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("name", "scheme", "tie_order"),
    [
        ("hf_tiny_1024", "gpt2", "hf"),
        ("hf_tiny_8192", "gpt2", "hf"),
        ("rustbpe_tiny_1024", "gpt2", "id"),
        ("rustbpe_tiny_8192", "gpt2", "id"),
        ("minbpe_regex_tiny_512", "gpt2", "first"),
        ("minbpe_basic_tiny_512", "none", "first"),
        ("feste_tiny_512", "none", "bytes"),
        ("feste_tiny_1024", "none", "bytes"),
    ],
)
def test_lists_on_tiny(
    backend: Backend, data_dir: Path, name: str, scheme: str, tie_order: str
) -> None:
    expected = golden(data_dir, name)
    found = learn(backend, tiny(data_dir), scheme, len(expected), tie_order)
    assert found.merges == expected
    assert found.stop_reason == "vocab_size"


def test_feste_4096_on_the_first_200000_bytes(backend: Backend, data_dir: Path) -> None:
    expected = golden(data_dir, "feste_tiny_4096")
    found = learn(backend, tiny(data_dir)[:200_000], "none", len(expected), "bytes")
    assert found.merges == expected


@pytest.mark.parametrize(
    ("name", "corpus_name", "tie_order"),
    [
        ("hf_en20_8192", "en200.txt.zst", "hf"),
        ("rustbpe_en20_8192", "en200.txt.zst", "id"),
        ("hf_zh20_1024", "zh100.json.zst", "hf"),
    ],
)
@pytest.mark.parametrize(
    "backend",
    [pytest.param("python", marks=pytest.mark.exhaustive), "native"],
    indirect=True,
)
def test_lists_on_20_megabytes(
    backend: Backend,
    data_dir: Path,
    shared_data: Path,
    *,
    name: str,
    corpus_name: str,
    tie_order: str,
) -> None:
    expected = golden(data_dir, name)
    data = corpus(shared_data, corpus_name, 20_971_520)
    assert learn(backend, data, "gpt2", len(expected), tie_order).merges == expected


def digest(merges: Merges) -> str:
    lines = "\n".join(f"{left.hex()} {right.hex()}" for left, right in merges)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("scheme", "tie_order", "expected"),
    [
        ("cl100k", "hf", "035e166428e0b2b3"),
        ("cl100k", "id", "c3b996bb6520cca0"),
        ("o200k", "hf", "42a123fdf7198590"),
        ("o200k", "id", "2cc36a203ef8155e"),
    ],
)
def test_digests_on_tiny(
    backend: Backend, data_dir: Path, scheme: str, tie_order: str, expected: str
) -> None:
    assert digest(learn(backend, tiny(data_dir), scheme, 768, tie_order).merges) == expected


@pytest.mark.parametrize(
    ("scheme", "by_hf", "by_id"),
    [
        ("gpt2", "44a1f2f16d07a57a", "0b660e2d29c47336"),
        ("cl100k", "c1c3842e4149bcbe", "d447d9efe540977f"),
        ("o200k", "c1c3842e4149bcbe", "d447d9efe540977f"),
        ("llama3", "c1c3842e4149bcbe", "d447d9efe540977f"),
        ("qwen2", "83403f8f41ab8235", "83be7fe9f4eb1b34"),
    ],
)
@pytest.mark.slow
def test_digests_on_two_megabytes_of_chinese(
    backend: Backend, shared_data: Path, scheme: str, by_hf: str, by_id: str
) -> None:
    data = corpus(shared_data, "zh100.json.zst", 2_000_000)
    assert digest(learn(backend, data, scheme, 768, "hf").merges) == by_hf
    assert digest(learn(backend, data, scheme, 768, "id").merges) == by_id


def test_lists_nest(backend: Backend, data_dir: Path) -> None:
    short = learn(backend, tiny(data_dir), "gpt2", 100, "hf")
    long = learn(backend, tiny(data_dir), "gpt2", 200, "hf")
    assert long.merges[:100] == short.merges
    assert long.counts[:100] == short.counts
    assert long.counts == sorted(long.counts, reverse=True)
