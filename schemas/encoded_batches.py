"""Batches of encoded documents, as they leave a pipeline of one's own."""

from __future__ import annotations

import pyarrow as pa

from schemas.token_shards import id_version
from schemas.versions import with_version

__all__ = ["encoded_batch_schema"]


def encoded_batch_schema(id_type: pa.DataType) -> pa.Schema:
    """Schema of the batches that a tokenizer gives: a row is a document.

    Columns:

    - `document_id` string: from the row; null if it has none.
    - `input_ids` large_list<uint16, uint32 or uint8>: all ids, with the BOS and EOS ids asked for.

    Args:
        id_type: as for `token_shard_schema`.
    """
    columns = [
        pa.field("document_id", pa.string()),
        pa.field("input_ids", pa.large_list(id_type), nullable=False),
    ]
    return with_version(pa.schema(columns), "encoded_batches", id_version(id_type))
