"""Reads Parquet files: a range of the file owns the row groups that start in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.inputs import InputFile
from pipelines.plan import FileRange
from pipelines.read_options import ReadOptions
from pipelines.rejects import Rejects
from pipelines.table_columns import TableColumns, check_rows, documents_of_rows, find_columns
from pipelines.table_files import DamagedPartError, damage

__all__ = ["check_parquet", "parquet_columns", "read_parquet"]

# A column is read from storage in pieces of this size, so that no row group is in memory whole.
_BUFFER_BYTES = 1 << 20
# Rows are asked for in numbers that make about so much text.
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16
# Every row may be as long as the whole dictionary; so much text is taken even then. Rows that turn
# out to be shorter are put together again until they make a batch.
_WORST_BATCH_BYTES = 256 << 20


def read_parquet(
    native: Any, range_: FileRange, options: ReadOptions, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Documents of the row groups that start in a range; places are row numbers from 0.

    Args:
        native: the open file, see `pipelines.table_files`.
        range_: bytes of the file.
        options: the columns, and the longest text.
        rejects: takes rows that cannot be used.

    Raises:
        BadFileError: this is no Parquet file, or it has not the columns; a `DamagedPartError` if
            only a part of it is found to be damaged.
    """
    file = range_.file
    parquet = _open(native, file)
    columns = find_columns(parquet.schema_arrow, options, file.path)
    first_row = 0
    for group in range(parquet.metadata.num_row_groups):
        end = range_.file.size if range_.end is None else range_.end
        if range_.start <= _start(parquet.metadata.row_group(group), file) < end:
            for batch in _batches(parquet, group, columns, file):
                with damage(file, f"row group {group}"):
                    yield from documents_of_rows(file, batch, first_row, columns, options, rejects)
                first_row += batch.num_rows
        else:
            first_row += parquet.metadata.row_group(group).num_rows


def check_parquet(native: Any, range_: FileRange, options: ReadOptions) -> None:
    """Read all of a file and forget it, to know beforehand that it can be read.

    Only of a range that no other shares the file with.

    Raises:
        BadFileError: it cannot.
    """
    if not range_.is_whole:
        return
    file = range_.file
    parquet = _open(native, file)
    columns = find_columns(parquet.schema_arrow, options, file.path)
    for group in range(parquet.metadata.num_row_groups):
        for batch in _batches(parquet, group, columns, file):
            with damage(file, f"row group {group}"):
                check_rows(batch, columns)


def parquet_columns(native: Any, file: InputFile, options: ReadOptions) -> TableColumns:
    """The columns to be read; errors as for `read_parquet`."""
    return find_columns(_open(native, file).schema_arrow, options, file.path)


def _open(native: Any, file: InputFile) -> Any:
    with damage(file, "the Parquet footer", everywhere=True):
        return pq.ParquetFile(
            native,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )


def _start(group: Any, file: InputFile) -> int:
    """Where a row group starts; inside the file whatever the footer says, so that one range has it.

    The group's own `file_offset` is left at 0 by some writers.
    """
    if not group.num_columns:
        return 0
    column = group.column(0)
    start = int(column.data_page_offset)
    if column.has_dictionary_page and column.dictionary_page_offset is not None:
        start = min(start, int(column.dictionary_page_offset))
    return max(0, min(start, file.size - 1))


def _batches(
    parquet: Any, group: int, columns: TableColumns, file: InputFile
) -> Iterator[pa.RecordBatch]:
    """Rows of a row group, as many as there should be.

    Raises:
        DamagedPartError: they cannot be read, or are fewer.
    """
    metadata = parquet.metadata.row_group(group)
    what = f"row group {group}"
    rows = held_rows = held_bytes = 0
    held: list[pa.RecordBatch] = []
    with damage(file, what):
        batches = parquet.iter_batches(
            batch_size=_rows_at_a_time(metadata, columns),
            row_groups=[group],
            columns=columns.leaves,
            use_threads=False,
        )
    while True:
        with damage(file, what):
            batch = next(batches, None)
        if batch is None:
            break
        rows += batch.num_rows
        held.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        if held_rows >= _BATCH_ROWS or held_bytes >= _BATCH_BYTES:
            yield _joined(held)
            held, held_rows, held_bytes = [], 0, 0
    if held:
        yield _joined(held)
    if rows != metadata.num_rows:
        raise DamagedPartError(
            f"{file.path}: {what} has {rows} rows, and {metadata.num_rows} by the file's footer; "
            f"make or copy the file again"
        )


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of all rows."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _rows_at_a_time(group: Any, columns: TableColumns) -> int:
    """So many rows that they make about `_BATCH_BYTES` of text."""
    path = ".".join(columns.text)
    chunks = [group.column(index) for index in range(group.num_columns)]
    for chunk in chunks:
        if chunk.path_in_schema == path and chunk.num_values:
            average = max(1, chunk.total_uncompressed_size // chunk.num_values)
            most = _BATCH_BYTES // average
            if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
                # Values that repeat are stored once, and may be long.
                dictionary = max(1, chunk.data_page_offset - chunk.dictionary_page_offset)
                most = min(most, _WORST_BATCH_BYTES // dictionary)
            return int(max(1, min(most, _BATCH_ROWS)))
    return _BATCH_ROWS
