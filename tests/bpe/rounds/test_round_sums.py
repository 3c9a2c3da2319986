"""Sums, rankings and the heavy set of a round: exact, in order, and within what they may hold."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from bpe.backends.values import MAX_COUNT, StopBefore
from bpe.errors import CountTableError
from bpe.rounds.bucket_sums import (
    add_pair_tables,
    add_segment_tables,
)
from bpe.rounds.heavy_set import HeavySet, choose_heavy, next_coverage
from bpe.rounds.pair_ranking import (
    RankedPairs,
    SafePrefix,
    keep_best,
    merge_rankings,
    rank_pairs,
    sum_counts,
)
from bpe.rounds.round_driver import base_tokens, training_end
from bpe.rounds.shard_state import ShardState
from tests.bpe.rounds.round_tables import RULES, TOKENS, as_dict, pair_table, segment_table


def shard(*sequences: list[int], open_left: bool = False, open_right: bool = False) -> ShardState:
    kind = pa.large_list(pa.uint16())
    return ShardState(pa.array(list(sequences), kind), None, open_left, open_right)


def test_sums_of_pairs_are_exact_and_in_order() -> None:
    rng = random.Random(3)
    tables, expected = [], Counter[tuple[int, int]]()
    for _ in range(5):
        rows = {(rng.randint(0, 3), rng.randint(0, 3)): rng.randint(1, 2**61) for _ in range(6)}
        tables.append(pair_table(rows))
        expected.update(rows)
    expected = Counter({pair: n for pair, n in expected.items() if n <= MAX_COUNT})
    kept = set(expected)
    tables = [
        pair_table({pair: n for pair, n in as_dict(table).items() if pair in kept})
        for table in tables
    ]
    added = add_pair_tables(tables)
    assert as_dict(added) == expected
    assert list(as_dict(added)) == sorted(expected)


def test_two_sums_of_three_thousand_million_each() -> None:
    half = 1_500_000_000
    added = add_pair_tables([pair_table({(1, 2): half, (3, 4): half + 1})] * 2)
    assert as_dict(added) == {(1, 2): 2 * half, (3, 4): 2 * half + 2}
    ranked = rank_pairs(added, TOKENS, "hf")
    assert ranked["left"].to_pylist() == [3, 1]


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_a_sum_beyond_64_bits_is_named(rows: int) -> None:
    part = MAX_COUNT // rows
    exact = [pair_table({(1, 2): part})] * rows
    assert as_dict(add_pair_tables(exact)) == {(1, 2): part * rows}
    rest = MAX_COUNT - part * rows
    assert as_dict(add_pair_tables([*exact, pair_table({(1, 2): rest})])) == {(1, 2): MAX_COUNT}
    with pytest.raises(CountTableError, match=r"count of the pair \(1, 2\) exceeds"):
        add_pair_tables([*exact, pair_table({(1, 2): rest + 1})])
    with pytest.raises(CountTableError, match="weight of"):
        add_segment_tables([segment_table({b"\x02\x04\x06": MAX_COUNT})] * 2)


def test_the_sum_of_all_counts_may_pass_64_bits() -> None:
    counts = pa.chunked_array([pa.array([MAX_COUNT] * 3 + [5], pa.int64())])
    assert sum_counts(counts) == 3 * MAX_COUNT + 5


def test_segments_are_added_by_content() -> None:
    added = add_segment_tables([segment_table({b"b": 2, b"a": 1}), segment_table({b"b": 3})])
    assert added.to_pydict() == {"segment": [b"a", b"b"], "weight": [1, 5]}


# ---- rankings ------------------------------------------------------------------------------


@pytest.mark.parametrize("tie_order", ["hf", "id", "bytes"])
@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_a_ranking_of_buckets_is_a_prefix_of_the_whole(tie_order: str, limit: int) -> None:
    rng = random.Random(limit)
    tokens = [*base_tokens(tie_order), b"ab", b"aa", b"b "]
    pairs = {
        (rng.randrange(len(tokens)), rng.randrange(len(tokens))): rng.randint(1, 4)
        for _ in range(60)
    }
    rules = replace(RULES, tie_order=tie_order, min_frequency=2)
    tie = (lambda p: (tokens[p[0]], tokens[p[1]])) if tie_order == "bytes" else (lambda p: p)
    expected = sorted(pairs, key=lambda pair: (-pairs[pair], *tie(pair)))
    parts = [
        keep_best(
            pair_table({p: n for p, n in pairs.items() if (p[0] + p[1]) % 3 == bucket}),
            limit,
            tokens,
            rules,
        )
        for bucket in range(3)
    ]
    whole = merge_rankings(parts, tokens, tie_order)
    known = list(as_dict(whole.pairs))
    assert known == expected[: len(known)]
    assert len(known) >= min(limit, sum(count > 1 for count in pairs.values()))
    assert whole.total == sum(pairs.values())
    following = expected[len(known)]
    assert whole.dropped == StopBefore(pairs[following], *following)


def test_forbidden_pairs_do_not_crowd_out_others() -> None:
    rules = replace(RULES, forbidden=frozenset([b"ab", b"cd"]))
    pairs = pair_table({(97, 98): 9, (99, 100): 8, (1, 2): 3, (1, 3): 2})
    ranking = keep_best(pairs, 1, TOKENS, rules)
    assert list(as_dict(ranking.pairs)) == [(97, 98), (99, 100), (1, 2)]
    assert ranking.mergeable == 2
    assert training_end(ranking, TOKENS, rules) is None
    assert training_end(ranking, TOKENS, replace(rules, max_merges=0)) == "vocab_size"
    barred = keep_best(pairs.slice(0, 2), 1, TOKENS, rules)
    assert training_end(barred, TOKENS, rules) == "exhausted"
    rare = keep_best(pairs, 1, TOKENS, replace(rules, min_frequency=4))
    assert training_end(rare, TOKENS, rules) == "min_frequency"


def ranked(rows: dict[tuple[int, int], int], dropped: StopBefore | None = None) -> RankedPairs:
    table = rank_pairs(pair_table(rows), TOKENS, "id")
    return RankedPairs(table, dropped, sum(rows.values()), len(rows))


def test_the_heavy_set_covers_a_share_and_has_smaller_sizes() -> None:
    # The second pair overlaps with the first, so that the smallest size is 1.
    rows = {(n, n - 1): 1000 - n for n in range(1, 250)}
    heavy = choose_heavy(ranked(rows), TOKENS, RULES, coverage=0.5)
    total = sum(rows.values())
    counts = heavy.pairs["count"].to_pylist()
    assert sum(counts) <= total / 2 < sum(counts) + heavy.following.count
    assert heavy.sizes[0] == heavy.pairs.num_rows
    assert heavy.sizes[-1] == heavy.prefix.pairs == 1
    for sizes, least in ((heavy.sizes, 0.6), (heavy.fine_sizes, 0.9)):
        assert (sizes[0], sizes[-1]) == (heavy.sizes[0], heavy.sizes[-1])
        assert all(least * a - 1 < b < a for a, b in pairwise(sizes))
    assert heavy.coverage_of(2) == pytest.approx((999 + 998) / total)
    assert heavy.coverage_of(heavy.sizes[0]) <= 0.5
    assert heavy.stop_at(heavy.sizes[0]) == heavy.following
    assert heavy.stop_at(3) == StopBefore(996, 4, 3)


def test_the_heavy_set_passes_a_file() -> None:
    rows = {(1, 2): 9, (3, 4): 8, (2, 5): 7}
    for dropped in (None, StopBefore(1, 2, 3)):
        heavy = choose_heavy(ranked(rows, dropped), TOKENS, RULES, coverage=1.0)
        sink = pa.BufferOutputStream()
        table = heavy.to_table()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        back = HeavySet.from_table(pa.ipc.open_file(sink.getvalue()).read_all())
        assert back.pairs.equals(heavy.pairs)
        assert replace(back, pairs=heavy.pairs) == heavy


def test_bytes_leave_out_pairs_that_tie_with_the_next() -> None:
    rows = {(1, 20): 9, (20, 3): 8, (2, 5): 5, (2, 6): 5, (2, 7): 5}
    rules = replace(RULES, tie_order="bytes")
    heavy = choose_heavy(ranked(rows), TOKENS, rules, coverage=0.9)
    assert heavy.sizes[0] == 2
    assert heavy.following == StopBefore(5, 2, 5)


@pytest.mark.parametrize(
    ("used", "sent", "expected"),
    [
        (3, 100, 1.25 * 0.2),  # full: a bit more than fitted
        (3, 24, 1.77 * 0.2),
        (3, 0, 2 * 0.2),
        (2, 90, 1.25 * 0.15),  # cut short: a bit more than what was used
    ],
)
def test_coverage_follows_the_budget(used: int, sent: int, expected: float) -> None:
    rows = {(1, 2): 10, (3, 4): 5, (5, 6): 5, (7, 8): 80}
    pairs = rank_pairs(pair_table({p: n for p, n in rows.items() if p != (7, 8)}), TOKENS, "id")
    heavy = HeavySet(pairs, None, (3, 1), (3, 2, 1), SafePrefix(1, 1), 0.2, sum(rows.values()))
    found = next_coverage(heavy, used=used, sent_bytes=sent, budget=100)
    assert found == pytest.approx(expected, rel=0.01)
    most = replace(heavy, coverage=0.9)
    assert next_coverage(most, used=3, sent_bytes=1, budget=10**9) == 1.0
