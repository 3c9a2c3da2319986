"""Documents as the readers hand them on: whole, or in pieces that stand for themselves."""

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
"""One row is a document, or a stretch of one between two certain cuts of the scheme in use.

The pre-tokens of a document are those of its pieces, each taken as a document, in order.

- `text`: the bytes, as in the input (JSON strings: unescaped, UTF-8; CSV fields: without quotes);
  any bytes may occur.
- `document_id`: from the id field, else `FILE_INDEX:PLACE` of the document's start. The place is a
  byte offset in the uncompressed file or, in Parquet and Arrow files, which have no such thing,
  the row's number in the file; both count from 0.
- `source`: the file, as a path below the folder that all inputs share.
- `byte_start`: where the piece starts in the uncompressed file; for JSON lines and CSV, where its
  row does; for Parquet and Arrow, the number of its row in the file, from 0.
- `part`: of a document in pieces, the number of the range (a multiple of `range_bytes`, from the
  document's start) that the piece belongs to. It never falls from one piece to the next, but may
  skip and, where a stretch without certain cuts had to be divided, repeat.
- `is_first`, `is_last`: whether the document starts or ends here; documents are counted by either.
- `goes_on`: whether the piece does not stand for itself, but only together with the next row, which
  follows in the same unit: its end is none of a pre-token. Readers make such pieces only where they
  are allowed to (`bpe.pretokenizing.cut_points.CutFinder.streams`). The last row of such a series
  may be empty.

Rows are in the order of files and offsets.
"""
