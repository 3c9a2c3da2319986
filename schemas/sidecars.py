"""What is known of each token shard, and of a whole output folder.

Both are JSON files for people and programs; `schemas.records` writes and checks them.
"""

from __future__ import annotations

import pyarrow as pa

from schemas.records import json_object
from schemas.versions import with_version

__all__ = ["MANIFEST", "SHARD_SIDECAR"]

_COUNTS = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))

_INPUT = pa.struct(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64()),
    ]
)

_SHARD_FIELDS = [
    pa.field("file", pa.string(), nullable=False),
    pa.field("unit", pa.int32(), nullable=False),
    pa.field("part", pa.int32(), nullable=False),
    pa.field("rows", pa.int64(), nullable=False),
    pa.field("documents", pa.int64(), nullable=False),
    pa.field("tokens", pa.int64(), nullable=False),
    pa.field("text_bytes", pa.int64(), nullable=False),
    pa.field("file_bytes", pa.int64(), nullable=False),
    pa.field("sha256", pa.string(), nullable=False),
    pa.field("min_id", pa.int64()),
    pa.field("max_id", pa.int64()),
    pa.field("first_document", pa.string()),
    pa.field("last_document", pa.string()),
]

SHARD_SIDECAR: pa.Schema = with_version(
    pa.schema(
        [
            *_SHARD_FIELDS,
            pa.field("is_last_part", pa.bool_(), nullable=False),
            pa.field("settings_digest", pa.string(), nullable=False),
            pa.field("inputs", pa.list_(pa.field("item", _INPUT, nullable=False)), nullable=False),
            pa.field("documents_in", pa.int64(), nullable=False),
            pa.field("rejects", _COUNTS, nullable=False),
            pa.field("accepted", _COUNTS, nullable=False),
        ]
    ),
    "shard_sidecar",
    1,
)
"""One shard, written after the shard has its final name.

- `file`: name in the output folder; `unit` and `part` as in it.
- `rows`, `documents` (those that end in it), `tokens` (with BOS and EOS), `text_bytes` (of input),
  `file_bytes`, `sha256` (hex) of the file.
- `min_id`, `max_id`, `first_document`, `last_document`: null for a shard without ids or rows.
- `is_last_part`: whether the unit ends here; then `documents_in`, `rejects` and `accepted` (by
  reason and by anomaly) hold the whole unit's counts, and are 0 and empty otherwise.
- `settings_digest`: a shard is kept on resuming if this and `inputs` are as planned.
- `inputs`: what the unit reads: path, size (bytes), identity, first byte, byte after the last
  (null: to the end of a compressed file)."""

MANIFEST: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("code_version", pa.string(), nullable=False),
            pa.field("backend", pa.string(), nullable=False),
            pa.field("tokenizer_digest", pa.string(), nullable=False),
            pa.field("settings_digest", pa.string(), nullable=False),
            json_object("settings"),
            pa.field("plan_digest", pa.string(), nullable=False),
            pa.field(
                "shards",
                pa.list_(pa.field("item", pa.struct(_SHARD_FIELDS), nullable=False)),
                nullable=False,
            ),
            pa.field(
                "totals",
                pa.struct(
                    [
                        pa.field("documents_in", pa.int64(), nullable=False),
                        pa.field("documents", pa.int64(), nullable=False),
                        pa.field("rows", pa.int64(), nullable=False),
                        pa.field("tokens", pa.int64(), nullable=False),
                        pa.field("text_bytes", pa.int64(), nullable=False),
                    ]
                ),
                nullable=False,
            ),
            pa.field("rejects", _COUNTS, nullable=False),
            pa.field("accepted", _COUNTS, nullable=False),
        ]
    ),
    "manifest",
    1,
)
"""A finished output folder; written last. Fields as in `SHARD_SIDECAR`, totals over all shards.

`documents_in` = `documents` + rejected rows + `accepted["empty_dropped"]`."""
