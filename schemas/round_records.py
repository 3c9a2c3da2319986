"""Checkpoints of training in merge rounds: the merges so far, and where the state lies."""

from __future__ import annotations

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["MERGES", "ROUND_RECORD"]

MERGES: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("left", pa.uint32(), nullable=False),
            pa.field("right", pa.uint32(), nullable=False),
            pa.field("count", pa.int64(), nullable=False),
        ]
    ),
    "merges",
    1,
)
"""Merges in the order made: row i makes token 256 + i of two earlier ones; `count` is the pair's
count at that moment."""

_STATE_FILE = pa.struct(
    [
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
    ]
)

ROUND_RECORD: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("round", pa.int32(), nullable=False),
            pa.field("step", pa.string(), nullable=False),
            pa.field("merges", pa.int32(), nullable=False),
            pa.field("merges_sha256", pa.string(), nullable=False),
            pa.field("last_count", pa.int64()),
            pa.field("bytes_sent", pa.int64(), nullable=False),
            pa.field("seconds", pa.float64(), nullable=False),
            pa.field("settings_digest", pa.string(), nullable=False),
            pa.field(
                "state_files",
                pa.list_(pa.field("item", _STATE_FILE, nullable=False)),
                nullable=False,
            ),
        ]
    ),
    "round_record",
    1,
)
"""What a step of a round left behind; JSON (`schemas.records`), written after everything it names.

- `round` from 0, `step` `count` or `segments`.
- `merges`: how many are made, all of them in a file of `MERGES` with `merges_sha256` (hex).
- `last_count`: count of the last merge; null before the first.
- `bytes_sent`: what workers sent to the driver in this step; `seconds`: what it took.
- `settings_digest`: the same command resumes only if its own is equal.
- `state_files`: per shard, name in the state folder, size in bytes, and sha256 (hex)."""
