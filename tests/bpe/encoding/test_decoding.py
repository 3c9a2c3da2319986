"""Decoding by each backend: any ids, columns of any kind, threads, and what is no id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe import InputError, SettingsError, Tokenizer
from bpe.backends.protocol import Backend, Decoder
from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.vocabulary_checks import MAX_ID

FAR_ID = 2**32 - 1  # beyond any table by id
TOKENS = {
    0: b"a",
    1: b"bc",
    2: b"\x00",
    3: b"fifteen bytes..",
    4: b"sixteen bytes...",
    5: b"x" * 300,
    70_000: b"seventy",
    FAR_ID: b"far",
}
IDS = [0, 1, 2, 3, 4, 5, 70_000, FAR_ID]
TYPES = [pa.uint16(), pa.uint32(), pa.uint64(), pa.int32(), pa.int64(), pa.int8(), pa.uint8()]


@pytest.fixture
def decoder(backend: Backend) -> Decoder:
    return backend.make_decoder(TOKENS)


def spell(ids: Sequence[int]) -> bytes:
    return b"".join(TOKENS[token_id] for token_id in ids)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.lists(st.sampled_from(IDS), max_size=40), max_size=12),
    kind=st.sampled_from(TYPES),
    threads=st.integers(1, 4),
)
def test_lists_of_any_ids_and_type(
    decoder: Decoder, rows: list[list[int]], kind: pa.DataType, threads: int
) -> None:
    highest = 2**kind.bit_width if pa.types.is_unsigned_integer(kind) else 2 ** (kind.bit_width - 1)
    rows = [[token_id for token_id in row if token_id < highest] for row in rows]
    array = pa.array([[0], *rows, [1]], pa.large_list(kind))[1:-1]
    found = decoder.decode_array(array, threads=threads)
    found.validate(full=True)
    assert found.type == pa.large_binary()
    assert found.to_pylist() == [spell(row) for row in rows]
    for row in rows:
        assert decoder.decode(np.array(row, kind.to_pandas_dtype())) == spell(row)


@pytest.mark.parametrize("count", [*range(12), 5000, 100_000])
def test_many_ids_whose_size_is_guessed_wrongly(decoder: Decoder, count: int) -> None:
    # Few of many ids are looked at for the size: here those are short, and nearly all are long.
    ids = np.full(count, 5, np.uint32)
    ids.reshape(-1)[: count - count % 1024].reshape(-1, 1024)[::32] = 0
    expected = spell(ids.tolist())
    assert decoder.decode(ids) == expected
    lists = pa.LargeListArray.from_arrays(pa.array([0, count], pa.int64()), pa.array(ids))
    assert decoder.decode_array(lists, threads=2).to_pylist() == [expected]


@pytest.mark.parametrize("bad", [6, 65_535, 69_999, 70_001, 2**32 - 2, 2**40, -1, -(2**40)])
@pytest.mark.parametrize("before", [0, 1, 4, 9])
def test_what_is_no_id_is_named(decoder: Decoder, bad: int, before: int) -> None:
    ids = [0] * before + [bad] + [1] * 5
    message = rf"is {bad}, which is no id of this vocabulary \(8 ids, the largest is {FAR_ID}\)"
    with pytest.raises(InputError, match=rf"^ids\[{before}\] {message}"):
        decoder.decode(np.array(ids, np.int64))
    rows = pa.array([[0] * 50, [1], ids, [7]], pa.large_list(pa.int64()))
    for threads in (1, 3):
        with pytest.raises(InputError, match=rf"^ids\[2\]\[{before}\] {message}"):
            decoder.decode_array(rows, threads=threads)


def test_threads_are_at_least_one() -> None:
    native_backend = pytest.importorskip("bpe.backends.native_backend")
    decoder = native_backend.NativeBackend().make_decoder(TOKENS)
    with pytest.raises(SettingsError, match="threads is 0"):
        decoder.decode_array(pa.array([[0]], pa.large_list(pa.uint16())), threads=0)


def make() -> Tokenizer:
    return Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2", special_tokens=["<|end|>"])


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([[64, 65], [], [257, 256]]),
        pa.array([[64, 65], [], [257, 256]], pa.large_list(pa.uint16())),
        pa.array([[1], [64, 65], [], [257, 256]], pa.list_(pa.uint32()))[1:],
        pa.chunked_array([pa.array([[64, 65], []]), pa.array([[257, 256]])]),
    ],
    ids=lambda ids: str(ids.type),
)
@pytest.mark.usefixtures("backend")
def test_batches_of_every_kind_of_list(ids: pa.Array) -> None:
    for threads in (1, 2):
        assert make().decode_batch(ids, threads=threads).to_pylist() == [b"ab", b"", b"<|end|>ab"]


@pytest.mark.usefixtures("backend")
def test_rows_of_one_length() -> None:
    rows = pa.array([[64, 65], [65, 65], [257, 256]], pa.list_(pa.uint16(), 2))
    assert make().decode_batch(rows).to_pylist() == [b"ab", b"bb", b"<|end|>ab"]
    assert make().decode_batch(rows[1:]).to_pylist() == [b"bb", b"<|end|>ab"]
    assert make().decode_batch(rows[:0]).to_pylist() == []


@pytest.mark.usefixtures("backend")
def test_a_batch_comes_back() -> None:
    texts = pa.array([b"ab ab", b"", b"\xff<|end|>"], pa.large_binary())
    for special_text in ("text", "allow"):
        encoded = make().encode_batch(texts, special_text=special_text)
        assert make().decode_batch(encoded).equals(texts)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (7, r"ids is a int: pass an Arrow array of lists"),
        (pa.array([1]), r"ids is an array of int64: pass one of lists of integers"),
        (pa.array([["a"]]), r"ids is an array of list<.*string>: pass one of lists of integers"),
        (pa.array([[1], None]), r"ids\[1\] is null: pass lists of integers"),
        (pa.array([[1], [], [2, None]]), r"ids\[2\]\[1\] is null: pass integers"),
        (pa.array([[1], [2, 999]]), r"ids\[1\]\[1\] is 999, which is no id of .*\(258 ids"),
    ],
)
@pytest.mark.usefixtures("backend")
def test_batches_that_cannot_be_decoded(ids: pa.Array, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().decode_batch(ids)


@pytest.mark.usefixtures("backend")
def test_a_special_token_with_the_largest_id_there_is() -> None:
    tokenizer = Tokenizer(replace(make().model, added_tokens=special_added_tokens({"<x>": MAX_ID})))
    assert tokenizer.decode([64, MAX_ID]) == b"a<x>"
