"""Records of a merge round: pair counts, ends of shards, and segments between cuts.

A round's state is sequences of tokens, spread over shards in order. Long runs of one token are
common in real text (rules, blanks), so sequences of tokens are sent run-length coded, each as one
binary value (`bpe.rounds.run_coding` defines it): equal sequences have equal bytes, and
tables of them can be added by a native group-by.
"""

from __future__ import annotations

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["BOUNDARY_FIXES", "BOUNDARY_RECORDS", "PAIR_COUNTS", "RANKED_PAIRS", "SEGMENTS"]

PAIR_COUNTS: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("left", pa.uint32(), nullable=False),
            pa.field("right", pa.uint32(), nullable=False),
            pa.field("count", pa.int64(), nullable=False),
        ]
    ),
    "pair_counts",
    1,
)
"""How often two tokens stand next to each other, overlaps counted; distinct, ascending by
(left, right). A shard counts the pairs inside it; pairs across shards come from the ends in
`BOUNDARY_RECORDS`."""

RANKED_PAIRS: pa.Schema = with_version(pa.schema(list(PAIR_COUNTS)), "ranked_pairs", 1)
"""The same columns, but the best pairs alone, best first by count and tie order; what is known of
the other pairs, and what the pairs are kept for, is in further metadata."""

BOUNDARY_RECORDS: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("tokens", pa.int64(), nullable=False),
            pa.field("open_left", pa.bool_(), nullable=False),
            pa.field("open_right", pa.bool_(), nullable=False),
            pa.field("has_cut", pa.bool_(), nullable=False),
            pa.field("head", pa.large_binary(), nullable=False),
            pa.field("tail", pa.large_binary(), nullable=False),
            pa.field("size", pa.int32(), nullable=False),
            pa.field("sent", pa.int64(), nullable=False),
        ]
    ),
    "boundary_records",
    1,
)
"""The ends of a shard, where merges reach into its neighbours; one row a shard.

- `tokens`: how many the shard holds; 0 for one that its left neighbour has used up.
- `open_left`, `open_right`: whether its first sequence continues that of the shard before, and its
  last one continues in the next. At a closed end, `head` or `tail` is empty.
- `has_cut`: whether some adjacency is cut, or sequences end, inside it. If not, `head` is all that
  the shard holds and `tail` is empty.
- `head`, `tail`: coded tokens before the first cut, and after the last.
- `size`: in the step that sends segments, how many heavy pairs they were cut by; 0 when counting.
- `sent`: sum of all counts, or of all weights, that the shard sent; what comes out of the runner's
  grouping must add up to it."""

BOUNDARY_FIXES: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("head", pa.large_binary(), nullable=False),
            pa.field("tail", pa.large_binary(), nullable=False),
            pa.field("head_tokens", pa.int64(), nullable=False),
            pa.field("tail_tokens", pa.int64(), nullable=False),
        ]
    ),
    "boundary_fixes",
    1,
)
"""What the ends of a shard become by a round's merges; no row for a shard whose ends stay inside.

- `head`, `tail`: coded tokens that stand at the ends instead. A token belongs to the shard that
  holds its first byte.
- `head_tokens`, `tail_tokens`: how many tokens of the old state they replace."""

SEGMENTS: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("segment", pa.large_binary(), nullable=False),
            pa.field("weight", pa.int64(), nullable=False),
        ]
    ),
    "segments",
    1,
)
"""Stretches between cuts of three tokens or more, coded; distinct, ascending by `segment`, with
how often each occurs."""
