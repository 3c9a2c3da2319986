"""Reads files of many documents that are ranges of plain text: lines, or a separator's work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.compression.byte_streams import READ_BYTES, ByteStream, open_stream
from pipelines.corpus.cut_documents import cut_pieces
from pipelines.corpus.document_batches import batch_of_piece, batch_of_rows, slices
from pipelines.corpus.listing.inputs import InputFile, is_local
from pipelines.corpus.plan import FileRange
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import RAW_BYTES_KEPT, Rejects
from pipelines.corpus.row_blocks import LongRow, RowBlock, first_match_position, rows
from pipelines.corpus.text.read_text import BOM

__all__ = ["read_lines", "read_separated", "reject_long_row", "row_number", "rows_of_range"]


def read_lines(
    stream: ByteStream,
    range_: FileRange,
    options: ReadOptions,
    finder: CutFinder,  # noqa: ARG001  all readers take the same
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    r"""Documents of a file with one a line; lines end at `\n` or `\r\n` and nothing else.

    Args:
        stream: the open file, at its start.
        range_: lines that start in it are read.
        options: the longest line.
        finder: not used; lines are never cut.
        rejects: takes lines that are too long.
    """
    for found in rows_of_range(stream, range_, b"\n", options.max_row_bytes):
        if isinstance(found, LongRow):
            reject_long_row(range_.file, found, options, rejects)
        else:
            _count_bom(found, rejects)
            ends = _without_carriage_returns(found)
            text = slices(found.data, found.starts, ends)
            yield batch_of_rows(range_.file, text, found.base + found.starts)


def read_separated(
    stream: ByteStream,
    range_: FileRange,
    options: ReadOptions,
    finder: CutFinder,
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    """Documents of a text file in which a separator ends each; long ones come in pieces.

    Args:
        stream: the open file, at its start.
        range_: documents that start in it are read.
        options: the separator, and the distance of marks in long documents.
        finder: where long documents may be cut.
        rejects: takes documents that are too long and may not be cut.

    Raises:
        SettingsError: a range that cannot be divided is too long.
    """
    separator = options.document_separator or b"\n"
    may_cut = finder.can_cut or finder.streams
    limit = 2 * options.range_bytes if may_cut else options.max_row_bytes
    for found in rows_of_range(stream, range_, separator, limit):
        if isinstance(found, RowBlock):
            _count_bom(found, rejects)
            text = slices(found.data, found.starts, found.ends)
            yield batch_of_rows(range_.file, text, found.base + found.starts)
        elif may_cut:
            yield from _long_document(range_.file, found, options, finder, rejects)
        else:
            reject_long_row(range_.file, found, options, rejects)


def rows_of_range(
    stream: ByteStream, range_: FileRange, terminator: bytes, limit: int
) -> Iterator[RowBlock | LongRow]:
    """The rows that start in a range of an open file; see `row_blocks.rows`."""
    if range_.start:

        def read_at(position: int, size: int) -> bytes:
            stream.seek(position)
            return stream.read(size)

        before = max(0, range_.start - len(terminator))
        stream.seek(first_match_position(read_at, terminator, before))
    ends = [end for end in (range_.end, range_.file.stop) if end is not None]
    return rows(stream, terminator, start=range_.start, end=min(ends, default=None), limit=limit)


def reject_long_row(file: InputFile, row: LongRow, options: ReadOptions, rejects: Rejects) -> None:
    """Read over a row that is longer than the limit, and set it aside."""
    raw = b""
    size = 0
    for chunk in row.chunks:
        raw += chunk[: RAW_BYTES_KEPT - len(raw)]
        size += len(chunk)
        if options.on_bad_record == "fail":
            break
    at_least = "at least " if options.on_bad_record == "fail" else ""
    rejects.bad_record(
        file,
        reason="too_long",
        message=f"the row has {at_least}{size} bytes, over --max-row-bytes="
        f"{options.max_row_bytes}; raise the limit",
        byte_offset=row.start,
        row=row_number(file, row.number, row.start, options),
        raw=raw,
        raw_bytes=size,
    )


def row_number(
    file: InputFile, number: int | None, position: int, options: ReadOptions
) -> int | None:
    """Number of the line at a position, from 1.

    Args:
        file: the file.
        number: if known already.
        position: of the line's start, bytes.
        options: line feeds before `position` are counted only for an error that stops the run,
            and only in local files; else an unknown number stays None.
    """
    if number is not None or options.on_bad_record != "fail" or not is_local(file.path):
        return number
    number = 1
    with closing(open_stream(file)) as stream:
        while stream.position < position:
            number += stream.read(min(READ_BYTES, position - stream.position)).count(b"\n")
    return number


def _long_document(
    file: InputFile, row: LongRow, options: ReadOptions, finder: CutFinder, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    chunks = row.chunks
    waiting = b""

    def read(size: int) -> bytes:
        nonlocal waiting
        pieces = [waiting]
        missing = size - len(waiting)
        while missing > 0 and (chunk := next(chunks, None)) is not None:
            pieces.append(chunk)
            missing -= len(chunk)
        data = b"".join(pieces)
        waiting = data[size:]
        return data[:size]

    pieces = cut_pieces(
        read,
        finder,
        name=file.path,
        document_start=row.start,
        start=row.start,
        stop=None,
        range_bytes=options.range_bytes,
        max_bytes=options.max_row_bytes,
    )
    for piece in pieces:
        if piece.start == 0 and piece.text[: len(BOM)] == BOM:
            rejects.accepted["bom"] += 1
        yield batch_of_piece(file, row.start, piece)


def _count_bom(block: RowBlock, rejects: Rejects) -> None:
    """A byte order mark is part of the first line or document."""
    if block.base + block.starts[0] == 0 and block.data[: len(BOM)] == BOM:
        rejects.accepted["bom"] += 1


def _without_carriage_returns(block: RowBlock) -> npt.NDArray[np.int64]:
    r"""Ends of lines, less the `\r` of a `\r\n`."""
    values = np.frombuffer(block.data, np.uint8)
    is_crlf = values[block.ends - 1] == ord("\r")
    is_crlf &= block.ends > block.starts
    if block.last_is_cut:
        is_crlf[-1] = False
    ends: npt.NDArray[np.int64] = block.ends - is_crlf
    return ends
