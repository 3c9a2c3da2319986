"""Classes of tokens, near duplicates, and indicators from embeddings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.insight.embeddings import Embeddings, compute_indicators, open_embeddings
from bpe.insight.token_classes import (
    classify_tokens,
    find_near_duplicates,
    has_odd_bytes,
    longest_tokens,
    utf8_class,
)

INDICATORS = ("l2_norm", "l2_distance", "cosine", "cosine_centred", "cosine_without_first_pc")


def test_golden_classes(data_dir: Path) -> None:
    golden = json.loads((data_dir / "cases" / "token_classes.json").read_text())
    for text, expected in golden["utf8_class"]:
        assert utf8_class(bytes.fromhex(text)) == expected, text
    merges = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in golden["merges"]]
    classes = classify_tokens(bpe.Tokenizer.from_merges(merges, pretokenizer="gpt2"))
    assert {row["id"]: row["class"] for row in golden["tokens"]}.items() <= classes.items()
    impossible = [each for each, found in classes.items() if found == "impossible" and each < 256]
    assert impossible == golden["ids_of_impossible_bytes_in_hf_order"]


@given(st.text(max_size=6), st.data())
def test_parts_of_text_are_never_impossible(text: str, data: st.DataObject) -> None:
    written = text.encode()
    start = data.draw(st.integers(0, len(written)))
    end = data.draw(st.integers(start, len(written)))
    assert utf8_class(written[start:end]) != "impossible"


@given(st.binary(min_size=1, max_size=3))
def test_partial_tokens_can_be_completed(token: bytes) -> None:
    tails = [
        b"",
        b"\x80",
        b"\x80\x80",
        b"\x80\x80\x80",
        b"\xa0\x80",
        b"\xa0",
        b"\x90\x80\x80",
        b"\x90\x80",
    ]
    heads = [b"", b"\xc2", b"\xe1", b"\xe1\x80", b"\xf1", b"\xf1\x80", b"\xf1\x80\x80"]

    def is_text(data: bytes) -> bool:
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return True

    possible = any(is_text(head + token + tail) for head in heads for tail in tails)
    assert (utf8_class(token) != "impossible") == possible


def test_near_duplicates_differ_in_space_case_and_width() -> None:
    tokens = [
        (3, b" The"),
        (1, b"the"),
        (7, "ｔhe".encode()),
        (8, b"  the"),
        (9, b"\xff"),
        (10, b" "),
    ]
    assert find_near_duplicates(tokens) == [[1, 3, 7]]


def test_longest_and_odd() -> None:
    assert longest_tokens([(5, b"aa"), (2, b"aa"), (1, b"a")], 2) == [2, 5]
    assert [has_odd_bytes(token) for token in (b"a\n", b"\x00", "\x85".encode())] == [
        False,
        True,
        True,
    ]


def test_golden_indicators(data_dir: Path) -> None:
    golden = json.loads((data_dir / "cases" / "embedding.json").read_text())
    found = compute_indicators(Embeddings(np.array(golden["matrix"])), golden["unused"])
    for name in INDICATORS:
        np.testing.assert_allclose(getattr(found, name), golden[name], rtol=1e-9, atol=1e-12)


def write_safetensors(path: Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    header, data = {}, b""
    for name, (kind, values) in tensors.items():
        header[name] = {
            "dtype": kind,
            "shape": values.shape,
            "data_offsets": [len(data), len(data) + values.nbytes],
        }
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_embeddings_are_read_from_both_kinds_of_files(tmp_path: Path) -> None:
    matrix = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "e.npy", matrix)
    upper = (matrix.view(np.uint32) >> 16).astype(np.uint16)
    tensors = {"norm": ("F32", matrix[0]), "wte.weight": ("BF16", upper), "x": ("F32", matrix)}
    write_safetensors(tmp_path / "e.safetensors", tensors)
    for name, tensor in (("e.npy", None), ("e.safetensors", None), ("e.safetensors", "x")):
        opened = open_embeddings(tmp_path / name, tensor)
        assert opened.rows(slice(None)).tolist() == matrix.tolist()


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 40, b"\x02" + b"\0" * 7 + b"{}", b"\x09" + b"\0" * 7 + b'{"a":"b"}']
)
@pytest.mark.parametrize("name", ["e.npy", "e.safetensors"])
def test_damaged_embeddings_are_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(bpe.ModelFileError, match=name):
        open_embeddings(path)


def test_a_tensor_beyond_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.safetensors"
    write_safetensors(path, {"x": ("F32", np.ones((4, 3), np.float32))})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(bpe.ModelFileError, match="do not fit"):
        open_embeddings(path)


def test_unused_ids_have_rows() -> None:
    with pytest.raises(bpe.SettingsError, match="from 0 to 1"):
        compute_indicators(Embeddings(np.ones((2, 2))), [2])
