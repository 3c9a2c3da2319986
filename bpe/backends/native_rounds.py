"""The native steps of training in rounds, as part of a backend."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from bpe import _native
from bpe.backends.values import CutSegments, MergeRules, SimulatedMerges, StopBefore
from bpe.errors import SettingsError

__all__ = ["NativeRounds", "rule_arguments"]


class NativeRounds:
    """What shards and the driver do in merge rounds, in C++; see `protocol.RoundBackend`."""

    def count_state_pairs(
        self,
        sequences: pa.LargeListArray,
        weights: pa.Int64Array | None,
        tokens: Sequence[bytes],
        rules: MergeRules,
    ) -> pa.Table:
        """Weighted counts of adjacent pairs, overlaps included, ascending by (left, right).

        Memory: 16 bytes for each distinct pair; 2 for each token (4 if ids are uint32, 16 if there
        are weights).
        """
        columns = _native.count_state_pairs(
            sequences.values,
            sequences.offsets,
            weights,
            pa.array(tokens, pa.large_binary()),
            max_token_bytes=rules.max_token_bytes,
            max_words=rules.max_words,
            forbidden_parts=list(rules.forbidden_parts),
        )
        names = ("left", "right", "count")
        return pa.table(
            {name: pa.array(column) for name, column in zip(names, columns, strict=True)}
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
        """Cut sequences between tokens that are no heavy pair; sum up equal parts.

        Memory: up to 90 bytes for each distinct segment and its coded bytes; bounded by
        cap_bytes where some size of the grid keeps to it.
        """
        size, segments, totals, head, tail, head_tokens, tail_tokens, has_cut = (
            _native.cut_segments(
                sequences.values,
                sequences.offsets,
                weights,
                heavy_left,
                heavy_right,
                sizes=list(sizes),
                cap_bytes=cap_bytes,
                open_left=open_left,
                open_right=open_right,
            )
        )
        return CutSegments(
            size=size,
            segments=pa.array(segments),
            weights=pa.array(totals),
            head=head,
            tail=tail,
            head_tokens=head_tokens,
            tail_tokens=tail_tokens,
            has_cut=has_cut,
        )

    def apply_merges(
        self,
        sequences: pa.LargeListArray,
        left: pa.UInt32Array,
        right: pa.UInt32Array,
        first_id: int,
        id_type: pa.DataType,
    ) -> pa.LargeListArray:
        """Merge pairs in rank order, leftmost first: pair i becomes token first_id + i.

        Memory: the result; 4 MiB; 4 to 12 bytes for each token of the longest part in which
        every two neighbours may end up in one token.
        """
        if id_type not in (pa.uint16(), pa.uint32()):
            raise SettingsError(f"id_type is {id_type}: ids are uint16 or uint32")
        return pa.array(
            _native.apply_merges(
                sequences.values,
                sequences.offsets,
                left,
                right,
                first_id=first_id,
                wide=id_type == pa.uint32(),
            )
        )

    def simulate_merges(
        self,
        segments: pa.LargeBinaryArray,
        weights: pa.Int64Array,
        tokens: Sequence[bytes],
        rules: MergeRules,
        stop: StopBefore | None,
    ) -> SimulatedMerges:
        """Train on run-coded segments with weights: the first merge makes token len(tokens).

        Memory: 8 to 15 bytes for each token of the decoded segments, 4 for each segment.
        """
        left, right, counts = _native.simulate_merges(
            segments,
            weights,
            pa.array(tokens, pa.large_binary()),
            None if stop is None else (stop.count, stop.left, stop.right),
            **rule_arguments(rules),
        )
        return SimulatedMerges(pa.array(left), pa.array(right), pa.array(counts))


def rule_arguments(rules: MergeRules) -> _native.RuleArguments:
    """The rules as the native core takes them."""
    return {
        "max_merges": rules.max_merges,
        "tie_order": rules.tie_order,
        "min_frequency": rules.min_frequency,
        "max_token_bytes": rules.max_token_bytes,
        "forbidden": list(rules.forbidden),
        "max_words": rules.max_words,
        "forbidden_parts": list(rules.forbidden_parts),
    }
