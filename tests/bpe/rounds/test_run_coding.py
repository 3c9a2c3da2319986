"""Run coding: one sequence, one coding; many at once as each alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import CountTableError
from bpe.rounds.run_coding import (
    decode_runs,
    decode_segments,
    encode_runs,
    encode_segments,
    join_runs,
    parse_segments,
    read_runs,
    write_runs,
)

# Both parities, both sides of one and two coded bytes, and the largest ids.
TOKENS = st.sampled_from([0, 1, 2, 62, 63, 64, 65, 127, 8191, 8192, 65535, 65536, 2**32 - 1])
SEQUENCES = st.lists(
    st.tuples(TOKENS, st.sampled_from([1, 1, 2, 3, 127, 128, 300])), max_size=6
).map(lambda runs: [token for token, run in runs for _ in range(run)])


def coded_array(codings: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(codings, pa.large_binary())


@given(SEQUENCES)
def test_coding_and_back(ids: list[int]) -> None:
    coded = encode_runs(ids)
    assert decode_runs(coded) == ids
    assert write_runs(read_runs(coded)) == coded


def test_the_bytes() -> None:
    assert encode_runs([]) == b""
    assert encode_runs([5]) == b"\x0a"
    assert encode_runs([5, 5, 5]) == b"\x0b\x03"
    assert encode_runs([64] * 200) == b"\x81\x01\xc8\x01"


@given(SEQUENCES, SEQUENCES)
def test_equal_codings_are_equal_sequences(first: list[int], second: list[int]) -> None:
    assert (encode_runs(first) == encode_runs(second)) == (first == second)


@settings(deadline=None)
@given(st.lists(SEQUENCES, max_size=6), st.integers(0, 3))
def test_many_at_once(sequences: list[list[int]], dropped: int) -> None:
    codings = coded_array([encode_runs(ids) for ids in sequences])[dropped:]
    lists = decode_segments(codings)
    assert lists.to_pylist() == sequences[dropped:]
    assert encode_segments(lists).to_pylist() == codings.to_pylist()


@settings(deadline=None)
@given(st.lists(SEQUENCES, max_size=6), st.integers(0, 3))
def test_coding_many_of_a_slice(sequences: list[list[int]], dropped: int) -> None:
    lists = pa.array(sequences, pa.large_list(pa.uint32()))[dropped:]
    assert encode_segments(lists).to_pylist() == [encode_runs(ids) for ids in sequences[dropped:]]


@given(st.lists(SEQUENCES, max_size=4))
def test_joined_runs_are_those_of_the_whole(parts: list[list[int]]) -> None:
    runs = join_runs(read_runs(encode_runs(part)) for part in parts)
    assert write_runs(runs) == encode_runs([token for part in parts for token in part])


def test_runs_longer_than_32_bits() -> None:
    coded = write_runs([(7, 2**40), (8, 1)])
    assert read_runs(coded) == [(7, 2**40), (8, 1)]
    tokens, runs, rows = parse_segments(coded_array([coded]))
    assert (tokens.tolist(), runs.tolist(), rows.tolist()) == ([7, 8], [2**40, 1], [0, 0])


@pytest.mark.parametrize("coded", [b"\x80", b"\x0b", b"\x0a\x0b", b"\x0b\x83", b"\x0b\x03\xff"])
def test_a_cut_coding_is_named(coded: bytes) -> None:
    with pytest.raises(CountTableError, match="end within a run"):
        read_runs(coded)
    with pytest.raises(CountTableError, match="end within a run"):
        parse_segments(coded_array([b"\x0a", coded, b"\x0a"]))
