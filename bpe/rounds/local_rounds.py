"""Merge rounds in one process, on shards in memory: the whole protocol without a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.backends.values import MergeList, MergeRules
from bpe.rounds.boundaries import ShardFix
from bpe.rounds.bucket_sums import (
    add_pair_tables,
    add_segment_tables,
    limit_segments,
    rank_bucket,
)
from bpe.rounds.heavy_set import FIRST_COVERAGE, HeavySet, choose_heavy, next_coverage
from bpe.rounds.pair_ranking import RankedPairs
from bpe.rounds.round_driver import (
    MAX_UNITS,
    RoundResult,
    accept_merges,
    base_tokens,
    extend_tokens,
    rank_all,
    training_end,
)
from bpe.rounds.shard_state import ShardState
from bpe.rounds.shard_steps import ShardReport, apply_to_shard, count_shard, cut_shard

__all__ = ["RoundSettings", "train_in_rounds"]


@dataclass(frozen=True)
class RoundSettings:
    """How much a round may send and hold; the merges do not depend on it.

    segment_budget: bytes of all distinct segments of a round. shard_cap: bytes of one shard's.
    buckets: how many tables sums are spread over. kept_pairs: how many of its best pairs a bucket
    hands on. max_units: tokens in the driver's simulation. coverage: share of all adjacent places
    that are heavy in the first round.
    """

    segment_budget: int = 16 << 20
    shard_cap: int = 4 << 20
    buckets: int = 4
    kept_pairs: int = 1 << 17
    max_units: int = MAX_UNITS
    coverage: float = FIRST_COVERAGE


def train_in_rounds(
    shards: Sequence[ShardState],
    rules: MergeRules,
    *,
    tokens: Sequence[bytes] | None = None,
    settings: RoundSettings | None = None,
    backend: Backend | None = None,
    observe: Callable[[RoundResult, list[ShardState]], None] | None = None,
) -> MergeList:
    """Learn merges from shards in order; the same as training on the whole.

    rules: any tie order but `first`. tokens: bytes of the ids in the shards; the single bytes by
    default. observe: is called after each round, with its result and the shards.
    """
    backend = backend or get_backend()
    settings = settings or RoundSettings()
    known = list(tokens) if tokens is not None else base_tokens(rules.tie_order)
    states = list(shards)
    pairs: list[tuple[int, int]] = []
    counts: list[int] = []
    coverage = settings.coverage
    while True:
        rest = replace(rules, max_merges=rules.max_merges - len(pairs))
        ranking = _count(states, known, rest, settings, backend)
        reason = training_end(ranking, known, rest)
        if reason is not None:
            merges = [(known[left], known[right]) for left, right in pairs]
            return MergeList(merges, counts, reason)
        heavy = choose_heavy(ranking, known, rest, coverage=coverage)
        result = _choose_merges(
            states, heavy, tokens=known, rules=rest, settings=settings, backend=backend
        )
        coverage = next_coverage(
            heavy,
            used=result.size,
            sent_bytes=result.sent_bytes,
            budget=settings.segment_budget,
        )
        states = _apply(states, result, len(known), backend)
        extend_tokens(known, result.left, result.right)
        pairs += zip(result.left.to_pylist(), result.right.to_pylist(), strict=True)
        counts += result.counts.to_pylist()
        if observe is not None:
            observe(result, states)


def _count(
    states: Sequence[ShardState],
    tokens: Sequence[bytes],
    rules: MergeRules,
    settings: RoundSettings,
    backend: Backend,
) -> RankedPairs:
    """First half of a round: the best pairs of all shards together."""
    buckets = settings.buckets
    reports = [
        count_shard(number, state, buckets=buckets, tokens=tokens, rules=rules, backend=backend)
        for number, state in enumerate(states)
    ]
    records = [report.ends for report in reports]
    rankings = [
        rank_bucket(
            add_pair_tables(_tables_of(reports, bucket)),
            records,
            bucket=bucket,
            buckets=buckets,
            limit=settings.kept_pairs,
            tokens=tokens,
            rules=rules,
        )
        for bucket in range(buckets)
    ]
    return rank_all(rankings, records, tokens, rules)


def _choose_merges(
    states: Sequence[ShardState],
    heavy: HeavySet,
    *,
    tokens: Sequence[bytes],
    rules: MergeRules,
    settings: RoundSettings,
    backend: Backend,
) -> RoundResult:
    """Second half of a round: the merges that are certain."""
    reports = [
        cut_shard(
            number,
            state,
            heavy,
            buckets=settings.buckets,
            cap_bytes=settings.shard_cap,
            backend=backend,
        )
        for number, state in enumerate(states)
    ]
    cap = settings.segment_budget // settings.buckets
    segments = [
        limit_segments(add_segment_tables(_tables_of(reports, bucket)), heavy, cap, backend)
        for bucket in range(settings.buckets)
    ]
    records = [report.ends for report in reports]
    return accept_merges(
        heavy,
        segments,
        records,
        tokens=tokens,
        rules=rules,
        backend=backend,
        max_units=settings.max_units,
    )


def _tables_of(reports: Sequence[ShardReport], bucket: int) -> Iterator[pa.Table]:
    return (report.tables[bucket] for report in reports if bucket in report.tables)


def _apply(
    states: Sequence[ShardState], result: RoundResult, first_id: int, backend: Backend
) -> list[ShardState]:
    fixes = _fixes_by_shard(result)
    return [
        apply_to_shard(
            state,
            result.left,
            result.right,
            first_id=first_id,
            fix=fixes.get(number),
            backend=backend,
        )
        for number, state in enumerate(states)
    ]


def _fixes_by_shard(result: RoundResult) -> dict[int, ShardFix]:
    return {fix.shard: fix for fix in result.fixes}
