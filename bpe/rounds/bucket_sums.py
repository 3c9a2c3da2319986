"""What becomes of the tables of one hash bucket: sums of pairs, their best; sums of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backend import MAX_COUNT, MergeRules
from bpe.errors import CountTableError
from bpe.rounds.boundaries import BoundaryRecord, straddling_pairs
from bpe.rounds.pair_ranking import PAIR_SCHEMA, RankedPairs, keep_best
from bpe.rounds.shard_steps import SEGMENT_SCHEMA, pair_buckets

__all__ = ["add_pair_tables", "add_segment_tables", "rank_bucket", "straddling_table"]


def add_pair_tables(tables: Iterable[pa.Table]) -> pa.Table:
    """One table of all pairs with the sums of their counts, ascending by (left, right).

    tables: `PAIR_SCHEMA`. Raises `CountTableError` for a sum above `MAX_COUNT`.
    """
    added = _add(tables, PAIR_SCHEMA, ["left", "right"])
    keys = [("left", "ascending"), ("right", "ascending")]
    return added.take(pc.sort_indices(added, keys)).combine_chunks()


def add_segment_tables(tables: Iterable[pa.Table]) -> pa.Table:
    """One table of all segments with the sums of their weights, ascending by content.

    tables: `SEGMENT_SCHEMA`. Raises `CountTableError` for a sum above `MAX_COUNT`.
    """
    added = _add(tables, SEGMENT_SCHEMA, ["segment"])
    return added.take(pc.sort_indices(added["segment"])).combine_chunks()


def rank_bucket(
    pairs: pa.Table,
    records: Sequence[BoundaryRecord],
    bucket: int,
    bucket_count: int,
    limit: int,
    tokens: Sequence[bytes],
    rules: MergeRules,
) -> RankedPairs:
    """The best pairs of a bucket, those between shards counted in.

    pairs: sums over all shards. records: of all shards, in order. limit: how many pairs to keep.
    """
    straddling = straddling_table(records, tokens, rules)
    buckets = pair_buckets(
        straddling["left"].to_numpy(), straddling["right"].to_numpy(), bucket_count
    )
    here = straddling.filter(pa.array(buckets == bucket))
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


def _add(tables: Iterable[pa.Table], schema: pa.Schema, keys: list[str]) -> pa.Table:
    number = schema.names[-1]
    rows = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    _check_sums(rows, keys, number)
    sums = rows.group_by(keys, use_threads=False).aggregate([(number, "sum")])
    return pa.table([*(sums[key] for key in keys), sums[f"{number}_sum"]], schema=schema)


def _check_sums(rows: pa.Table, keys: list[str], number: str) -> None:
    """Arrow's sum of int64 wraps without a word, so look before adding."""
    largest = pc.max(rows[number]).as_py() or 0
    if largest * rows.num_rows <= MAX_COUNT:
        return
    halves = rows.select(keys)
    halves = halves.append_column("high", pc.shift_right(rows[number], 32))
    halves = halves.append_column("low", pc.bit_wise_and(rows[number], 0xFFFFFFFF))
    sums = halves.group_by(keys).aggregate([("high", "sum"), ("low", "sum")])
    carried = np.add(sums["high_sum"].to_numpy(), sums["low_sum"].to_numpy() >> 32)
    over = np.flatnonzero(carried > MAX_COUNT >> 32)
    if len(over):
        row = sums.select(keys).slice(int(over[0]), 1).to_pylist()[0]
        raise CountTableError(
            f"{number} of {row} exceeds {MAX_COUNT}: train on a sample, or divide the counts"
        )
