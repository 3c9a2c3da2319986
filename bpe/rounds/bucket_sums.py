"""What becomes of the tables of one hash bucket: sums of pairs, their best; sums of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.protocol import Backend
from bpe.backends.values import MAX_COUNT, MergeRules
from bpe.errors import CountTableError
from bpe.rounds.boundaries import BoundaryRecord, straddling_pairs
from bpe.rounds.heavy_set import HeavySet
from bpe.rounds.pair_ranking import PAIR_SCHEMA, RankedPairs, keep_best, pair_keys, sum_counts
from bpe.rounds.run_coding import decode_segments, parse_segments
from bpe.rounds.shard_steps import CHECKSUM_MASK, SEGMENT_SCHEMA, pair_buckets

__all__ = [
    "BucketSegments",
    "add_pair_tables",
    "add_segment_tables",
    "limit_segments",
    "rank_bucket",
    "straddling_table",
]

# Bytes that a segment takes beside its code, as `cut_segments` has it.
_SEGMENT_OVERHEAD = 1
# Tokens that a bucket may hold to cut them again.
_MAX_UNITS = 1 << 26


@dataclass(frozen=True)
class BucketSegments:
    """The segments of a bucket.

    table: `SEGMENT_SCHEMA`. size: they are cut by so many heavy pairs at most. received: sum of
    the weights that came, modulo 2**63.
    """

    table: pa.Table
    size: int
    received: int


def add_pair_tables(tables: Iterable[pa.Table]) -> pa.Table:
    """One table of all pairs with the sums of their counts, ascending by (left, right).

    tables: `PAIR_SCHEMA`. Raises `CountTableError` for a sum above `MAX_COUNT`.
    """
    rows = pa.concat_tables(
        [PAIR_SCHEMA.empty_table(), *(each.cast(PAIR_SCHEMA) for each in tables)]
    )
    keys = pair_keys(rows["left"].to_numpy(), rows["right"].to_numpy())
    # Tables are in this order as shards make them, and a stable sort merges what is sorted fast.
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], rows["count"].to_numpy()[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    if len(starts) < len(keys):
        _check_pair_sums(keys, counts, starts)
        keys, counts = keys[starts], np.add.reduceat(counts, starts)
    left, right = (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)
    return pa.table([left, right, counts], schema=PAIR_SCHEMA)


def _check_pair_sums(
    keys: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]
) -> None:
    """A sum of int64 wraps without a word, so look before adding."""
    if int(counts.max()) * len(counts) <= MAX_COUNT:
        return
    low = np.add.reduceat(counts & 0xFFFFFFFF, starts)
    over = np.flatnonzero(np.add.reduceat(counts >> 32, starts) + (low >> 32) > MAX_COUNT >> 32)
    if len(over):
        key = int(keys[starts[over[0]]])
        raise CountTableError(
            f"the count of the pair ({key >> 32}, {key & 0xFFFFFFFF}) exceeds {MAX_COUNT}: train "
            "on a sample, or divide the counts"
        )


def add_segment_tables(tables: Iterable[pa.Table]) -> pa.Table:
    """One table of all segments with the sums of their weights, ascending by content.

    tables: `SEGMENT_SCHEMA`. Raises `CountTableError` for a sum above `MAX_COUNT`.
    """
    schema = SEGMENT_SCHEMA
    rows = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    _check_segment_sums(rows)
    sums = rows.group_by("segment", use_threads=False).aggregate([("weight", "sum")])
    added = pa.table([sums["segment"], sums["weight_sum"]], schema=schema)
    return added.take(pc.sort_indices(added["segment"])).combine_chunks()


def _check_segment_sums(rows: pa.Table) -> None:
    """A sum of int64 wraps without a word, so look before adding."""
    largest = pc.max(rows["weight"]).as_py() or 0
    if largest * rows.num_rows <= MAX_COUNT:
        return
    halves = pa.table(
        {
            "segment": rows["segment"],
            "high": pc.shift_right(rows["weight"], 32),
            "low": pc.bit_wise_and(rows["weight"], 0xFFFFFFFF),
        }
    )
    sums = halves.group_by("segment").aggregate([("high", "sum"), ("low", "sum")])
    carried = np.add(sums["high_sum"].to_numpy(), sums["low_sum"].to_numpy() >> 32)
    over = np.flatnonzero(carried > MAX_COUNT >> 32)
    if len(over):
        coded = sums["segment"][int(over[0])].as_py()
        raise CountTableError(
            f"the weight of the segment {coded[:20]!r} exceeds {MAX_COUNT}: train on a sample, or "
            "divide the counts"
        )


def limit_segments(
    table: pa.Table, heavy: HeavySet, cap_bytes: int, backend: Backend
) -> BucketSegments:
    """Segments of a bucket, cut again by fewer heavy pairs if they take more than a cap.

    table: sums over all shards. cap_bytes: counts a segment as `Backend.cut_segments` does.
    """
    received = sum_counts(table["weight"]) & CHECKSUM_MASK
    taken = (pc.sum(pc.binary_length(table["segment"])).as_py() or 0) + (
        _SEGMENT_OVERHEAD * table.num_rows
    )
    coded, weights = (table[name].combine_chunks() for name in ("segment", "weight"))
    if taken <= cap_bytes or int(parse_segments(coded)[1].sum()) > _MAX_UNITS:
        return BucketSegments(table, heavy.sizes[0], received)
    cut = backend.cut_segments(
        *(decode_segments(coded), weights, heavy.left, heavy.right, heavy.fine_sizes, cap_bytes),
        open_left=False,
        open_right=False,
    )
    kept = pa.table([cut.segments, cut.weights], schema=SEGMENT_SCHEMA)
    return BucketSegments(kept, cut.size, received)


def rank_bucket(
    pairs: pa.Table,
    records: Sequence[BoundaryRecord],
    *,
    bucket: int,
    buckets: int,
    limit: int,
    tokens: Sequence[bytes],
    rules: MergeRules,
) -> RankedPairs:
    """The best pairs of a bucket, those between shards counted in.

    pairs: sums over all shards. records: of all shards, in order. limit: how many pairs to keep.
    """
    straddling = straddling_table(records, tokens, rules)
    places = pair_buckets(straddling["left"].to_numpy(), straddling["right"].to_numpy(), buckets)
    here = straddling.filter(pa.array(places == bucket))
    if here.num_rows:
        pairs = add_pair_tables([pairs, here])
    return keep_best(pairs, limit, tokens, rules)


def straddling_table(
    records: Iterable[BoundaryRecord], tokens: Sequence[bytes], rules: MergeRules
) -> pa.Table:
    """Pairs between shards, once for each time; only those that the rules let stand."""
    kept = [
        pair
        for pair in straddling_pairs(records)
        if rules.allows_containing(tokens[pair[0]] + tokens[pair[1]])
    ]
    columns = [[left for left, _ in kept], [right for _, right in kept], [1] * len(kept)]
    return pa.table(columns, schema=PAIR_SCHEMA)
