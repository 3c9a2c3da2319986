"""The native encoder against the specification: any merges, long pieces, small caches."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.values import EncodingModel
from bpe.errors import InputError
from bpe.pretokenizing.schemes import get_scheme
from bpe.reference.encoding import ReferenceEncoder
from tests.native.scan_texts import random_text

native = pytest.importorskip("bpe._native", reason="the native core is not built")
native_backend = pytest.importorskip("bpe.backends.native_backend")


def random_model(rng: random.Random, scheme: str, *, shuffled: bool = False) -> EncodingModel:
    """Merges over a few letters, several for some tokens; with `shuffled` in any order."""
    tokens = {byte: bytes([byte]) for byte in range(256)}
    ids = {token: token_id for token_id, token in tokens.items()}
    letters = rng.choice([b"ab", b"abc ", b"a", b"01", b"\xe4\xb8\xad", b"ab\x00"])
    pool = [bytes([letter]) for letter in letters]
    merges: list[tuple[int, int, int]] = []
    pairs = set()
    for _ in range(rng.randrange(1, 60)):
        left, right = rng.choice(pool), rng.choice(pool)
        made = left + right
        if len(made) > 40 or (left, right) in pairs:
            continue
        pairs.add((left, right))
        if made not in ids:
            ids[made] = len(tokens) + rng.randrange(2) * 70_000
            tokens[ids[made]] = made
            pool.append(made)
        merges.append((ids[left], ids[right], ids[made]))
    if shuffled:
        rng.shuffle(merges)
    # Tokens that merges do not reach.
    for word in (
        b"abba",
        b"aaaaaaa",
        b"ab ab",
        b"hello",
        b"hello world, again and again and again",
    ):
        if word not in ids:
            ids[word] = 200_000 + len(tokens)
            tokens[ids[word]] = word
    return EncodingModel(tokens, merges, rng.random() < 0.5, get_scheme(scheme))


def piece_text(rng: random.Random, longest: int) -> bytes:
    letters = rng.choice([b"ab", b"abc ", b"a", b"01", b"\xe4\xb8\xad", b"ab\x00", b"helo wrd"])
    return bytes(rng.choice(letters) for _ in range(rng.randrange(longest)))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", ["none", "gpt2", "cl100k", "o200k", "whitespace", "superbpe"])
@pytest.mark.parametrize("order", ["ranked", "shuffled"])
def test_any_merges(scheme: str, order: str) -> None:
    shuffled = order == "shuffled"
    rng = random.Random(scheme + order)
    for _ in range(120):
        model = random_model(rng, scheme, shuffled=shuffled)
        encoder = native_backend.NativeBackend().make_encoder(model, cache_bytes=1)
        reference = ReferenceEncoder(model)
        for _ in range(12):
            data = piece_text(rng, rng.choice([8, 40, 300]))
            assert list(encoder.encode(data)) == list(reference.encode(data)), (model, data)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**9), st.lists(st.binary(max_size=80), max_size=20))
def test_batches_equal_single_documents(seed: int, documents: list[bytes]) -> None:
    rng = random.Random(seed)
    model = random_model(rng, rng.choice(["gpt2", "cl100k", "o200k", "llama3", "qwen2", "none"]))
    documents += [random_text(rng) for _ in range(3)]
    encoder = native_backend.NativeBackend().make_encoder(model)
    reference = ReferenceEncoder(model)
    texts = pa.array(documents, pa.large_binary())
    for _ in range(2):  # cold and warm
        assert encoder.encode_array(texts).equals(reference.encode_array(texts))


def test_a_full_cache_is_emptied_and_filled_again() -> None:
    rng = random.Random(3)
    model = random_model(rng, "gpt2")
    encoder = native_backend.NativeBackend().make_encoder(model, cache_bytes=1)
    words = [
        b" " + bytes(rng.choice(b"abcdefgh") for _ in range(rng.randrange(1, 50)))
        for _ in range(30_000)
    ]
    data = b"".join(words)
    expected = ReferenceEncoder(model).encode(data)
    for _ in range(3):
        assert np.array_equal(encoder.encode(data), expected)


def test_words_beyond_a_small_table_are_found_again() -> None:
    """The table grows several times, to the size that large corpora have."""
    rng = random.Random(4)
    model = random_model(rng, "gpt2")
    words = [b" %d" % rng.randrange(10**9) for _ in range(50_000)]
    data = b"".join([*words, *words[::-1]])
    expected = ReferenceEncoder(model).encode(data)
    encoder = native_backend.NativeBackend().make_encoder(model)
    for _ in range(2):
        assert np.array_equal(encoder.encode(data), expected)


def test_long_pieces_beyond_a_small_table_are_found_again() -> None:
    rng = random.Random(5)
    model = random_model(rng, "gpt2")
    words = [bytes(rng.choices(b"abcx", k=rng.randrange(32, 250))) for _ in range(3_000)]
    data = b" ".join([*words, *words[::-1]])
    expected = ReferenceEncoder(model).encode(data)
    encoder = native_backend.NativeBackend().make_encoder(model)
    for _ in range(2):
        assert np.array_equal(encoder.encode(data), expected)


def test_long_pieces_of_one_hash_are_told_apart() -> None:
    """Two words of 64 bits each lead to one state, if the second makes up for the first."""
    most = 2**64

    def mix(state: int, word: int) -> int:
        state = (state ^ word) * 0xFF51AFD7ED558CCD % most
        return state ^ state >> 32

    state = 40 * 0x9E3779B97F4A7C15 % most
    states = mix(state, 1), mix(state, 2)
    seconds = 7, 7 ^ states[0] ^ states[1]
    assert mix(states[0], seconds[0]) == mix(states[1], seconds[1])
    pieces = [
        b"".join(word.to_bytes(8, "little") for word in (first, second)) + b"a" * 24
        for first, second in zip((1, 2), seconds, strict=True)
    ]
    model = random_model(random.Random(6), "none")
    encoder = native_backend.NativeBackend().make_encoder(model)
    reference = ReferenceEncoder(model)
    for piece in (*pieces, *pieces):
        assert list(encoder.encode(piece)) == list(reference.encode(piece))


# Every piece is a new one. What remembering them all would take: 120 MB for the long ones, as much
# for the short ones. A cache of 1 MiB may take a few times that in all.
MEMORY_SCRIPT = """
from pathlib import Path
from bpe.backends.values import (EncodingModel)
from bpe.backends.native_backend import NativeBackend
from bpe.pretokenizing.schemes import get_scheme
model = EncodingModel({byte: bytes([byte]) for byte in range(256)}, [], False, get_scheme("gpt2"))
encoder = NativeBackend().make_encoder(model, cache_bytes=1 << 20)
def own_kib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
def encode(start):
    rows = range(start, start + 2_000)
    encoder.encode(b"".join(b" %06d" % row + b" " + b"%06d" % row * 32 for row in rows))
    encoder.encode(b"".join(b" %07d" % (row * 20 + i) for row in rows for i in range(20)))
for start in range(0, 60_000, 2_000):
    encode(start)
    if start == 4_000:
        before = own_kib()
print((own_kib() - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="own memory is read from /proc")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory"
)
def test_what_is_remembered_of_pieces_is_bounded() -> None:
    found = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 6, "MiB more"


def test_a_piece_too_long_for_the_heap_is_refused() -> None:
    """Its positions are 32-bit. Of the 4 GiB only the first bytes are ever touched."""
    tokens = {byte: bytes([byte]) for byte in range(256)} | {256: b"ab", 257: b"abab"}
    merges = [(256, 256, 257), (97, 98, 256)]  # abab merges before its halves: the heap encodes
    model = EncodingModel(tokens, merges, whole_piece=False, scheme=get_scheme("none"))
    size = 2**32 - 1
    memory = mmap.mmap(-1, size)
    memory[:4] = b"abab"
    pages = pa.py_buffer(memory)
    offsets = pa.py_buffer(np.array([0, size], np.int64))
    text = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, pages])
    encoder = native_backend.NativeBackend().make_encoder(model)
    with pytest.raises(InputError, match="a pre-token of 4294967295 bytes"):
        encoder.encode_array(text)
    assert list(encoder.encode(b"ababab")) == list(ReferenceEncoder(model).encode(b"ababab"))


@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "7", "ha", "=", "ACGT", "床前明月光", "😀", "\r\n", "the"]
)
def test_long_pieces_take_linear_time(unit: str) -> None:
    rng = random.Random(1)
    model = EncodingModel(*_trained_on(unit, rng), whole_piece=False, scheme=get_scheme("none"))
    encoder = native_backend.NativeBackend().make_encoder(model)
    data = (unit * 300_000).encode()[:300_000]
    short = data[:3_000]
    assert list(encoder.encode(short)) == list(ReferenceEncoder(model).encode(short))
    encoder.encode(data)
    seconds = []
    for size in (30_000, 300_000):
        started = time.process_time()
        encoder.encode(data[:size])
        seconds.append(time.process_time() - started)
    # Ten times the text; a quadratic encoder would take a hundred times as long.
    assert seconds[1] < 40 * seconds[0] + 0.05


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "whitespace"])
def test_words_longer_than_a_batch(scheme: str) -> None:
    rng = random.Random(2)
    model = random_model(rng, scheme)
    encoder = native_backend.NativeBackend().make_encoder(model)
    unsplit = EncodingModel(model.tokens, model.merges, model.whole_piece, get_scheme("none"))
    whole = native_backend.NativeBackend().make_encoder(unsplit)
    words = [b"ab" * (size // 2) for size in (4_094, 4_096, 9_000_000)]
    for word in words:
        data = b"".join([word, b"\n", words[0], b"\n", word])
        expected = [id_ for piece in data.splitlines() for id_ in (*whole.encode(piece), 10)][:-1]
        assert encoder.encode(data).tolist() == expected


def _trained_on(
    unit: str, rng: random.Random
) -> tuple[dict[int, bytes], list[tuple[int, int, int]]]:
    from bpe.backends.values import MergeRules

    text = "".join(rng.choice(unit) for _ in range(500)) + unit * 100
    documents = pa.array([text.encode()], pa.large_binary())
    rules = MergeRules(max_merges=100, min_frequency=1)
    learned = native_backend.NativeBackend().train_raw(documents, rules)
    tokens = {byte: bytes([byte]) for byte in range(256)}
    ids = {token: token_id for token_id, token in tokens.items()}
    merges = []
    for left, right in learned.merges:
        if left + right not in ids:
            ids[left + right] = len(tokens)
            tokens[len(tokens)] = left + right
        merges.append((ids[left], ids[right], ids[left + right]))
    return tokens, merges


def test_the_environment_forces_an_instruction_set() -> None:
    code = "from bpe import _native; print(_native.isa())"
    for isa in native.available_isas():
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "BPE_ISA": isa},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == isa
    refused = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "BPE_ISA": "mmx"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "BPE_ISA is 'mmx'" in refused.stderr


@pytest.mark.parametrize("isa", native.available_isas())
def test_encoders_on_every_instruction_set(isa: str) -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, str(root / "tests/benchmarks/fuzz_backends.py"), "--rounds", "200"]
    found = subprocess.run(
        command, env={**os.environ, "BPE_ISA": isa}, capture_output=True, text=True, check=False
    )
    assert found.stdout.startswith("200 rounds equal"), found.stdout + found.stderr
    assert found.stdout.strip().endswith(f"encoders on {isa}")
