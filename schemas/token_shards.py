"""Token shards: the encoded corpus, as Arrow IPC files."""

from __future__ import annotations

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["id_version", "token_shard_schema", "token_type"]


def token_type(largest_id: int) -> pa.DataType:
    """Smallest of uint16 and uint32 that holds every id of a tokenizer.

    Args:
        largest_id: of the tokenizer, not of a shard, so that all shards have the same type.

    Raises:
        ValueError: no token id; the range is 0 to 2^32 - 1.
    """
    if not 0 <= largest_id < 2**32:
        raise ValueError(f"{largest_id} is no token id; ids go from 0 to {2**32 - 1}")
    return pa.uint16() if largest_id < 2**16 else pa.uint32()


def id_version(id_type: pa.DataType) -> int:
    """Version of the schemas of encoded texts: 2 where ids are uint8, else 1."""
    return 2 if id_type == pa.uint8() else 1


def token_shard_schema(id_type: pa.DataType) -> pa.Schema:
    """Schema of the shards that a tokenizer gives, in the order of files and offsets.

    Version 1; where ids are uint8, version 2, which is the same otherwise.

    Columns:

    - `input_ids` list<uint16 or uint32>: token ids of a document or of a part of it, in order, with
      BOS and EOS if the settings ask for them; uint8 for some presets of bytes.
    - `document_id` string: from the id field; otherwise `FILE_INDEX:PLACE` (`schemas.documents`).
    - `source` dictionary<int32, string>: the file, as a path below the folder that all inputs
      share.
    - `byte_start` int64: where the document part of the row's ids (`schemas.documents`) starts in
      the uncompressed file, bytes. In JSON lines and CSV: where its row starts. In Parquet and
      Arrow: the row's number in the file, from 0. A row that continues a document part because of
      `--max-row-tokens` repeats the `byte_start` of the row before it. Its own text starts later,
      by the bytes that the earlier rows of the part decode to, without BOS.
    - `part` int32: rises from one row of a document to the next; 0 for the first.
    - `is_last` bool: whether the document ends here; its true values count the documents.

    Args:
        id_type: of the tokenizer's ids: uint8, uint16 or uint32.
    """
    columns = [
        pa.field("input_ids", pa.list_(id_type), nullable=False),
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("source", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("byte_start", pa.int64(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("is_last", pa.bool_(), nullable=False),
    ]
    return with_version(pa.schema(columns), "token_shards", id_version(id_type))
