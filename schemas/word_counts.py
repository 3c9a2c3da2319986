"""Counts of pre-tokens: what counting writes and training reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["word_counts_schema"]


def word_counts_schema(
    *,
    scheme: str,
    unicode_version: str,
    document_rule: str,
    special_text: str = "text",
    special_tokens: Sequence[str] = (),
    first_positions: bool = False,
) -> pa.Schema:
    """Schema of a count table; its metadata says what was counted.

    Columns: `word` binary, the pre-token's bytes, distinct, ascending by bytes; `count` int64,
    occurrences, at least 1; with `first_positions` also `first` int64, the smallest byte position
    at which the word starts (comparable within one table).

    Args:
        scheme: name of the pre-tokenizer, or `regex:PATTERN`.
        unicode_version: of the character classes it used.
        document_rule: what ended a pre-token besides the scheme.
        special_text: what special tokens in the text meant: `text`, `allow` or `reject`.
        special_tokens: those that counted as such.
        first_positions: whether the column `first` is there.
    """
    columns = [
        pa.field("word", pa.binary(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
    if first_positions:
        columns.append(pa.field("first", pa.int64(), nullable=False))
    metadata = {
        "beam_bpe.scheme": scheme,
        "beam_bpe.unicode_version": unicode_version,
        "beam_bpe.document_rule": document_rule,
        "beam_bpe.special_text": special_text,
        "beam_bpe.special_tokens": json.dumps(list(special_tokens)),
    }
    return with_version(pa.schema(columns, metadata=metadata), "word_counts", 1)
