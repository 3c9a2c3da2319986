"""The native steps of merge rounds equal the specification; their border to Python holds."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend
from bpe.backends.values import MAX_COUNT, CutSegments, MergeRules
from bpe.errors import CountTableError, InputError, SettingsError
from bpe.reference.portable_backend import PythonBackend
from bpe.rounds.run_coding import encode_runs
from tests.bpe.native_round_cases import Ids, draw_weights, lists, uint32, weights_of

_native = pytest.importorskip("bpe._native", reason="the native core is not built")
native_backend = pytest.importorskip("bpe.backends.native_backend")

SPECIFICATION = PythonBackend()
NATIVE = native_backend.NativeBackend()
BYTES = [bytes([value]) for value in range(256)]
ANY = MergeRules(100)


def random_ids(draw: random.Random, length: int, letters: int, first: int = 0) -> list[int]:
    """Ids with runs and repeated parts in them."""
    ids: list[int] = []
    while len(ids) < length:
        part = [first + draw.randrange(letters) for _ in range(draw.randrange(1, 6))]
        ids += part * draw.choice([1, 1, 1, 2, 5])
        ids += part[:1] * draw.choice([0, 0, 0, 3, 17])
    return ids[:length]


@st.composite
def sequences(draw: st.DrawFn, ids: st.SearchStrategy[int] | None = None) -> Ids:
    if ids is None:
        pools = [[0], [0, 1], [0, 1, 2], list(range(256)), [65534, 65535], [9, 65535, 65536]]
        ids = st.sampled_from(draw(st.sampled_from(pools)))
    part = st.lists(ids, max_size=5)
    run = st.tuples(part, st.sampled_from([1, 1, 2, 3, 9])).map(lambda pair: pair[0] * pair[1])
    row = st.lists(run, max_size=6).map(lambda runs: [each for run in runs for each in run])
    return draw(st.lists(row, max_size=6))


WIDE_TOKENS = [*BYTES, *(value.to_bytes(3, "big") for value in range(256, 65537))]


@given(sequences(), st.data())
@settings(max_examples=100, deadline=None)
def test_pair_counts_equal_the_specification(ids: Ids, data: st.DataObject) -> None:
    tokens = WIDE_TOKENS if max(map(max, filter(None, ids)), default=0) > 255 else BYTES
    weights = weights_of(draw_weights(data, len(ids)))
    found = NATIVE.count_state_pairs(lists(ids), weights, tokens, ANY)
    assert found.equals(SPECIFICATION.count_state_pairs(lists(ids), weights, tokens, ANY))


@pytest.mark.parametrize("letters", [4, 200, 1500, 60_000])
def test_many_pair_counts_equal_the_specification(letters: int) -> None:
    draw = random.Random(letters)
    ids = [random_ids(draw, 60_000, letters), [], random_ids(draw, 3000, letters), [1]]
    tokens = WIDE_TOKENS[:letters]
    for weights in (None, weights_of([3 * 10**9, 1, 5, 7])):
        for rules in (ANY, MergeRules(9, max_token_bytes=3)):
            found = NATIVE.count_state_pairs(lists(ids), weights, tokens, rules)
            assert found.equals(SPECIFICATION.count_state_pairs(lists(ids), weights, tokens, rules))


def test_pair_counts_leave_out_what_no_token_may_hold() -> None:
    tokens = [*BYTES, b" a", b" a b", b"a ", b": "]
    space, colon, a = 32, 58, 97
    ids = [[256, 257, 258, 259, space, a, colon, space, a, a, 256, 256, 256, colon, 256]]
    for rules in (
        MergeRules(9),
        MergeRules(9, max_token_bytes=3),
        MergeRules(9, max_words=1),
        MergeRules(9, max_words=2),
        MergeRules(9, forbidden_parts=(b": ", b"aa")),
        MergeRules(9, forbidden=frozenset({b"aa"})),  # what contains it may be merged
    ):
        found = NATIVE.count_state_pairs(lists(ids), None, tokens, rules)
        assert found.equals(SPECIFICATION.count_state_pairs(lists(ids), None, tokens, rules))


def test_pair_counts_stop_at_64_bits(backend: Backend) -> None:
    for ids in ([[0, 1], [0, 1]], [[0, 1], [0, 1], [2] * 70_000]):
        rest = [1] * (len(ids) - 2)
        top = weights_of([MAX_COUNT - 1, 1, *rest])
        assert backend.count_state_pairs(lists(ids), top, BYTES, ANY)["count"][0].as_py() == (
            MAX_COUNT
        )
        with pytest.raises(CountTableError, match="more than 9223372036854775807"):
            backend.count_state_pairs(lists(ids), weights_of([MAX_COUNT, 1, *rest]), BYTES, ANY)
        # A pair that may not be merged is no excuse; the trainers on the driver refuse it, too.
        for rules in (MergeRules(9, max_token_bytes=1), MergeRules(9, forbidden_parts=(b"\x01",))):
            found = backend.count_state_pairs(lists(ids), top, BYTES, rules)
            assert (0, 1) not in zip(
                found["left"].to_pylist(), found["right"].to_pylist(), strict=True
            )
            with pytest.raises(CountTableError, match="more than 9223372036854775807"):
                backend.count_state_pairs(
                    lists(ids), weights_of([MAX_COUNT, 1, *rest]), BYTES, rules
                )


def cut_both(
    ids: Ids,
    weights: list[int] | None,
    heavy: list[tuple[int, int]],
    sizes: list[int],
    cap: int,
    ends: tuple[bool, bool],
) -> tuple[CutSegments, CutSegments]:
    arguments = (
        lists(ids),
        weights_of(weights),
        uint32(left for left, _ in heavy),
        uint32(right for _, right in heavy),
        sizes,
        cap,
    )
    found, expected = (
        backend.cut_segments(*arguments, open_left=ends[0], open_right=ends[1])
        for backend in (NATIVE, SPECIFICATION)
    )
    return found, expected


@given(sequences(), st.data())
@settings(max_examples=120, deadline=None)
def test_segments_equal_the_specification(ids: Ids, data: st.DataObject) -> None:
    pairs = sorted({pair for row in ids for pair in pairwise(row)})
    heavy = data.draw(st.permutations(pairs))
    if heavy:
        heavy = heavy[: data.draw(st.integers(1, len(heavy)))]
    sizes = data.draw(st.sets(st.integers(0, len(heavy)), min_size=1))
    cap = data.draw(st.sampled_from([0, 5, 10, 20, 50, 10**9]))
    ends = data.draw(st.tuples(st.booleans(), st.booleans()))
    weights = draw_weights(data, len(ids))
    found, expected = cut_both(ids, weights, heavy, sorted(sizes, reverse=True), cap, ends)
    assert found == expected


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("letters", "share"), [(3, 0.9), (30, 0.5), (1000, 0.7), (60_000, 0.5)])
def test_many_segments_equal_the_specification(letters: int, share: float) -> None:
    draw = random.Random(letters)
    ids = [random_ids(draw, length, letters) for length in (8_000, 0, 1, 2, 3, 4_000)]
    heavy = sorted({pair for row in ids for pair in pairwise(row)})
    draw.shuffle(heavy)
    heavy = heavy[: int(len(heavy) * share)]
    sizes = sorted({len(heavy) >> shift for shift in range(6)}, reverse=True)
    for weights in (None, [3 * 10**9, 1, 2, 3, 4, 5]):
        chosen = set()
        for cap in (0, 300, 3_000, 10**9):
            found, expected = cut_both(ids, weights, heavy, sizes, cap, (True, True))
            assert found == expected
            chosen.add(found.size)
        assert len(chosen) > 2


def test_a_shard_without_a_cut_is_all_head(backend: Backend) -> None:
    arguments = (None, uint32([7]), uint32([7]), [1], 100)
    for ids in ([], [7], [7] * 9):
        cut = backend.cut_segments(lists([ids]), *arguments, open_left=True, open_right=True)
        assert (cut.has_cut, cut.head, cut.tail) == (False, encode_runs(ids), b"")
        assert (cut.head_tokens, cut.tail_tokens, len(cut.segments)) == (len(ids), 0, 0)
    cut = backend.cut_segments(lists([[7] * 9]), *arguments, open_left=False, open_right=False)
    assert cut.segments.to_pylist() == [encode_runs([7] * 9)]
    assert (cut.has_cut, cut.head_tokens, cut.tail_tokens) == (True, 0, 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_a_shard_without_sequences_has_empty_ends(
    backend: Backend, *, left: bool, right: bool, weighted: bool
) -> None:
    weights = weights_of([]) if weighted else None
    cut = backend.cut_segments(
        *(lists([]), weights, uint32([7]), uint32([7]), [1], 100), open_left=left, open_right=right
    )
    assert cut.has_cut == (not (left and right))
    assert (cut.size, cut.head, cut.tail, cut.head_tokens, cut.tail_tokens) == (1, b"", b"", 0, 0)
    assert len(cut.segments) == len(cut.weights) == 0


def test_segment_weights_stop_at_64_bits(backend: Backend) -> None:
    def cut(weights: list[int]) -> CutSegments:
        return backend.cut_segments(
            lists([[1, 1, 1], [1, 1, 1]]),
            weights_of(weights),
            uint32([1]),
            uint32([1]),
            [1],
            100,
            open_left=False,
            open_right=False,
        )

    assert cut([MAX_COUNT - 5, 5]).weights.to_pylist() == [MAX_COUNT]
    with pytest.raises(CountTableError, match=r"segment.* more than 9223372036854775807"):
        cut([MAX_COUNT - 5, 6])


@given(sequences(st.integers(0, 3)), st.data())
@settings(max_examples=120, deadline=None)
def test_merges_equal_the_specification(ids: Ids, data: st.DataObject) -> None:
    merges: list[tuple[int, int]] = []
    for made in range(4, 4 + data.draw(st.integers(0, 12))):
        part = st.integers(0, made - 1)
        pair = data.draw(st.tuples(part, part).filter(lambda pair: pair not in merges))
        merges.append(pair)
    check_merges(ids, merges, 4)


def check_merges(ids: Ids, merges: list[tuple[int, int]], first_id: int) -> None:
    left, right = uint32(pair[0] for pair in merges), uint32(pair[1] for pair in merges)
    for out in (pa.uint16(), pa.uint32()):
        expected = SPECIFICATION.apply_merges(lists(ids), left, right, first_id, out)
        for kind in (pa.uint16(), pa.uint32()):
            found = NATIVE.apply_merges(lists(ids, kind), left, right, first_id, out)
            assert found.equals(expected)


@pytest.mark.parametrize("letters", [1, 2, 4, 40, 600])
@pytest.mark.parametrize("length", [100, 3000])
def test_learned_merges_equal_the_specification(letters: int, length: int) -> None:
    draw = random.Random(letters)
    tokens = [value.to_bytes(2, "big") for value in range(letters)]
    ids = [random_ids(draw, length, letters) for _ in range(5)] + [[], [0] * length]
    coded = pa.array(map(encode_runs, ids), pa.large_binary())
    learned = SPECIFICATION.simulate_merges(
        coded, weights_of([1] * len(ids)), tokens, MergeRules(300, "id", 1), None
    )
    merges = list(zip(learned.left.to_pylist(), learned.right.to_pylist(), strict=True))
    assert merges
    check_merges(ids, merges, letters)
    check_merges(ids, draw.sample(merges, 0), letters)


def test_ids_keep_to_their_type() -> None:
    ids = lists([[65534, 65534, 65534]])
    one = uint32([65534])
    for backend in (NATIVE, SPECIFICATION):
        merged = backend.apply_merges(ids, one, one, 65535, pa.uint16())
        assert merged.to_pylist() == [[65535, 65534]]
        merged = backend.apply_merges(
            ids, uint32([65534, 65535]), uint32([65534, 65534]), 65535, pa.uint32()
        )
        assert merged.to_pylist() == [[65536]]
    with pytest.raises(SettingsError, match="token 65536, which is no uint16"):
        NATIVE.apply_merges(ids, uint32([65534, 65535]), uint32([65534, 65534]), 65535, pa.uint16())
    with pytest.raises(SettingsError, match="id_type is int64"):
        NATIVE.apply_merges(ids, one, one, 65535, pa.int64())


def test_merges_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match=r"merge 1 of \(4, 6\) makes token 5"):
        NATIVE.apply_merges(lists([[1]]), uint32([1, 4]), uint32([2, 6]), 4, pa.uint16())
    with pytest.raises(InputError, match=r"pair \(1, 2\) is listed twice"):
        NATIVE.apply_merges(lists([[1]]), uint32([1, 1]), uint32([2, 2]), 4, pa.uint16())
    with pytest.raises(InputError, match="sequence 1 holds the id 4 at place 2"):
        NATIVE.apply_merges(lists([[], [1, 2, 4]]), uint32([1]), uint32([2]), 4, pa.uint16())


def test_sequences_must_be_whole() -> None:
    ids = pa.array([1, 2, 3], pa.uint32())
    tokens = pa.array(BYTES, pa.large_binary())
    limits: Any = {"max_token_bytes": None, "max_words": None, "forbidden_parts": []}
    for offsets in ([], [0, 4], [2, 1], [-1, 2]):
        with pytest.raises(InputError, match="offsets must ascend"):
            _native.count_state_pairs(ids, pa.array(offsets, pa.int64()), None, tokens, **limits)
    with pytest.raises(InputError, match="2 sequences and 1 weights"):
        NATIVE.count_state_pairs(lists([[1], [2]]), weights_of([1]), BYTES, ANY)
    with pytest.raises(CountTableError, match="sequence 1 has the weight -3"):
        NATIVE.count_state_pairs(lists([[1], [2]]), weights_of([1, -3]), BYTES, ANY)
    with pytest.raises(InputError, match="sequence 0 holds the id 256 at place 1"):
        NATIVE.count_state_pairs(lists([[1, 256]]), None, BYTES, ANY)
    for sizes in ([], [2], [0, 1], [-1]):
        with pytest.raises(SettingsError, match="sizes"):
            NATIVE.cut_segments(
                lists([[1]]), None, uint32([1]), uint32([1]), sizes, 9,
                open_left=False, open_right=False,
            )  # fmt: skip


def test_slices_are_read_as_their_own_rows(backend: Backend) -> None:
    rows = lists([[9, 9, 9], [1, 2, 1, 2], [], [1, 2, 2], [9, 9]])[1:4]
    weights = pa.array([100, 1, 2, 3, 100], pa.int64())[1:4]
    counts = backend.count_state_pairs(rows, weights, BYTES, ANY)
    assert counts.to_pydict() == {"left": [1, 2, 2], "right": [2, 1, 2], "count": [5, 1, 3]}
    merged = backend.apply_merges(rows, uint32([1]), uint32([2]), 256, pa.uint16())
    assert merged.to_pylist() == [[256, 256], [], [256, 2]]
