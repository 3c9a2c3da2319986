"""Reads text files that are one document each, in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.compression.byte_streams import ByteStream
from pipelines.corpus.cut_documents import cut_pieces
from pipelines.corpus.document_batches import batch_of_piece
from pipelines.corpus.plan import FileRange
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects

__all__ = ["BOM", "read_text"]

BOM = b"\xef\xbb\xbf"


def read_text(
    stream: ByteStream,
    range_: FileRange,
    options: ReadOptions,
    finder: CutFinder,
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    """The pieces of a range of a file that is one document; a BOM is part of its text.

    Args:
        stream: the open file, at its start.
        range_: which part of it.
        options: distance of the marks, and the longest range to hold in memory.
        finder: where the document may be cut.
        rejects: counts byte order marks.

    Raises:
        BadFileError: the document may not be cut and is too long.
        SettingsError: a range that cannot be divided is too long.
    """
    if range_.start:
        stream.seek(range_.start)
    stops_before_end = range_.end is not None and range_.end < range_.file.size
    pieces = cut_pieces(
        partial(stream.read_behind, b""),
        finder,
        name=range_.file.path,
        document_start=0,
        start=range_.start,
        stop=range_.end if stops_before_end else None,
        range_bytes=options.range_bytes,
        max_bytes=options.max_row_bytes,
    )
    for piece in pieces:
        if piece.start == 0 and piece.text[: len(BOM)] == BOM:
            rejects.accepted["bom"] += 1
        yield batch_of_piece(range_.file, 0, piece)
