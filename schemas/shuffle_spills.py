"""Rows of one unit on their way to the buckets of a global shuffle, as an Arrow IPC file."""

from __future__ import annotations

import pyarrow as pa

from schemas.token_shards import id_version, token_shard_schema
from schemas.versions import with_version

__all__ = ["shuffle_spill_schema"]


def shuffle_spill_schema(id_type: pa.DataType) -> pa.Schema:
    """Schema of the spills that a tokenizer gives.

    Record batch i holds rows of bucket i modulo the number of buckets, in reading order; several
    rounds of them follow each other where a unit is large. Columns are those of
    `schemas.token_shards`, and:

    - `shuffle_key` uint64: of the row's document (`pipelines.corpus.document_keys`); decides the
      bucket, and the place in it.
    - `text_bytes` int64: bytes of text that end with the row.

    Args:
        id_type: as for `token_shard_schema`.
    """
    schema = token_shard_schema(id_type)
    schema = schema.append(pa.field("shuffle_key", pa.uint64(), nullable=False))
    schema = schema.append(pa.field("text_bytes", pa.int64(), nullable=False))
    return with_version(schema, "shuffle_spills", id_version(id_type))
