"""Parts of a round on their own: what they refuse, and what they leave to others."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.errors import CountTableError
from bpe.rounds.boundaries import BoundaryRecord, ShardFix, check_neighbours, straddling_pairs
from bpe.rounds.bucket_sums import (
    BucketSegments,
    add_pair_tables,
    add_segment_tables,
    limit_segments,
    rank_bucket,
)
from bpe.rounds.chain_merging import expand_chains, merge_chains, merge_chains_apart
from bpe.rounds.heavy_set import HeavySet, choose_heavy
from bpe.rounds.pair_ranking import (
    SafePrefix,
    rank_pairs,
)
from bpe.rounds.round_driver import accept_merges, rank_all
from bpe.rounds.run_coding import decode_runs, encode_runs
from bpe.rounds.shard_state import ShardState, state_id_type
from bpe.rounds.shard_steps import apply_to_shard, count_shard, cut_shard
from tests.bpe.rounds.round_tables import (
    RULES,
    TOKENS,
    as_dict,
    as_segments,
    pair_table,
    segment_table,
)


def shard(*sequences: list[int], open_left: bool = False, open_right: bool = False) -> ShardState:
    kind = pa.large_list(pa.uint16())
    return ShardState(pa.array(list(sequences), kind), None, open_left, open_right)


# ---- segments of a bucket --------------------------------------------------------------------


def test_a_bucket_cuts_again_until_it_fits(backend: Backend) -> None:
    rows = {(1, 2): 9, (2, 3): 8, (3, 4): 5, (4, 4): 4}
    pairs = rank_pairs(pair_table(rows), TOKENS, "id")
    heavy = HeavySet(pairs, None, (4, 1), (4, 3, 2, 1), SafePrefix(1, 1), 1.0, sum(rows.values()))
    longer, shorter = encode_runs([1, 2, 3, 4, 4, 4]), encode_runs([9, 1, 2, 3])
    table = segment_table({longer: 2, encode_runs([1, 2, 3]): 5})
    taken = len(longer) + 1 + 4
    whole = limit_segments(table, heavy, taken, backend)
    assert (whole.size, whole.received) == (4, 7)
    assert whole.table.equals(table)
    less = limit_segments(table, heavy, taken - 1, backend)
    assert (less.size, less.received) == (3, 7)
    assert as_segments(less.table) == {(1, 2, 3, 4): 2, (1, 2, 3): 5}
    least = limit_segments(table, heavy, 4, backend)
    assert (least.size, as_segments(least.table)) == (2, {(1, 2, 3): 7})
    assert as_segments(limit_segments(table, heavy, 0, backend).table) == {}
    # Shards cut by different sizes: what one has cut already stays so.
    mixed = limit_segments(segment_table({shorter: 1}), heavy, 4, backend)
    assert (mixed.size, as_segments(mixed.table)) == (4, {(1, 2, 3): 1})
    nothing = limit_segments(segment_table({}), heavy, 0, backend)
    assert (nothing.size, nothing.received, nothing.table.num_rows) == (4, 0, 0)


# ---- boundaries ----------------------------------------------------------------------------


def record(number: int, **fields: object) -> BoundaryRecord:
    empty = BoundaryRecord(number, 0, False, False, True, b"", b"", 0, 0)
    return replace(empty, **fields)  # type: ignore[arg-type]


def test_neighbours_that_do_not_fit_are_named() -> None:
    check_neighbours([record(0, open_right=True), record(1, open_left=True)])
    with pytest.raises(CountTableError, match="between shards 0 and 1 a sequence is open on one"):
        check_neighbours([record(0, open_right=True), record(1)])
    with pytest.raises(CountTableError, match="between shards the start and 0"):
        check_neighbours([record(0, open_left=True)])
    with pytest.raises(CountTableError, match="between shards 1 and the end"):
        check_neighbours([record(0), record(1, open_right=True)])
    with pytest.raises(CountTableError, match="have shard 2 at place 1"):
        check_neighbours([record(0), record(2)])


def test_pairs_straddle_empty_shards() -> None:
    shards = [
        shard([5, 7], open_right=True),
        shard([], open_left=True, open_right=True),
        shard([8], open_left=True, open_right=True),
        shard([8, 9], [4], open_left=True),
        shard([6]),
    ]
    backend = get_backend("python")
    records = [
        count_shard(number, state, buckets=1, tokens=TOKENS, rules=RULES, backend=backend).ends
        for number, state in enumerate(shards)
    ]
    check_neighbours(records)
    assert list(straddling_pairs(records)) == [(7, 8), (8, 8)]


def test_chains_by_runs_equal_chains_token_by_token(backend: Backend) -> None:
    rng = random.Random(11)
    made = {(1, 1): 300, (2, 3): 301, (2, 4): 302}
    left, right = (pa.array(column, pa.uint32()) for column in zip(*made, strict=True))
    tokens = [*TOKENS, *([b"?"] * 44)]
    for _ in range(100):
        parts = [[rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.randint(0, 6))] for _ in range(5)]
        records = [
            record(
                number,
                open_left=number > 0,
                open_right=number < 4,
                has_cut=number in {0, 4},
                **{"tail" if number == 0 else "head": encode_runs(part)},
            )
            for number, part in enumerate(parts)
        ]
        whole = merge_chains(expand_chains(records), left, right, tokens, backend)
        assert merge_chains_apart(records, made) == whole


def test_a_run_that_nobody_could_write_out() -> None:
    long = 10**15 + 1
    coded = encode_runs([7]) + b""
    records = [
        record(0, open_right=True, tail=write_long(7, long)),
        record(1, open_left=True, open_right=True, has_cut=False, head=write_long(7, long)),
        record(2, open_left=True, head=coded),
    ]
    fixes = merge_chains_apart(records, {(7, 7): 256})
    assert fixes[0].tail == write_long(256, long // 2 + 1)
    assert fixes[1].head == write_long(256, long // 2)
    assert decode_runs(fixes[2].head) == [7]


def write_long(token: int, run: int) -> bytes:
    from bpe.rounds.run_coding import write_runs

    return write_runs([(token, run)])


# ---- shards --------------------------------------------------------------------------------


def test_a_shard_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(CountTableError, match="without a sequence is open"):
        shard(open_left=True)
    weights = pa.array([1], pa.int64())
    with pytest.raises(CountTableError, match="weighted sequences is open"):
        ShardState(shard([1]).sequences, weights, open_left=True)
    with pytest.raises(CountTableError, match="2 sequences and 1 weights"):
        ShardState(shard([1], [2]).sequences, weights)


@pytest.mark.parametrize(
    ("head_tokens", "tail_tokens", "open_left"),
    [(4, 0, True), (2, 2, True), (1, 0, False)],
)
def test_a_fix_of_another_round_is_refused(
    backend: Backend, head_tokens: int, tail_tokens: int, *, open_left: bool
) -> None:
    state = shard([1, 2, 3], open_left=open_left, open_right=True)
    fix = ShardFix(5, b"", b"", head_tokens, tail_tokens)
    none = pa.array([], pa.uint32())
    with pytest.raises(CountTableError, match="the fix of shard 5 takes"):
        apply_to_shard(state, none, none, first_id=256, fix=fix, backend=backend)


def test_ids_widen_when_they_must(backend: Backend) -> None:
    assert state_id_type(65536) == pa.uint16()
    assert state_id_type(65537) == pa.uint32()
    left, right = pa.array([1], pa.uint32()), pa.array([2], pa.uint32())
    fix = ShardFix(0, encode_runs([65536, 9]), b"", 1, 0)
    state = shard([1, 1, 2], [1, 2], open_left=True)
    wide = apply_to_shard(state, left, right, first_id=65536, fix=fix, backend=backend)
    assert wide.sequences.to_pylist() == [[65536, 9, 65536], [65536]]
    assert wide.sequences.type.value_type == pa.uint32()


# ---- what was lost on the way --------------------------------------------------------------


def half_round(
    backend: Backend,
) -> tuple[HeavySet, list[BucketSegments], list[BoundaryRecord]]:
    states = [
        shard([1, 2, 3, 1, 2, 3, 9, 1, 2, 3], open_right=True),
        shard([1, 2, 3, 8], open_left=True),
    ]
    counted = [
        count_shard(n, state, buckets=2, tokens=TOKENS, rules=RULES, backend=backend)
        for n, state in enumerate(states)
    ]
    records = [report.ends for report in counted]
    rankings = [
        rank_bucket(
            add_pair_tables(r.tables[bucket] for r in counted if bucket in r.tables),
            records,
            bucket=bucket,
            buckets=2,
            limit=100,
            tokens=TOKENS,
            rules=RULES,
        )
        for bucket in range(2)
    ]
    with pytest.raises(CountTableError, match="pair counts that arrived add up to"):
        rank_all(rankings[:1], records, TOKENS, RULES)
    heavy = choose_heavy(rank_all(rankings, records, TOKENS, RULES), TOKENS, RULES, coverage=1.0)
    cut = [
        cut_shard(n, state, heavy, buckets=2, cap_bytes=1000, backend=backend)
        for n, state in enumerate(states)
    ]
    tables = [
        limit_segments(
            add_segment_tables(r.tables[bucket] for r in cut if bucket in r.tables),
            *(heavy, 1000, backend),
        )
        for bucket in range(2)
    ]
    return heavy, tables, [report.ends for report in cut]


def bucket_of(segments: dict[bytes, int], heavy: HeavySet) -> BucketSegments:
    return BucketSegments(segment_table(segments), heavy.sizes[0], sum(segments.values()))


def test_lost_segments_are_noticed(backend: Backend) -> None:
    heavy, _, records = half_round(backend)
    segments = [bucket_of({encode_runs([1, 2, 3]): 7}, heavy)]
    with pytest.raises(CountTableError, match="segments that arrived add up to 7"):
        accept_merges(heavy, segments, records, tokens=TOKENS, rules=RULES, backend=backend)


def test_segments_that_hold_too_much_are_noticed(backend: Backend) -> None:
    heavy, _, records = half_round(backend)
    segments = [bucket_of({encode_runs([1, 2, 3]): 50}, heavy)]
    many = [replace(each, sent=25) for each in records]
    with pytest.raises(CountTableError, match=r"hold the pair \(1, 2\) more often than the 4"):
        accept_merges(heavy, segments, many, tokens=TOKENS, rules=RULES, backend=backend)


def test_a_round_of_two_shards(backend: Backend) -> None:
    heavy, tables, records = half_round(backend)
    result = accept_merges(heavy, tables, records, tokens=TOKENS, rules=RULES, backend=backend)
    merges = list(zip(result.left.to_pylist(), result.right.to_pylist(), strict=True))
    assert merges[:2] == [(1, 2), (256, 3)]
    assert result.counts.to_pylist()[:2] == [4, 4]
    assert result.units > 0


# ---- steps of both backends ----------------------------------------------------------------


def test_cut_segments_by_hand(backend: Backend) -> None:
    state = shard([4, 1, 2, 9, 1, 2, 1, 2, 1], [7, 7, 7, 7, 3], open_left=True)
    left, right = pa.array([1, 2, 7], pa.uint32()), pa.array([2, 1, 7], pa.uint32())
    cut = backend.cut_segments(
        state.sequences, None, left, right, [3, 1], 10**6, open_left=True, open_right=False
    )
    assert cut.size == 3
    assert decode_runs(cut.head) == [4]
    assert (cut.head_tokens, cut.tail, cut.tail_tokens, cut.has_cut) == (1, b"", 0, True)
    found = {
        tuple(decode_runs(c)): w
        for c, w in zip(cut.segments.to_pylist(), cut.weights.to_pylist(), strict=True)
    }
    assert found == {(1, 2, 1, 2, 1): 1, (7, 7, 7, 7): 1}
    smaller = backend.cut_segments(
        state.sequences, None, left, right, [3, 1], 5, open_left=True, open_right=False
    )
    assert (smaller.size, len(smaller.segments)) == (1, 0)


def test_count_pairs_by_hand(backend: Backend) -> None:
    state = shard([97, 97, 97, 98], [97, 98], [])
    weights = pa.array([2, 5, 1], pa.int64())
    rules = replace(RULES, forbidden_parts=(b"b",))
    for kept, limits in ((True, RULES), (False, rules)):
        found = as_dict(backend.count_state_pairs(state.sequences, weights, TOKENS, limits))
        assert found == {(97, 97): 4} | ({(97, 98): 7} if kept else {})


def test_counts_of_naive_sequences(backend: Backend) -> None:
    rng = np.random.default_rng(5)
    sequences = [rng.integers(0, 4, rng.integers(0, 30)).tolist() for _ in range(20)]
    expected = Counter(pair for ids in sequences for pair in pairwise(ids))
    state = shard(*sequences)
    found = backend.count_state_pairs(state.sequences, None, TOKENS, RULES)
    assert as_dict(found) == dict(sorted(expected.items()))
