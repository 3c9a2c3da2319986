"""What a shard does in a round: count pairs, cut segments, apply the merges. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.protocol import Backend
from bpe.backends.values import MergeRules
from bpe.errors import CountTableError
from bpe.rounds.boundaries import BoundaryRecord, ShardFix
from bpe.rounds.heavy_set import HeavySet
from bpe.rounds.pair_ranking import pair_keys, sum_counts
from bpe.rounds.run_coding import encode_runs
from bpe.rounds.shard_state import ShardState, expand_runs, state_id_type

__all__ = [
    "CHECKSUM_MASK",
    "SEGMENT_SCHEMA",
    "ShardReport",
    "apply_to_shard",
    "count_shard",
    "cut_shard",
    "pair_buckets",
]

SEGMENT_SCHEMA = pa.schema(
    [
        pa.field("segment", pa.large_binary(), nullable=False),
        pa.field("weight", pa.int64(), nullable=False),
    ]
)
"""Run-coded parts of tokens, and how often each occurs."""

CHECKSUM_MASK = 2**63 - 1
"""Sums that only have to be equal at both ends of a way are kept modulo 2**63."""

_PAIR_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, of mixed bits: the golden ratio
_BYTE_FACTORS = 251  # different factors for the bytes of a segment, by place


@dataclass(frozen=True)
class ShardReport:
    """What a shard sends in one step: a table for each hash bucket that has any rows, and its ends.

    tables: `PAIR_SCHEMA` or `SEGMENT_SCHEMA`, by bucket.
    """

    tables: dict[int, pa.Table]
    ends: BoundaryRecord


def count_shard(
    shard: int,
    state: ShardState,
    *,
    buckets: int,
    tokens: Sequence[bytes],
    rules: MergeRules,
    backend: Backend,
) -> ShardReport:
    """Count the pairs inside a shard; its ends say which pairs it forms with its neighbours."""
    pairs = backend.count_state_pairs(state.sequences, state.weights, tokens, rules)
    places = pair_buckets(pairs["left"].to_numpy(), pairs["right"].to_numpy(), buckets)
    first, last = _outer_tokens(state)
    has_cut = not (state.is_passage and state.token_count < 2)
    ends = BoundaryRecord(
        shard=shard,
        tokens=state.token_count,
        open_left=state.open_left,
        open_right=state.open_right,
        has_cut=has_cut,
        head=encode_runs(first) if state.open_left else b"",
        tail=encode_runs(last) if state.open_right and has_cut else b"",
        size=0,
        sent=sum_counts(pairs["count"]) & CHECKSUM_MASK,
    )
    return ShardReport(dict(_by_bucket(pairs, places)), ends)


def cut_shard(
    shard: int,
    state: ShardState,
    heavy: HeavySet,
    *,
    buckets: int,
    cap_bytes: int,
    backend: Backend,
) -> ShardReport:
    """Cut a shard's tokens by the heavy set; cap_bytes: of what it may send, run-coded."""
    cut = backend.cut_segments(
        state.sequences,
        state.weights,
        heavy.left,
        heavy.right,
        heavy.sizes,
        cap_bytes,
        open_left=state.open_left,
        open_right=state.open_right,
    )
    table = pa.table([cut.segments, cut.weights], schema=SEGMENT_SCHEMA)
    ends = BoundaryRecord(
        shard=shard,
        tokens=state.token_count,
        open_left=state.open_left,
        open_right=state.open_right,
        has_cut=cut.has_cut,
        head=cut.head,
        tail=cut.tail,
        size=cut.size,
        sent=sum_counts(table["weight"]) & CHECKSUM_MASK,
    )
    places = _segment_buckets(cut.segments, buckets)
    return ShardReport(dict(_by_bucket(table, places)), ends)


def apply_to_shard(
    state: ShardState,
    left: pa.UInt32Array,
    right: pa.UInt32Array,
    *,
    first_id: int,
    fix: ShardFix | None,
    backend: Backend,
) -> ShardState:
    """The shard after a round's merges; pair i has become token first_id + i.

    fix: what its ends have become; None: it has none.
    Raises `CountTableError` if the fix takes more tokens than there are.
    """
    inner, head, tail = state.sequences, _NOTHING, _NOTHING
    if fix is not None:
        inner = _without_ends(state, fix)
        head, tail = expand_runs(fix.head), expand_runs(fix.tail)
    id_type = state_id_type(first_id + len(left))
    merged = backend.apply_merges(inner, left, right, first_id, id_type)
    if len(head) or len(tail):
        merged = _with_ends(merged, head, tail)
    return ShardState(merged, state.weights, state.open_left, state.open_right)


_NOTHING: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)


def _without_ends(state: ShardState, fix: ShardFix) -> pa.LargeListArray:
    offsets = state.sequences.offsets.to_numpy().copy()
    lengths = np.diff(offsets)
    taken = np.zeros(len(lengths), np.int64)
    if len(lengths):
        taken[0] += fix.head_tokens
        taken[-1] += fix.tail_tokens
    open_ends = (state.open_left or not fix.head_tokens) and (
        state.open_right or not fix.tail_tokens
    )
    if not open_ends or (taken > lengths).any():
        raise CountTableError(
            f"the fix of shard {fix.shard} takes {fix.head_tokens} tokens off its start and "
            f"{fix.tail_tokens} off its end, which it does not have: state and fix are of "
            "different rounds; start the training again"
        )
    offsets[0] += fix.head_tokens
    offsets[-1] -= fix.tail_tokens
    return pa.LargeListArray.from_arrays(pa.array(offsets), state.sequences.values)


def _with_ends(
    merged: pa.LargeListArray, head: npt.NDArray[np.uint32], tail: npt.NDArray[np.uint32]
) -> pa.LargeListArray:
    offsets = merged.offsets.to_numpy()
    values = merged.values.to_numpy()[offsets[0] : offsets[-1]]
    moved = offsets - offsets[0] + len(head)
    moved[0] = 0
    moved[-1] += len(tail)
    joined = np.concatenate([head.astype(values.dtype), values, tail.astype(values.dtype)])
    return pa.LargeListArray.from_arrays(pa.array(moved), pa.array(joined))


def _outer_tokens(state: ShardState) -> tuple[list[int], list[int]]:
    """First token of the first sequence, and last of the last; empty where there is none."""
    if len(state.sequences) == 0:
        return [], []
    first, last = state.sequences[0].values, state.sequences[-1].values
    return first[:1].to_pylist(), last[len(last) - min(len(last), 1) :].to_pylist()


def pair_buckets(
    left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32], bucket_count: int
) -> npt.NDArray[np.int64]:
    """Hash bucket of each pair; depends on its ids and the number of buckets alone."""
    return _spread(pair_keys(left, right), bucket_count)


def _segment_buckets(segments: pa.LargeBinaryArray, bucket_count: int) -> npt.NDArray[np.int64]:
    if len(segments) == 0:
        return np.zeros(0, np.int64)
    offsets = np.frombuffer(segments.buffers()[1], np.int64)[segments.offset :]
    offsets = offsets[: len(segments) + 1]
    data = np.frombuffer(segments.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    starts = offsets[:-1] - offsets[0]  # segments are never empty
    places = np.arange(len(data)) - np.repeat(starts, np.diff(offsets))
    factors = _PAIR_FACTOR * np.arange(1, 2 * _BYTE_FACTORS, 2, dtype=np.uint64)
    mixed = (data.astype(np.uint64) + np.uint64(1)) * factors[places % _BYTE_FACTORS]
    return _spread(np.add.reduceat(mixed, starts), bucket_count)


def _spread(keys: npt.NDArray[np.uint64], bucket_count: int) -> npt.NDArray[np.int64]:
    mixed = keys * _PAIR_FACTOR
    mixed ^= mixed >> np.uint64(29)
    mixed *= _PAIR_FACTOR
    return ((mixed >> np.uint64(33)) % np.uint64(bucket_count)).astype(np.int64)


def _by_bucket(table: pa.Table, buckets: npt.NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Rows of each bucket that has any, in their order."""
    # Numbers of two bytes are sorted by counting.
    kind = np.uint16 if buckets.max(initial=0) < 1 << 16 else np.int64
    order = np.argsort(buckets.astype(kind), kind="stable")
    rows = table.take(pa.array(order))
    present, starts = np.unique(buckets[order], return_index=True)
    borders = [*starts.tolist(), table.num_rows]
    for bucket, (start, end) in zip(present.tolist(), pairwise(borders), strict=True):
        yield bucket, rows.slice(start, end - start).combine_chunks()
