"""Documents as the readers yield them: whole, or in parts between certain cuts."""

from __future__ import annotations

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["DOCUMENT_PIECES"]

DOCUMENT_PIECES: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("text", pa.large_binary(), nullable=False),
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("byte_start", pa.int64(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),
            pa.field("is_first", pa.bool_(), nullable=False),
            pa.field("is_last", pa.bool_(), nullable=False),
            pa.field("goes_on", pa.bool_(), nullable=False),
        ]
    ),
    "document_pieces",
    1,
)
"""One row is a document part: a document, or the text of one between two certain cuts.

The pre-tokens of a document are those of its parts, each taken as a document, in order.

- `text`: the bytes, as in the input (JSON strings: unescaped, UTF-8; CSV fields: without quotes);
  any bytes may occur.
- `document_id`: from the id field; otherwise `FILE_INDEX:PLACE` of the document's start. The place
  is a byte offset in the uncompressed file; in Parquet and Arrow files it is the row's number. Both
  count from 0.
- `source`: the file, as a path below the folder that all inputs share.
- `byte_start`: where the document part starts in the uncompressed file. In JSON lines and CSV:
  where its row starts. In Parquet and Arrow: the number of its row, from 0.
- `part`: number of the range (a multiple of `range_bytes`, from the document's start) that the
  document part belongs to. It never falls from one row to the next. It may skip numbers, and it may
  repeat one if text without certain cuts had to be divided.
- `is_first`, `is_last`: whether the document starts or ends here; either counts documents.
- `goes_on`: whether the row ends inside a pre-token, so that it has pre-tokens only together with
  the next row of the same unit. Readers make such rows only if
  `bpe.pretokenizing.cut_points.CutFinder.streams` allows it. The last row of such a series may be
  empty.

Rows are in the order of files and offsets.
"""
