"""The heavy set of a round: how many of the best pairs shards cut by, and how that adapts.

Shards send the parts of tokens in which every two neighbours are a heavy pair. The more pairs
are heavy, the more merges a round makes, and the more bytes it sends. Any number of the best pairs
is right, so a shard whose parts exceed its cap takes one of a few smaller numbers; the smallest
of them is the conflict-free prefix, whose parts are pairs and runs. What shards send is added
up by hash buckets, and a bucket that then exceeds its part of the budget cuts again, by one of many
smaller numbers. So a round can ask for somewhat more than the budget allows, and fill it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bpe.backends.values import MergeRules, StopBefore
from bpe.rounds.pair_ranking import (
    PAIR_SCHEMA,
    RankedPairs,
    SafePrefix,
    conflict_free_prefix,
    pair_at,
    sum_counts,
)

__all__ = ["FIRST_COVERAGE", "HeavySet", "choose_heavy", "next_coverage"]

FIRST_COVERAGE = 0.5
"""Share of all adjacent places that heavy pairs hold in the first round."""

_RATIO, _FINE_RATIO = 0.7, 0.94  # of one size to the next, for shards and for buckets
_DAMPING = 0.4
_FASTEST = 2.0  # most that coverage grows in one round
_AFTER_LIMIT = 1.25  # growth after a round that the budget has cut short
_METADATA = b"beam_bpe.heavy_set"


@dataclass(frozen=True)
class HeavySet:
    """What shards cut by.

    pairs: best first; left, right, count. following: the best pair after them; None: there is
    none. sizes: numbers of heavy pairs that a shard may use, descending. fine_sizes: the same for
    a bucket. prefix: the pairs that need no simulation. coverage: that led to it. total: sum of
    the counts of all pairs, heavy or not.
    """

    pairs: pa.Table
    following: StopBefore | None
    sizes: tuple[int, ...]
    fine_sizes: tuple[int, ...]
    prefix: SafePrefix
    coverage: float
    total: int

    def stop_at(self, size: int) -> StopBefore | None:
        """Best pair outside the set if it has only the first `size` pairs."""
        return self.following if size == self.pairs.num_rows else pair_at(self.pairs, size)

    def coverage_of(self, size: int) -> float:
        """Share of all adjacent places that the first `size` pairs hold."""
        return sum_counts(self.pairs["count"].slice(0, size)) / max(1, self.total)

    @property
    def left(self) -> pa.UInt32Array:
        """Left tokens of the heavy pairs, best first."""
        return self.pairs["left"].combine_chunks()

    @property
    def right(self) -> pa.UInt32Array:
        """Right tokens of the heavy pairs, best first."""
        return self.pairs["right"].combine_chunks()

    def to_table(self) -> pa.Table:
        """All of it as one table, for `from_table`."""
        following = self.following
        rest = {
            "following": following and [following.count, following.left, following.right],
            "sizes": [self.sizes, self.fine_sizes],
            "prefix": [self.prefix.pairs, self.prefix.merges],
            "coverage": self.coverage,
            "total": self.total,
        }
        return self.pairs.replace_schema_metadata({_METADATA: json.dumps(rest)})

    @classmethod
    def from_table(cls, table: pa.Table) -> HeavySet:
        """The heavy set that `to_table` wrote."""
        rest = json.loads(table.schema.metadata[_METADATA])
        return cls(
            pairs=table.replace_schema_metadata(None),
            following=rest["following"] and StopBefore(*rest["following"]),
            sizes=tuple(rest["sizes"][0]),
            fine_sizes=tuple(rest["sizes"][1]),
            prefix=SafePrefix(*rest["prefix"]),
            coverage=rest["coverage"],
            total=rest["total"],
        )


def choose_heavy(
    ranking: RankedPairs,
    tokens: Sequence[bytes],
    rules: MergeRules,
    *,
    coverage: float = FIRST_COVERAGE,
) -> HeavySet:
    """The heavy set of a round: the best pairs that hold a share of all adjacent places.

    ranking: has a pair that may be merged. coverage: from 0 to 1.
    """
    prefix = conflict_free_prefix(ranking, tokens, rules)
    counts = ranking.pairs["count"].to_numpy()
    covered = np.cumsum(counts, dtype=np.float64)
    size = int(np.searchsorted(covered, coverage * ranking.total, side="right"))
    coarse, fine = (
        {_fit(step, counts, prefix, rules) for step in grid}
        for grid in (_grid(size, prefix.pairs, ratio) for ratio in (_RATIO, _FINE_RATIO))
    )
    largest = max(coarse)
    return HeavySet(
        pairs=ranking.pairs.slice(0, largest).cast(PAIR_SCHEMA),
        following=(
            ranking.dropped
            if largest == ranking.pairs.num_rows
            else pair_at(ranking.pairs, largest)
        ),
        sizes=tuple(sorted(coarse, reverse=True)),
        fine_sizes=tuple(sorted(fine, reverse=True)),
        prefix=prefix,
        coverage=coverage,
        total=ranking.total,
    )


def next_coverage(heavy: HeavySet, *, used: int, sent_bytes: int, budget: int) -> float:
    """Coverage that the next round asks for.

    used: how many of the round's heavy pairs counted. sent_bytes: of all its distinct segments;
    budget: their limit.
    """
    if used < heavy.sizes[0]:
        # Merges leave less and less to cover, so this is again a bit more than what will fit.
        return min(_AFTER_LIMIT * heavy.coverage_of(used), 1.0)
    factor: float = (budget / max(sent_bytes, 1)) ** _DAMPING
    return min(heavy.coverage * min(max(factor, _AFTER_LIMIT), _FASTEST), 1.0)


def _grid(largest: int, smallest: int, ratio: float) -> list[int]:
    """Sizes from the largest down to the smallest, each about `ratio` of the one before."""
    sizes = []
    size = largest
    while size > smallest:
        sizes.append(size)
        size = min(size - 1, int(size * ratio))
    return [*sizes, smallest]


def _fit(size: int, counts: np.ndarray, prefix: SafePrefix, rules: MergeRules) -> int:
    """In the tie order `bytes`, pairs that tie with the next one are of no use: leave them out."""
    if rules.tie_order != "bytes" or size <= prefix.pairs or size >= len(counts):
        return size
    border = int(np.searchsorted(-counts, -counts[size], side="left"))
    return max(border, prefix.pairs)
