"""Records of a merge round: pair counts, ends of shards, and segments between cuts.

A round's state is one sequence of tokens per shard. Long runs of one token are common in real
text (rules, blanks), so sequences are run-length coded: a list of (token, run).
"""

from __future__ import annotations

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["BOUNDARY_FIXES", "BOUNDARY_RECORDS", "PAIR_COUNTS", "SEGMENTS"]

_RUNS = pa.list_(
    pa.field(
        "item",
        pa.struct(
            [
                pa.field("token", pa.uint32(), nullable=False),
                pa.field("run", pa.int64(), nullable=False),
            ]
        ),
        nullable=False,
    )
)

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

BOUNDARY_RECORDS: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("tokens", pa.int64(), nullable=False),
            pa.field("has_cut", pa.bool_(), nullable=False),
            pa.field("head", _RUNS, nullable=False),
            pa.field("tail", _RUNS, nullable=False),
        ]
    ),
    "boundary_records",
    1,
)
"""The ends of a shard's sequence, where merges reach into its neighbours; one row a shard.

- `tokens`: length of the shard's sequence; 0 for a shard that its left neighbour has used up.
- `has_cut`: whether some adjacency in it is cut. If not, `head` is the whole sequence and `tail`
  is empty.
- `head`, `tail`: tokens before the first cut, and after the last."""

BOUNDARY_FIXES: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("shard", pa.int32(), nullable=False),
            pa.field("head", _RUNS, nullable=False),
            pa.field("tail", _RUNS, nullable=False),
        ]
    ),
    "boundary_fixes",
    1,
)
"""What the ends of a shard have become: replaces `head` and `tail` of its boundary record. A token
belongs to the shard that holds its first byte."""

SEGMENTS: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("segment", _RUNS, nullable=False),
            pa.field("weight", pa.int64(), nullable=False),
        ]
    ),
    "segments",
    1,
)
"""Stretches between cuts of two tokens or more, distinct, with how often each occurs."""
