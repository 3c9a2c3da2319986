"""Batches of encoded documents, as they leave a pipeline of one's own."""

from __future__ import annotations

import pyarrow as pa

from schemas.token_shards import token_type
from schemas.versions import with_version

__all__ = ["encoded_batch_schema"]


def encoded_batch_schema(largest_id: int) -> pa.Schema:
    """Schema of the batches that a tokenizer gives: a row is a document.

    Columns:

    - `document_id` string: from the row; null if it has none.
    - `input_ids` large_list<uint16 or uint32>: all ids, with the BOS and EOS ids asked for.

    Args:
        largest_id: as for `token_type`.
    """
    columns = [
        pa.field("document_id", pa.string()),
        pa.field("input_ids", pa.large_list(token_type(largest_id)), nullable=False),
    ]
    return with_version(pa.schema(columns), "encoded_batches", 1)
