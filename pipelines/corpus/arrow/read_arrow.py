"""Reads Arrow IPC files and streams.

Of a file, a range owns the record batches that start in it; a stream is read as a whole by the
range that starts it. Both kinds occur under each of the usual names, so the content decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from bpe.errors import BadFileError
from pipelines.corpus.arrow.arrow_footer import FOOTER_MAGIC, batch_places, batch_rows
from pipelines.corpus.compression.byte_streams import check_unchanged
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.table_columns import (
    TableColumns,
    TableReading,
    check_rows,
    documents_of_rows,
    find_columns,
)
from pipelines.corpus.table_files import DamagedPartError, damage

__all__ = ["arrow_columns", "check_stream", "read_arrow"]

_FEATHER_1 = b"FEA1"
_CONTINUATION = b"\xff\xff\xff\xff"
_WHAT = "the Arrow data"
_MOST_ROWS = 2**63 - 1


def read_arrow(
    native: Any, range_: FileRange, options: ReadOptions, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Documents of the record batches that a range owns; places are row numbers from 0.

    Args:
        native: the open file, see `pipelines.corpus.table_files`.
        range_: bytes of the file.
        options: the columns, the longest text, and whether damaged record batches are left out.
        rejects: takes rows and record batches that cannot be used.

    Raises:
        BadFileError: this is neither an IPC file nor a stream, or it has not the columns; a
            `DamagedPartError` if a record batch of a file is damaged that is not to be left out.
    """
    file = range_.file
    columns = arrow_columns(native, file, options)
    is_file = _is_file(native, file)
    if is_file:
        leaves_out = options.on_bad_file == "skip"
        batches = _file_batches(native, range_, columns, rejects if leaves_out else None)
    elif range_.start == 0:
        batches = _stream_batches(native, file, columns)
    else:
        return
    how = TableReading(file, columns, options, rejects)
    for first_row, batch in batches:
        # Nobody else reads any of a stream.
        with damage(file, _WHAT, everywhere=not is_file):
            yield from documents_of_rows(batch, first_row, how)
        # Local files are mapped: better to notice a change here than in the middle of a page.
        check_unchanged(file)


def check_stream(native: Any, range_: FileRange, options: ReadOptions) -> None:
    """Read all of a stream and forget it, to know beforehand that it can be read.

    Only for the range that reads it. Of a file, each record batch is looked at by itself.

    Raises:
        BadFileError: it cannot.
    """
    file = range_.file
    if range_.start > 0 or _is_file(native, file):
        return
    columns = arrow_columns(native, file, options)
    for _, batch in _stream_batches(native, file, columns):
        with damage(file, _WHAT, everywhere=True):
            check_rows(batch, columns)


def arrow_columns(native: Any, file: InputFile, options: ReadOptions) -> TableColumns:
    """The columns to be read; errors as for `read_arrow`."""
    with damage(file, "the Arrow schema", everywhere=True):
        native.seek(0)
        is_file = _is_file(native, file)
        reader = pa.ipc.open_file(native) if is_file else pa.ipc.open_stream(native)
        return find_columns(reader.schema, options, file.path)


def _is_file(native: Any, file: InputFile) -> bool:
    """Whether this is an IPC file, not a stream; the position is 0 afterwards."""
    native.seek(0)
    start = native.read(len(FOOTER_MAGIC))
    native.seek(0)
    if start.startswith(_FEATHER_1):
        raise BadFileError(
            f"{file.path}: Feather files of version 1 are not read; write it again as version 2, "
            f"which is Arrow IPC"
        )
    return bool(start == FOOTER_MAGIC)


def _file_batches(
    native: Any, range_: FileRange, columns: TableColumns, rejects: Rejects | None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches that a range owns, each with the number of its first row, from 0.

    Args:
        native: the open file.
        range_: bytes of the file.
        columns: to read.
        rejects: takes damaged batches; None to stop at the first.
    """
    file = range_.file

    def read_at(position: int, size: int) -> bytes:
        native.seek(position)
        data: bytes = native.read(size)
        return data

    with damage(file, "the Arrow footer", everywhere=True):
        places = batch_places(read_at, file.size)
        # Of all batches, whoever owns them: all ranges shall number rows alike, or none.
        rows = [batch_rows(read_at, place) for place in places]
        if sum(rows) > _MOST_ROWS:
            raise ValueError(f"the record batches have {sum(rows)} rows")
        reader = _open_file(native, columns)
        if reader.num_record_batches != len(places):
            raise ValueError(f"{reader.num_record_batches} batches, and {len(places)} places")
    end = file.size if range_.end is None else range_.end
    starts = itertools.accumulate(rows, initial=0)
    for index, (place, first_row) in enumerate(zip(places, starts, strict=False)):
        if file.stop is not None and first_row >= file.stop:
            return
        if not range_.start <= place.start < end:
            continue
        try:
            with damage(file, f"record batch {index}"):
                batch = reader.get_batch(index)
                if batch.num_rows != rows[index]:
                    raise ValueError(f"{batch.num_rows} rows, and {rows[index]} by its metadata")
                if rejects is not None:
                    check_rows(batch, columns)
        except DamagedPartError as error:
            if rejects is None:
                raise
            rejects.bad_part(file, error, first_row=first_row, rows=rows[index])
            # What becomes of the next batch shall not depend on this one.
            reader = _open_file(native, columns)
        else:
            yield first_row, batch


def _stream_batches(
    native: Any, file: InputFile, columns: TableColumns
) -> Iterator[tuple[int, pa.RecordBatch]]:
    with damage(file, "the Arrow schema", everywhere=True):
        native.seek(0)
        schema = pa.ipc.open_stream(native).schema
        native.seek(0)
        reader = pa.ipc.open_stream(native, options=_only(schema, columns))
    first_row = 0
    while file.stop is None or first_row < file.stop:
        with damage(file, "the Arrow stream", everywhere=True):
            batch = next(reader, None)
        if batch is None:
            _check_end(native, file)
            return
        yield first_row, batch
        first_row += batch.num_rows


def _open_file(native: Any, columns: TableColumns) -> pa.ipc.RecordBatchFileReader:
    native.seek(0)
    schema = pa.ipc.open_file(native).schema
    return pa.ipc.open_file(native, options=_only(schema, columns))


def _only(schema: pa.Schema, columns: TableColumns) -> pa.ipc.IpcReadOptions:
    wanted = [schema.get_field_index(name) for name in columns.roots]
    return pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)


def _check_end(native: Any, file: InputFile) -> None:
    """Check that a stream ends with its mark, and the file with the stream.

    The format lets a stream end without; but then a stream that was cut between two batches would
    be taken for a whole one.
    """
    with damage(file, "the end of the Arrow stream", everywhere=True):
        end = native.tell()
        native.seek(0)
        is_old = native.read(4) != _CONTINUATION
        mark = bytes(4) if is_old else _CONTINUATION + bytes(4)
        native.seek(max(0, end - len(mark)))
        has_mark = native.read(len(mark)) == mark
    if not has_mark:
        raise BadFileError(
            f"{file.path}: the Arrow stream is truncated: it ends at byte {end} without the mark "
            f"of its end; make or copy the file again"
        )
    if end < file.size:
        raise BadFileError(
            f"{file.path}: the Arrow stream is followed by something else, from byte {end} on; "
            f"make or copy the file again"
        )
