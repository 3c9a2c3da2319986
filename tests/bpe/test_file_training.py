"""Training from files equals training from their texts, however they are cut into blocks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bpe
from bpe import BadFileError, InputError, SettingsError

PARTS = [
    b"low lower",
    b" lowest",
    b"\n\n",
    b"it's",
    b"1234",
    b" ",
    b"<s>",
    "é你好".encode(),
    b"\xff",
    b"\r\n",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=14).map(b"".join)


def write(folder: Path, texts: list[bytes]) -> list[Path]:
    paths = [folder / f"{index}.txt" for index in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    return paths


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("policy", ["text", "allow"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    scheme=st.sampled_from(["gpt2", "cl100k", "o200k", "whitespace", "superbpe", r"regex:\w+|\W+"]),
    block=st.integers(1, 40),
)
def test_counts_do_not_depend_on_blocks(
    tmp_path: Path, policy: str, texts: list[bytes], scheme: str, block: int
) -> None:
    options: dict[str, Any] = {
        "first_positions": True,
        "special_text": policy,
        "special_tokens": ["<s>"],
    }
    expected = bpe.count_pretokens(pa.array(texts, pa.binary()), scheme, **options)
    found = bpe.count_files(write(tmp_path, texts), scheme, block_bytes=block, **options)
    assert found.equals(expected, check_metadata=True)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("tie_order", ["hf", "first"])
def test_training_equals_training_on_the_counts(tmp_path: Path, tie_order: str) -> None:
    texts = [b"low lower lowest <s>low", b"", "new é newer".encode()]
    paths = write(tmp_path, texts)
    options: dict[str, Any] = {"tie_order": tie_order, "special_tokens": ["<s>"]}
    counts = bpe.count_pretokens(
        pa.array(texts, pa.binary()),
        "cl100k",
        first_positions=True,
        special_text="allow",
        special_tokens=["<s>"],
    )
    expected = bpe.train(counts, 262, pretokenizer="cl100k", **options)
    found = bpe.train_from_files(
        paths, 262, pretokenizer="cl100k", special_text="allow", threads=2, **options
    )
    assert found == expected
    assert found.merges == expected.merges
    assert bpe.train_from_files(str(paths[0]), 258).merges[0] == (b"l", b"o")


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    paths = write(tmp_path, [b"ab<s>ab", b"1" * 200])
    with pytest.raises(InputError, match=r"0\.txt holds the special token '<s>' at byte 2"):
        bpe.train_from_files(paths, 300, special_tokens=["<s>"], special_text="reject")
    with pytest.raises(BadFileError, match=r"nowhere\.txt cannot be read: No such file"):
        bpe.train_from_files([tmp_path / "nowhere.txt"], 300)
    with pytest.raises(SettingsError, match=r"x\.jsonl is no plain text by its name"):
        bpe.train_from_files([tmp_path / "x.jsonl"], 300)
    with pytest.raises(SettingsError, match=r"is a directory: list its files"):
        bpe.train_from_files(tmp_path, 300)
    with pytest.raises(SettingsError, match="paths is empty"):
        bpe.train_from_files([], 300)
    with pytest.raises(SettingsError, match="pretokenizer 'none' trains on whole documents"):
        bpe.train_from_files(paths, 300, pretokenizer="none")
    with pytest.raises(SettingsError, match="vocab_size is 3"):
        bpe.train_from_files([tmp_path / "nowhere.txt"], 3)
    with pytest.raises(SettingsError, match=r"1\.txt cannot be cut within 100 bytes"):
        bpe.count_files(paths[1], r"regex:\d+", block_bytes=16, limit_bytes=100)


def test_the_library_does_not_import_beam() -> None:
    code = "import bpe, sys; sys.exit('apache_beam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
