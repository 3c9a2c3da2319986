"""The heavy set of a round: how many of the best pairs shards cut by, and how that adapts.

Shards send the stretches of tokens in which every two neighbours are a heavy pair. The more pairs
are heavy, the more merges a round makes, and the more bytes it sends. Any number of the best pairs
is right, so a shard whose stretches exceed its cap takes one of a few smaller numbers; the smallest
of them is the conflict-free prefix, whose stretches are pairs and runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bpe.backend import MergeRules, StopBefore
from bpe.rounds.pair_ranking import (
    PAIR_SCHEMA,
    RankedPairs,
    SafePrefix,
    conflict_free_prefix,
    pair_at,
)

__all__ = ["FIRST_COVERAGE", "HeavySet", "choose_heavy", "next_coverage"]

FIRST_COVERAGE = 0.2
"""Share of all adjacent places that heavy pairs hold in the first round."""

_GRID_STEPS = 7
_TARGET = 0.85  # of the budget
_DAMPING = 0.4
_SLOWEST, _FASTEST = 0.9, 1.5  # bounds of one round's change
_AFTER_OVERFLOW = 0.85
_METADATA = b"beam_bpe.heavy_set"


@dataclass(frozen=True)
class HeavySet:
    """What shards cut by.

    pairs: best first; left, right, count. following: the best pair behind them; None: there is
    none. sizes: numbers of heavy pairs that a shard may use, descending. prefix: the pairs that
    need no simulation. coverage: that led to it.
    """

    pairs: pa.Table
    following: StopBefore | None
    sizes: tuple[int, ...]
    prefix: SafePrefix
    coverage: float

    def stop_at(self, size: int) -> StopBefore | None:
        """Best pair outside the set if it has only the first `size` pairs."""
        return self.following if size == self.pairs.num_rows else pair_at(self.pairs, size)

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
            "sizes": list(self.sizes),
            "prefix": [self.prefix.pairs, self.prefix.merges],
            "coverage": self.coverage,
        }
        return self.pairs.replace_schema_metadata({_METADATA: json.dumps(rest)})

    @classmethod
    def from_table(cls, table: pa.Table) -> HeavySet:
        """The heavy set that `to_table` wrote."""
        rest = json.loads(table.schema.metadata[_METADATA])
        return cls(
            pairs=table.replace_schema_metadata(None),
            following=rest["following"] and StopBefore(*rest["following"]),
            sizes=tuple(rest["sizes"]),
            prefix=SafePrefix(*rest["prefix"]),
            coverage=rest["coverage"],
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
    sizes = [_fit(step, counts, prefix, rules) for step in _grid(size, prefix.pairs)]
    largest = sizes[0]
    return HeavySet(
        pairs=ranking.pairs.slice(0, largest).cast(PAIR_SCHEMA),
        following=(
            ranking.dropped
            if largest == ranking.pairs.num_rows
            else pair_at(ranking.pairs, largest)
        ),
        sizes=tuple(sorted(set(sizes), reverse=True)),
        prefix=prefix,
        coverage=coverage,
    )


def next_coverage(coverage: float, *, sent_bytes: int, budget: int, overflowed: bool) -> float:
    """Coverage of the next round.

    sent_bytes: of all distinct segments of this round; budget: what they should be at most.
    overflowed: whether some shard took fewer heavy pairs than there were.
    """
    if overflowed:
        return coverage * _AFTER_OVERFLOW
    factor: float = (_TARGET * budget / max(sent_bytes, 1)) ** _DAMPING
    return min(coverage * min(max(factor, _SLOWEST), _FASTEST), 1.0)


def _grid(largest: int, smallest: int) -> list[int]:
    """Sizes from the largest down to the smallest, in equal ratios."""
    if largest <= smallest:
        return [smallest]
    ratio = (smallest / largest) ** (1 / _GRID_STEPS)
    middle = [round(largest * ratio**step) for step in range(1, _GRID_STEPS)]
    return [largest, *(size for size in middle if smallest < size < largest), smallest]


def _fit(size: int, counts: np.ndarray, prefix: SafePrefix, rules: MergeRules) -> int:
    """In the tie order `bytes`, pairs that tie with the next one are of no use: leave them out."""
    if rules.tie_order != "bytes" or size <= prefix.pairs or size >= len(counts):
        return size
    border = int(np.searchsorted(-counts, -counts[size], side="left"))
    return max(border, prefix.pairs)
