"""What the driver of a round does with what the shards sent: it finds the merges that are certain.

Pairs inside the heavy set are counted exactly by the segments; every other pair, and every pair
that merges make of it, occurs at most as often as the best pair outside. So the picks of the
trainer on the segments are those of greedy training as long as they are better than that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.protocol import Backend
from bpe.backends.values import MergeRules
from bpe.errors import CountTableError
from bpe.reference.training import base_symbols
from bpe.rounds.boundaries import BoundaryRecord, ShardFix, check_neighbours
from bpe.rounds.bucket_sums import BucketSegments, straddling_table
from bpe.rounds.chain_merging import (
    chain_units,
    expand_chains,
    merge_chains,
    merge_chains_apart,
)
from bpe.rounds.heavy_set import HeavySet
from bpe.rounds.pair_ranking import (
    RankedPairs,
    forbidden_pairs,
    merge_rankings,
    pair_keys,
)
from bpe.rounds.run_coding import decode_segments, encode_runs, parse_segments
from bpe.rounds.shard_steps import CHECKSUM_MASK, SEGMENT_SCHEMA

__all__ = [
    "MAX_UNITS",
    "RoundResult",
    "accept_merges",
    "base_tokens",
    "extend_tokens",
    "rank_all",
    "training_end",
]

MAX_UNITS = 1 << 28
"""Tokens that the driver's simulation may hold; beyond, a round takes the certain prefix alone."""

_NO_CAP = 1 << 62


@dataclass(frozen=True)
class RoundResult:
    """Merges of a round.

    left, right: uint32, ids; counts: int64; in the order made. fixes: of the shards whose ends
    are part of a chain, by shard. size: how many heavy pairs counted. sent_bytes: of all distinct
    segments. units: tokens of the simulation; 0: there was none.
    """

    left: pa.UInt32Array
    right: pa.UInt32Array
    counts: pa.Int64Array
    fixes: list[ShardFix]
    size: int
    sent_bytes: int
    units: int


def base_tokens(tie_order: str) -> list[bytes]:
    """Bytes of the ids before the first merge."""
    return [bytes([value]) for value in base_symbols(tie_order)]


def extend_tokens(tokens: list[bytes], left: pa.UInt32Array, right: pa.UInt32Array) -> None:
    """Append the bytes of merges to those of the ids before them."""
    for first, second in zip(left.to_pylist(), right.to_pylist(), strict=True):
        tokens.append(tokens[first] + tokens[second])


def rank_all(
    rankings: Sequence[RankedPairs],
    records: Sequence[BoundaryRecord],
    tokens: Sequence[bytes],
    rules: MergeRules,
) -> RankedPairs:
    """One ranking out of those of all buckets, after checking that nothing was lost on the way.

    rankings: see `bpe.rounds.bucket_sums.rank_bucket`. records: of the step that counts.
    Raises `CountTableError` if the sums do not agree.
    """
    check_neighbours(records)
    between = straddling_table(records, tokens, rules).num_rows
    received = sum(ranking.total for ranking in rankings)
    _check_arrival("pair counts", received - between, records)
    return merge_rankings(rankings, tokens, rules.tie_order)


def training_end(ranking: RankedPairs, tokens: Sequence[bytes], rules: MergeRules) -> str | None:
    """Why no merge can follow, as in `MergeList.stop_reason`; None: one can."""
    if rules.max_merges == 0:
        return "vocab_size"
    if ranking.mergeable == 0:
        return "exhausted"
    barred = forbidden_pairs(tokens, rules)
    best = ranking.pairs.slice(0, len(barred) + 1).to_pylist()
    is_some = any((row["left"], row["right"]) not in barred for row in best)
    return None if is_some else "min_frequency"


def accept_merges(
    heavy: HeavySet,
    segments: Sequence[BucketSegments],
    records: Sequence[BoundaryRecord],
    *,
    tokens: Sequence[bytes],
    rules: MergeRules,
    backend: Backend,
    max_units: int = MAX_UNITS,
) -> RoundResult:
    """The merges of a round, at least one.

    segments: of each bucket that has any. records: of all shards, from the step that cuts.
    tokens: bytes of the ids so far. rules: max_merges is how many more there may be, at least 1.
    Raises `CountTableError` if something was lost on the way.
    """
    check_neighbours(records)
    tables = [SEGMENT_SCHEMA.empty_table(), *(each.table for each in segments)]
    table = pa.concat_tables(tables).combine_chunks()
    coded = _column(table, "segment")
    _check_arrival("segments", sum(each.received for each in segments), records)
    size = _common_size(records, segments, heavy)
    sent_bytes = int(pc.sum(pc.binary_length(coded)).as_py() or 0)
    units = int(parse_segments(coded)[1].sum()) + chain_units(records)
    wanted = min(heavy.prefix.merges, rules.max_merges)
    if units > max_units:
        left, right, counts = _take_prefix(heavy, wanted, tokens, rules)
        made = zip(left.to_pylist(), right.to_pylist(), strict=True)
        ids = {pair: len(tokens) + rank for rank, pair in enumerate(made)}
        fixes = merge_chains_apart(records, ids)
        return RoundResult(left, right, counts, fixes, size, sent_bytes, 0)
    chains = expand_chains(records)
    weights = _column(table, "weight")
    pool = _make_pool(coded, weights, chains.chains, heavy=heavy, size=size, backend=backend)
    picks = backend.simulate_merges(*pool, tokens, rules, heavy.stop_at(size))
    if len(picks.left) < wanted and rules.tie_order == "bytes":
        certain = replace(rules, max_merges=wanted)
        picks = backend.simulate_merges(*pool, tokens, certain, None)
    if len(picks.left) < wanted:
        raise CountTableError(
            f"the segments of {len(records)} shards gave {len(picks.left)} merges, and {wanted} "
            f"are certain: {_REMEDY}"
        )
    fixes = merge_chains(chains, picks.left, picks.right, tokens, backend)
    return RoundResult(picks.left, picks.right, picks.counts, fixes, size, sent_bytes, units)


_REMEDY = "data was lost on the way; run the step again"


def _common_size(
    records: Sequence[BoundaryRecord], segments: Sequence[BucketSegments], heavy: HeavySet
) -> int:
    """The number of heavy pairs that every shard and every bucket has cut by."""
    of_shards = [record.size for record in records]
    return min([heavy.sizes[0], *of_shards, *(bucket.size for bucket in segments)])


def _check_arrival(what: str, received: int, records: Sequence[BoundaryRecord]) -> None:
    sent = sum(record.sent for record in records)
    if (received - sent) & CHECKSUM_MASK:
        raise CountTableError(
            f"the {what} that arrived add up to {received & CHECKSUM_MASK}, those that "
            f"{len(records)} shards sent to {sent & CHECKSUM_MASK}: {_REMEDY}"
        )


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _take_prefix(
    heavy: HeavySet, wanted: int, tokens: Sequence[bytes], rules: MergeRules
) -> tuple[pa.UInt32Array, pa.UInt32Array, pa.Int64Array]:
    barred = forbidden_pairs(tokens, rules)
    rows = heavy.pairs.slice(0, heavy.prefix.pairs).to_pylist()
    kept = [row for row in rows if (row["left"], row["right"]) not in barred][:wanted]
    return (
        pa.array([row["left"] for row in kept], pa.uint32()),
        pa.array([row["right"] for row in kept], pa.uint32()),
        pa.array([row["count"] for row in kept], pa.int64()),
    )


def _make_pool(
    coded: pa.LargeBinaryArray,
    weights: pa.Int64Array,
    chains: pa.LargeListArray,
    *,
    heavy: HeavySet,
    size: int,
    backend: Backend,
) -> tuple[pa.LargeBinaryArray, pa.Int64Array]:
    """Weighted segments that hold each of the first `size` heavy pairs as often as the corpus."""
    once = pa.array(np.ones(len(chains), np.int64))
    cut = backend.cut_segments(
        pa.concat_arrays([decode_segments(coded), chains]),
        pa.concat_arrays([weights, once]),
        heavy.left,
        heavy.right,
        [size],
        _NO_CAP,
        open_left=False,
        open_right=False,
    )
    pairs = heavy.pairs.slice(0, size)
    rest = pairs["count"].to_numpy() - _count_heavy(cut.segments, cut.weights, pairs)
    if (rest < 0).any():
        worst = pairs.slice(int(np.flatnonzero(rest < 0)[0]), 1).to_pylist()[0]
        raise CountTableError(
            f"segments hold the pair ({worst['left']}, {worst['right']}) more often than the "
            f"{worst['count']} times that it was counted: {_REMEDY}"
        )
    # What stands between two cuts on its own, as a pair, is not sent.
    alone = np.flatnonzero(rest > 0)
    lefts, rights = (pairs[name].to_numpy()[alone].tolist() for name in ("left", "right"))
    added = [encode_runs(pair) for pair in zip(lefts, rights, strict=True)]
    return (
        pa.concat_arrays([cut.segments, pa.array(added, pa.large_binary())]),
        pa.concat_arrays([cut.weights, pa.array(rest[alone])]),
    )


def _count_heavy(
    coded: pa.LargeBinaryArray, weights: pa.Int64Array, pairs: pa.Table
) -> npt.NDArray[np.int64]:
    """How often weighted segments hold each of the pairs, overlaps included."""
    tokens, runs, rows = parse_segments(coded)
    weight = weights.to_numpy()[rows]
    same_row = rows[1:] == rows[:-1]
    keys = np.concatenate([pair_keys(tokens[:-1], tokens[1:])[same_row], pair_keys(tokens, tokens)])
    times = np.concatenate([weight[:-1][same_row], weight * (runs - 1)])
    heavy_keys = pair_keys(pairs["left"].to_numpy(), pairs["right"].to_numpy())
    order = np.argsort(heavy_keys)
    places = np.searchsorted(heavy_keys[order], keys)
    places = order[np.minimum(places, len(order) - 1)]
    found = heavy_keys[places] == keys
    counts = np.zeros(len(heavy_keys), np.int64)
    np.add.at(counts, places[found], times[found])
    return counts
