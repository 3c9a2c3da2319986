"""Reads Parquet files: a range of the file owns the row groups that start in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.parquet.parquet_batches import BatchSizes, open_parquet
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

__all__ = ["parquet_columns", "read_parquet"]

# Rows that were read few at a time are put together until they make so much text.
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16


def read_parquet(
    native: Any, range_: FileRange, options: ReadOptions, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Documents of the row groups that start in a range; places are row numbers from 0.

    Args:
        native: the open file, see `pipelines.corpus.table_files`.
        range_: bytes of the file.
        options: the columns, the longest text, and whether damaged row groups are left out.
        rejects: takes rows and row groups that cannot be used.

    Raises:
        BadFileError: this is no Parquet file, or it has not the columns; a `DamagedPartError` if
            a row group is damaged that is not to be left out.
    """
    file = range_.file
    parquet = _open(native, file)
    columns = find_columns(parquet.schema_arrow, options, file.path)
    how = TableReading(file, columns, options, rejects)
    sizes = BatchSizes(native, parquet, columns)
    end = file.size if range_.end is None else range_.end
    first_row = 0
    for group, (start, rows) in enumerate(_groups(parquet, file)):
        if file.stop is not None and first_row >= file.stop:
            return
        if range_.start <= start < end and not (
            options.on_bad_file == "skip" and _is_left_out(parquet, group, sizes, first_row, how)
        ):
            row = first_row
            for batch in _batches(parquet, group, columns, sizes, file):
                with damage(file, _name(group)):
                    yield from documents_of_rows(batch, row, how)
                row += batch.num_rows
        first_row += rows


def _groups(parquet: Any, file: InputFile) -> list[tuple[int, int]]:
    """Where each row group starts, and how many rows it has: the same for all ranges of a file."""
    with damage(file, "the Parquet footer", everywhere=True):
        groups = [
            parquet.metadata.row_group(group) for group in range(parquet.metadata.num_row_groups)
        ]
        rows = [int(group.num_rows) for group in groups]
        if min(rows, default=0) < 0 or sum(rows) != parquet.metadata.num_rows:
            raise ValueError(
                f"it has row groups of {sum(rows)} rows, and says {parquet.metadata.num_rows}"
            )
        return list(zip([_start(group, file) for group in groups], rows, strict=True))


def _is_left_out(
    parquet: Any, group: int, sizes: BatchSizes, first_row: int, how: TableReading
) -> bool:
    """Read a row group and forget it, to know before any of it is used that all of it can be.

    If it cannot, it is set aside. One range owns it, and the footer says how many rows it has, so
    that neither depends on how the file is cut.
    """
    try:
        for batch in _batches(parquet, group, how.columns, sizes, how.file):
            with damage(how.file, _name(group)):
                check_rows(batch, how.columns)
    except DamagedPartError as error:
        rows = parquet.metadata.row_group(group).num_rows
        how.rejects.bad_part(how.file, error, first_row=first_row, rows=rows)
        return True
    return False


def _name(group: int) -> str:
    return f"row group {group}"


def parquet_columns(native: Any, file: InputFile, options: ReadOptions) -> TableColumns:
    """The columns to be read; errors as for `read_parquet`."""
    return find_columns(_open(native, file).schema_arrow, options, file.path)


def _open(native: Any, file: InputFile) -> Any:
    with damage(file, "the Parquet footer", everywhere=True):
        return open_parquet(native)


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
    parquet: Any, group: int, columns: TableColumns, sizes: BatchSizes, file: InputFile
) -> Iterator[pa.RecordBatch]:
    """Rows of a row group, as many as there should be.

    Raises:
        DamagedPartError: they cannot be read, or are fewer.
    """
    metadata = parquet.metadata.row_group(group)
    what = _name(group)
    rows = held_rows = held_bytes = 0
    held: list[pa.RecordBatch] = []
    with damage(file, what):
        batches = parquet.iter_batches(
            batch_size=sizes.rows(group),
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
        # A third of the time that the batch takes to add them up.
        held_bytes += sum(column.nbytes for column in batch.columns)
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
