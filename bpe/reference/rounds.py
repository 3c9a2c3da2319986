"""The specification of a merge round's steps: count, cut, merge, and simulate.

Everything here is straight from the definitions of `bpe.backends.protocol.RoundBackend`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa

from bpe.backends.values import MAX_COUNT, CutSegments, MergeRules, SimulatedMerges, StopBefore
from bpe.errors import CountTableError, SettingsError
from bpe.reference.encoding import merge_by_rank
from bpe.reference.training import continue_merges
from bpe.rounds.run_coding import decode_runs, encode_runs

__all__ = ["ReferenceRounds"]

Pair = tuple[int, int]
Tokens = list[int]

_SHORTEST_SEGMENT = 3  # tokens; what stands in pairs of its own is known from their counts
_SEGMENT_OVERHEAD = 1  # byte, of a weight as it travels, mostly


class ReferenceRounds:
    """The steps of training in rounds, in plain Python; see `protocol.RoundBackend`."""

    def count_state_pairs(
        self,
        sequences: pa.LargeListArray,
        weights: pa.Int64Array | None,
        tokens: Sequence[bytes],
        rules: MergeRules,
    ) -> pa.Table:
        """Weighted counts of adjacent pairs, overlaps included, ascending by (left, right)."""
        counts: Counter[Pair] = Counter()
        for ids, weight in _rows(sequences, weights):
            for pair in pairwise(ids):
                counts[pair] += weight
        for (left, right), count in counts.items():
            _check_count(count, f"pair ({tokens[left]!r}, {tokens[right]!r})")
        kept = [
            pair
            for pair in sorted(counts)
            if rules.allows_containing(tokens[pair[0]] + tokens[pair[1]])
        ]
        return pa.table(
            {
                "left": pa.array([left for left, _ in kept], pa.uint32()),
                "right": pa.array([right for _, right in kept], pa.uint32()),
                "count": pa.array([counts[pair] for pair in kept], pa.int64()),
            }
        )

    def cut_segments(
        self,
        sequences: pa.LargeListArray,
        weights: pa.Int64Array | None,
        heavy_left: pa.UInt32Array,
        heavy_right: pa.UInt32Array,
        sizes: Sequence[int],
        cap_bytes: int,
        *,
        open_left: bool,
        open_right: bool,
    ) -> CutSegments:
        """Cut sequences between tokens that are no heavy pair; sum up equal parts."""
        rows = list(_rows(sequences, weights))
        heavy = list(zip(heavy_left.to_pylist(), heavy_right.to_pylist(), strict=True))
        for size in sizes:
            cut = _cut(rows, set(heavy[:size]), size, open_left=open_left, open_right=open_right)
            taken = sum(len(coded.as_py()) + _SEGMENT_OVERHEAD for coded in cut.segments)
            if taken + len(cut.head) + len(cut.tail) <= cap_bytes:
                break
        return cut

    def apply_merges(
        self,
        sequences: pa.LargeListArray,
        left: pa.UInt32Array,
        right: pa.UInt32Array,
        first_id: int,
        id_type: pa.DataType,
    ) -> pa.LargeListArray:
        """Merge pairs in rank order, leftmost first: pair i becomes token first_id + i."""
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        merges = {pair: (rank, first_id + rank) for rank, pair in enumerate(pairs)}
        merged = [merge_by_rank(ids, merges) for ids, _ in _rows(sequences, None)]
        return pa.array(merged, pa.large_list(id_type))

    def simulate_merges(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        stop: StopBefore | None,
    ) -> SimulatedMerges:
        """Train on run-coded segments with weights: the first merge makes token len(tokens)."""
        if rules.tie_order == "first":
            raise SettingsError(
                "tie order 'first' cannot be had in merge rounds: use hf, id or bytes"
            )
        rows = zip(segments.to_pylist(), weights.to_pylist(), strict=True)
        picks = continue_merges(
            ((decode_runs(coded), weight) for coded, weight in rows), tokens, rules, stop
        )
        return SimulatedMerges(
            pa.array([pair[0] for pair, _ in picks], pa.uint32()),
            pa.array([pair[1] for pair, _ in picks], pa.uint32()),
            pa.array([count for _, count in picks], pa.int64()),
        )


def _rows(
    sequences: pa.LargeListArray, weights: pa.Int64Array | None
) -> Iterator[tuple[Tokens, int]]:
    lists = sequences.to_pylist()
    return zip(lists, weights.to_pylist() if weights is not None else [1] * len(lists), strict=True)


def _check_count(count: int, what: str) -> None:
    if count > MAX_COUNT:
        raise CountTableError(
            f"{what} occurs {count} times, more than {MAX_COUNT}: train on a sample, or divide "
            "the counts"
        )


def _cut(
    rows: list[tuple[Tokens, int]],
    heavy: set[Pair],
    size: int,
    *,
    open_left: bool,
    open_right: bool,
) -> CutSegments:
    # Without any sequence, the ends of the shard are those of one without tokens.
    rows = rows or [([], 1)]
    parts = [list(_split(ids, heavy)) for ids, _ in rows]
    has_cut = not (open_left and open_right and len(rows) == 1 and len(parts[0]) == 1)
    head = parts[0].pop(0) if open_left else []
    tail = parts[-1].pop() if open_right and has_cut else []
    totals: Counter[bytes] = Counter()
    for of_row, (_, weight) in zip(parts, rows, strict=True):
        for ids in of_row:
            if len(ids) >= _SHORTEST_SEGMENT:
                totals[encode_runs(ids)] += weight
    coded = sorted(totals)
    for each in coded:
        _check_count(totals[each], f"the segment {decode_runs(each)[:8]}")
    return CutSegments(
        size=size,
        segments=pa.array(coded, pa.large_binary()),
        weights=pa.array([totals[each] for each in coded], pa.int64()),
        head=encode_runs(head),
        tail=encode_runs(tail),
        head_tokens=len(head),
        tail_tokens=len(tail),
        has_cut=has_cut,
    )


def _split(ids: Tokens, heavy: set[Pair]) -> Iterator[Tokens]:
    """Parts of a sequence between its cuts; one, without tokens, of an empty sequence."""
    start = 0
    for end, pair in enumerate(pairwise(ids), 1):
        if pair not in heavy:
            yield ids[start:end]
            start = end
    yield ids[start:]
