"""Encoding of one model by each backend: published ids, any bytes back, long pre-tokens."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend, Encoder
from bpe.backends.values import EncodingModel
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, from_printable
from bpe.errors import VocabularyError
from bpe.pretokenizing.schemes import get_scheme
from bpe.reference.naive import naive_ids

Merges = list[tuple[bytes, bytes]]


def make_model(
    merges: Merges, scheme: str, *, base: bytes = bytes(range(256)), whole_piece: bool = False
) -> EncodingModel:
    tokens = {index: bytes([value]) for index, value in enumerate(base)}
    ids = {token: index for index, token in tokens.items()}
    triples = []
    for left, right in merges:
        tokens[len(tokens)] = left + right
        triples.append((ids[left], ids[right], len(tokens) - 1))
        ids[left + right] = len(tokens) - 1
    return EncodingModel(tokens, triples, whole_piece, get_scheme(scheme))


def gpt2_merges(data_dir: Path) -> Merges:
    lines = (data_dir / "vocab" / "vocab.bpe").read_text("utf-8").split("\n")[1:]
    pairs = (line.split(" ") for line in lines if line)
    return [(from_printable(left) or b"", from_printable(right) or b"") for left, right in pairs]


@pytest.fixture
def gpt2(backend: Backend, data_dir: Path) -> Encoder:
    return backend.make_encoder(make_model(gpt2_merges(data_dir), "gpt2", base=PRINTABLE_ORDER))


def decode(backend: Backend, model: EncodingModel, ids: npt.NDArray[np.uint32]) -> bytes:
    return backend.make_decoder(model.tokens).decode(ids)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (" strawberry", [41236]),
        ("strawberry", [301, 1831, 8396]),
        (" 1234567", [17031, 2231, 3134]),
        (" SolidGoldMagikarp", [43453]),
        (" petertodd", [37444]),
        (" davidjl", [23282]),
        (" the", [262]),
        ("", []),
    ],
)
def test_gpt2_facts(gpt2: Encoder, text: str, ids: list[int]) -> None:
    found = gpt2.encode(text.encode())
    assert found.tolist() == ids
    assert found.dtype == np.uint32


def test_gpt2_on_bytes_that_are_no_utf8(gpt2: Encoder) -> None:
    assert gpt2.encode(b"\xffit's 1234").tolist() == [187, 270, 338, 1105, 2682]
    assert len(gpt2.encode("\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd".encode())) == 21


def test_gpt2_on_nasty_inputs(gpt2: Encoder, data_dir: Path) -> None:
    lines = (data_dir / "cases" / "nasty_inputs.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines if line]
    texts = [base64.b64decode(case["b64"]) for case in cases]
    encoded = gpt2.encode_array(pa.array(texts, pa.large_binary()))
    assert encoded.type == pa.large_list(pa.uint16())
    for case, ids in zip(cases, encoded.to_pylist(), strict=True):
        if case["valid_utf8"]:
            assert ids == case["ids"]["gpt2"], case["name"]
    assert len(cases) == 125


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["feste_tiny_512", pytest.param("feste_tiny_1024", marks=pytest.mark.exhaustive)]
)
def test_raw_encoding_of_tiny(backend: Backend, data_dir: Path, name: str) -> None:
    stored = json.loads((data_dir / "merges" / f"{name}.json").read_text())
    merges = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in stored["merges"]]
    model = make_model(merges, "none")
    encoder = backend.make_encoder(model)
    data = (data_dir / "tiny_shakespeare.txt").read_bytes()
    ids = encoder.encode(data)
    assert len(ids) == stored["tokens_unchunked"]
    digest = hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()
    assert digest == stored["ids_unchunked_sha256_u32le"]
    assert decode(backend, model, ids) == data


RUNS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"ab", b"ba", b" ", b"\xff"]), st.integers(1, 9)),
    max_size=6,
).map(lambda runs: b"".join(symbol * length for symbol, length in runs))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", ["gpt2", "none", "whitespace"])
@pytest.mark.parametrize("whole_piece", [False, True])
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(RUNS, min_size=1, max_size=4))
def test_encoding_equals_merging_rank_by_rank(
    backend: Backend, scheme: str, *, whole_piece: bool, texts: list[bytes]
) -> None:
    merges = [(b"a", b"a"), (b"b", b"a"), (b"a", b"b"), (b"aa", b"aa"), (b"ba", b"ba")]
    merges += [(b" ", b"aa"), (b"aaaa", b"b"), (b"ab", b"ab")]
    model = make_model(merges, scheme, whole_piece=whole_piece)
    encoder = backend.make_encoder(model)
    expected = [
        [index for word in model.scheme.split(text) for index in naive_ids(model, word)]
        for text in texts
    ]
    assert [encoder.encode(text).tolist() for text in texts] == expected
    array = pa.array([b"skipped", *texts], pa.large_binary())[1:]
    assert encoder.encode_array(array, threads=2).to_pylist() == expected
    assert [decode(backend, model, encoder.encode(text)) for text in texts] == texts


def test_whole_pre_tokens_first(backend: Backend) -> None:
    model = make_model([(b"a", b"b")], "gpt2", whole_piece=True)
    model.tokens[700] = b"abab"
    encoder = backend.make_encoder(model)
    assert encoder.encode(b"abab").tolist() == [700]
    assert encoder.encode(b" abab").tolist() == [32, 256, 256]
    assert decode(backend, model, np.array([700, 32], np.uint32)) == b"abab "


def test_ids_above_16_bits_make_wide_arrays(backend: Backend) -> None:
    texts = pa.array([b"a"], pa.large_binary())
    model = make_model([], "gpt2")
    assert backend.make_encoder(model).encode_array(texts).type == pa.large_list(pa.uint16())
    model.tokens[65_535] = b"xy"
    assert backend.make_encoder(model).encode_array(texts).type == pa.large_list(pa.uint16())
    model.tokens[65_536] = b"xyz"
    assert backend.make_encoder(model).encode_array(texts).type == pa.large_list(pa.uint32())


def test_empty_arrays(backend: Backend) -> None:
    encoder = backend.make_encoder(make_model([], "gpt2"))
    assert encoder.encode_array(pa.array([], pa.large_binary())).to_pylist() == []
    assert encoder.encode_array(pa.array([b""], pa.large_binary())).to_pylist() == [[]]


def test_a_full_cache_changes_nothing(backend: Backend) -> None:
    model = make_model([(b"a", b"b")], "gpt2")
    texts = pa.array([b"ab ab abab " * 9], pa.large_binary())
    small = backend.make_encoder(model, cache_bytes=0).encode_array(texts)
    assert small.equals(backend.make_encoder(model).encode_array(texts))


def test_a_vocabulary_without_a_byte_is_refused(backend: Backend) -> None:
    model = make_model([], "gpt2")
    del model.tokens[65]
    with pytest.raises(VocabularyError, match="b'A'"):
        backend.make_encoder(model)
