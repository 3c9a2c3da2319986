"""The native simulation of a round equals the specification; its border to Python holds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend
from bpe.backends.values import MAX_COUNT, MergeRules, StopBefore, count_words_in
from bpe.errors import CountTableError, InputError, SettingsError
from bpe.reference.portable_backend import PythonBackend
from bpe.reference.training import base_symbols
from bpe.rounds.run_coding import encode_runs
from tests.bpe.native_round_cases import draw_weights, lists, weights_of

_native = pytest.importorskip("bpe._native", reason="the native core is not built")
native_backend = pytest.importorskip("bpe.backends.native_backend")

SPECIFICATION = PythonBackend()
NATIVE = native_backend.NativeBackend()
BYTES = [bytes([value]) for value in range(256)]
ANY = MergeRules(100)


@st.composite
def texts(draw: st.DrawFn) -> list[bytes]:
    letters = draw(st.sampled_from([b"a", b"ab", b"abc", b"a b:", b"\x00\xffa"]))
    part = st.lists(st.sampled_from(list(letters)), max_size=6).map(bytes)
    run = st.tuples(part, st.integers(0, 9)).map(lambda pair: pair[0] * pair[1])
    return draw(st.lists(st.lists(run, max_size=6).map(b"".join), min_size=1, max_size=8))


@given(
    texts(),
    st.sampled_from(["hf", "id", "bytes"]),
    st.integers(0, 20),
    st.integers(1, 3),
    st.sampled_from([{}, {"max_words": 1}, {"max_words": 2}, {"forbidden_parts": (b": ", b"bb")}]),
    st.data(),
)
@settings(max_examples=120, deadline=None)
def test_simulations_equal_the_specification(
    documents: list[bytes],
    tie_order: str,
    before: int,
    min_frequency: int,
    limits: dict[str, Any],
    data: st.DataObject,
) -> None:
    base = base_symbols(tie_order)
    tokens = [bytes([value]) for value in base]
    ids = [[base.index(value) for value in document] for document in documents]
    weights = weights_of(draw_weights(data, len(ids)) or [1] * len(ids))

    def segments() -> pa.LargeBinaryArray:
        return pa.array(map(encode_runs, ids), pa.large_binary())

    # A state in the midst of training.
    earlier = MergeRules(before, tie_order, 1, **limits)
    made = SPECIFICATION.simulate_merges(segments(), weights, tokens, earlier, None)
    ids = SPECIFICATION.apply_merges(
        lists(ids), made.left, made.right, len(tokens), pa.uint16()
    ).to_pylist()
    for left, right in zip(made.left.to_pylist(), made.right.to_pylist(), strict=True):
        tokens.append(tokens[left] + tokens[right])

    rules = MergeRules(data.draw(st.integers(0, 50)), tie_order, min_frequency, **limits)
    everything = SPECIFICATION.simulate_merges(segments(), weights, tokens, rules, None)
    stop = draw_stop(data, everything.counts.to_pylist(), len(tokens))
    expected = SPECIFICATION.simulate_merges(segments(), weights, tokens, rules, stop)
    assert NATIVE.simulate_merges(segments(), weights, tokens, rules, stop) == expected
    assert NATIVE.simulate_merges(segments(), weights, tokens, rules, None) == everything


def draw_stop(data: st.DataObject, counts: list[int], tokens: int) -> StopBefore | None:
    nearby = sorted({max(1, count + change) for count in counts for change in (-1, 0, 1)})
    one = st.integers(0, tokens + 5)
    return data.draw(
        st.none() | st.builds(StopBefore, st.sampled_from([*nearby, 1, MAX_COUNT]), one, one)
    )


@pytest.mark.parametrize("tie_order", ["hf", "id", "bytes"])
def test_a_simulation_from_bytes_is_a_training(tie_order: str, data_dir: Any) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()[:200_000]
    base = base_symbols(tie_order)
    tokens = [bytes([value]) for value in base]
    coded = pa.array([encode_runs(base.index(value) for value in text)], pa.large_binary())
    for rules in (
        MergeRules(800, tie_order),
        MergeRules(800, tie_order, max_words=2, forbidden_parts=(b": ", b"he")),
        MergeRules(800, tie_order, max_token_bytes=5, forbidden=frozenset({b"th", b" the"})),
    ):
        expected = NATIVE.train_raw(pa.array([text], pa.large_binary()), rules)
        found = NATIVE.simulate_merges(coded, weights_of([1]), tokens, rules, None)
        assert found.counts.to_pylist() == expected.counts
        spelled = list(tokens)
        for left, right in zip(found.left.to_pylist(), found.right.to_pylist(), strict=True):
            spelled.append(spelled[left] + spelled[right])
        assert spelled[256:] == [left + right for left, right in expected.merges]


def test_simulations_stop_at_64_bits(backend: Backend) -> None:
    coded = pa.array([encode_runs([1, 2, 1]), encode_runs([3, 1, 2])], pa.large_binary())
    most = backend.simulate_merges(coded, weights_of([MAX_COUNT - 9, 9]), BYTES, ANY, None)
    assert (most.left[0].as_py(), most.right[0].as_py(), most.counts[0].as_py()) == (
        1,
        2,
        MAX_COUNT,
    )
    with pytest.raises(CountTableError, match="more than 9223372036854775807"):
        backend.simulate_merges(coded, weights_of([MAX_COUNT - 9, 10]), BYTES, ANY, None)


def test_two_pairs_of_three_thousand_million_each(backend: Backend) -> None:
    coded = pa.array([encode_runs([8, 9]), encode_runs([5, 6])], pa.large_binary())
    found = backend.simulate_merges(
        coded, weights_of([3 * 10**9, 3 * 10**9]), BYTES, MergeRules(9, "id"), None
    )
    assert found.left.to_pylist() == [5, 8]
    assert found.counts.to_pylist() == [3 * 10**9] * 2


@pytest.mark.parametrize(
    ("coded", "fault"),
    [
        (b"\x03", "ends early at byte 1 of 1"),
        (b"\x82", "ends early"),
        (b"\x03\x01", "a run is too short"),
        (b"\x02\x02", "a run goes on as another one"),
        (b"\x80\x00", "not in its shortest form"),
        (b"\x82" * 9 + b"\x02", "larger than 64 bits"),
        (b"\x80\x80\x80\x80\x20", "larger than 32 bits"),
    ],
)
def test_damaged_segments_are_refused(coded: bytes, fault: str) -> None:
    segments = pa.array([b"\x02\x04", coded], pa.large_binary())
    with pytest.raises(CountTableError, match=rf"segments\[1\]: .*{fault}"):
        NATIVE.simulate_merges(segments, weights_of([1, 1]), BYTES, ANY, None)


def test_simulations_say_what_they_cannot_do() -> None:
    two = pa.array([b"\x02\x04"], pa.large_binary())
    with pytest.raises(SettingsError, match="tie order 'first'"):
        NATIVE.simulate_merges(two, weights_of([1]), BYTES, MergeRules(9, "first"), None)
    with pytest.raises(CountTableError, match=r"segments\[0\] has the weight 0"):
        NATIVE.simulate_merges(two, weights_of([0]), BYTES, ANY, None)
    with pytest.raises(InputError, match=r"segments\[0\] holds the id 2, but ids end at 2"):
        NATIVE.simulate_merges(two, weights_of([1]), BYTES[:2], ANY, None)
    endless = pa.array([encode_runs([1]) + b"\x05\x80\x80\x80\x80\x10"], pa.large_binary())
    with pytest.raises(InputError, match="4294967299 units; one machine trains on at most"):
        NATIVE.simulate_merges(endless, weights_of([1]), BYTES, ANY, None)


@given(
    texts(),
    st.sampled_from(["hf", "id", "bytes", "first"]),
    st.none() | st.integers(1, 3),
    st.lists(st.sampled_from([b": ", b"aa", b"ab", b" a "]), max_size=2),
)
@settings(max_examples=80, deadline=None)
def test_limits_of_words_and_parts_hold_in_training(
    documents: list[bytes], tie_order: str, max_words: int | None, parts: list[bytes]
) -> None:
    rules = MergeRules(100, tie_order, 1, max_words=max_words, forbidden_parts=tuple(parts))
    raw = pa.array(documents, pa.large_binary())
    expected = SPECIFICATION.train_raw(raw, rules)
    assert NATIVE.train_raw(raw, rules) == expected
    for left, right in expected.merges:
        assert max_words is None or count_words_in(left + right) <= max_words
        assert not any(part in left + right for part in parts)
    words = pa.array(sorted(set(documents)), pa.large_binary())
    counts = weights_of([3] * len(words))
    firsts = weights_of([5 * index for index in range(len(words))])
    assert NATIVE.train_words(words, counts, firsts, rules) == SPECIFICATION.train_words(
        words, counts, firsts, rules
    )
