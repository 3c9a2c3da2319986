"""Packed token shards: rows of exactly as many ids as a trainer takes, as Arrow IPC files."""

from __future__ import annotations

import pyarrow as pa

from schemas.token_shards import id_version
from schemas.versions import with_version

__all__ = ["PACKED_LISTS", "packed_shard_schema"]

PACKED_LISTS = (
    "lengths",
    "positions",
    "document_ids",
    "sources",
    "byte_starts",
    "is_first",
    "is_last",
)
"""Columns with an entry per segment of the row: in each row, all of them are equally long."""


def packed_shard_schema(id_type: pa.DataType, row_ids: int) -> pa.Schema:
    """Schema of packed shards: version 1; where ids are uint8, version 2.

    A row holds segments and then padding. A segment is a document, or the part of it in this row.
    Where two segments meet, another document begins. Drawn for rows of 8 ids, with `.`
    for padding:

        input_ids   a a a b b c c c      c c d . . . . .
        lengths     [3, 2, 3]            [2, 1]
        positions   [0, 0, 0]            [3, 0]
        is_first    [T, T, T]            [F, T]
        is_last     [T, T, F]            [T, T]

    So cumulated `lengths` are the `cu_seqlens` of variable-length attention, and a token's place in
    its document is its segment's position plus its place in the segment.

    Columns; the lists have an entry per segment, in order:

    - `input_ids` fixed_size_list<uint16 or uint32>[row_ids]: ids, with BOS and EOS if the settings
      ask for them, then the padding id; uint8 for some presets of bytes.
    - `lengths` list<int32>: number of ids in each segment; all other ids of the row are padding. An
      empty document is a segment of length 0.
    - `positions` list<int64>: place of the segment's first id in its document, in ids from 0. In a
      document that began in another unit of the plan: from where this unit takes it up; likewise
      in one longer than a shard that was shuffled.
    - `document_ids` list<string>, `sources` list<dictionary<int32, string>>: as `document_id` and
      `source` of `schemas.token_shards`.
    - `byte_starts` list<int64>: as `byte_start` of `schemas.token_shards`, for the document part
      that holds the segment's first id.
    - `is_first`, `is_last` list<bool>: whether the document starts or ends with the segment.
      Documents are counted by `is_last`.

    Args:
        id_type: as for `token_shard_schema`.
        row_ids: ids in each row.
    """
    types = {
        "lengths": pa.int32(),
        "positions": pa.int64(),
        "document_ids": pa.string(),
        "sources": pa.dictionary(pa.int32(), pa.string()),
        "byte_starts": pa.int64(),
        "is_first": pa.bool_(),
        "is_last": pa.bool_(),
    }
    ids = pa.field("input_ids", pa.list_(id_type, row_ids), nullable=False)
    lists = [pa.field(name, pa.list_(types[name]), nullable=False) for name in PACKED_LISTS]
    return with_version(pa.schema([ids, *lists]), "packed_shards", id_version(id_type))
