"""How many rows of a Parquet file are read at a time, so that a batch takes bounded memory.

Batches are counted in rows, and rows may be of any length. Where values stand in pages as they are,
an average tells enough; but what a dictionary holds once may stand in every row, and a batch of
such rows is many times what the file says it unpacks to. So the longest text of a dictionary is
looked up before rows are asked for.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.table_columns import TableColumns, column_at

__all__ = ["BatchSizes", "open_parquet"]

# A column is read from storage in pieces of this size, so that no row group is in memory whole.
_BUFFER_BYTES = 1 << 20
# Rows are asked for in numbers that make about so much text.
_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16
# So much text is taken even where every row is as long as the longest can be.
_WORST_BATCH_BYTES = 256 << 20
# Writers divide columns into pages of about this size.
_PAGE_BYTES = 1 << 20
# Null texts that are passed over in search of the dictionary.
_NULLS_PASSED = 1000


def open_parquet(native: Any, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file for reading piece by piece, its pages' checksums compared.

    Args:
        native: the open file, see `pipelines.table_files`.
        options: further ones of `pyarrow.parquet.ParquetFile`.
    """
    return pq.ParquetFile(
        native,
        buffer_size=_BUFFER_BYTES,
        pre_buffer=False,
        page_checksum_verification=True,
        **options,
    )


class BatchSizes:
    """Finds the number of rows to read at a time.

    Args:
        native: the open file, see `pipelines.table_files`.
        metadata: of the file.
        schema: of the file, as Arrow's.
        columns: that are read.
    """

    def __init__(
        self, native: Any, metadata: pq.FileMetaData, schema: pa.Schema, columns: TableColumns
    ) -> None:
        self._native = native
        self._metadata = metadata
        self._paths = dict(zip(columns.leaves, columns.paths, strict=True))
        # Columns that are dictionaries for Arrow, too, stay so when they are read.
        self._coded = {
            leaf
            for leaf, path in self._paths.items()
            if pa.types.is_dictionary(schema.field(path[0]).type)
        }

    def rows(self, group: int) -> int:
        """How many rows of a row group to read at a time, at least 1.

        Raises:
            pa.ArrowException, OSError: the column's first pages are damaged or cannot be read.
        """
        most = _BATCH_ROWS
        row_group = self._metadata.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            leaf = chunk.path_in_schema
            if leaf in self._paths and chunk.physical_type == "BYTE_ARRAY" and chunk.num_values:
                average = max(1, chunk.total_uncompressed_size // chunk.num_values)
                most = min(most, _BATCH_BYTES // average)
                if longest := self._longest(group, chunk, most):
                    most = min(most, _WORST_BATCH_BYTES // longest)
        return max(1, most)

    def _longest(self, group: int, chunk: Any, rows: int) -> int:
        """Bytes that a value which is stored once, for many rows, may have; 0 for none such."""
        whole = int(chunk.total_uncompressed_size)
        if chunk.path_in_schema in self._coded or rows * whole <= _WORST_BATCH_BYTES:
            return 0
        longest = 0
        if "DELTA_BYTE_ARRAY" in chunk.encodings:
            # A value stands for what it has in common with the one before, within a page.
            longest = min(whole, _PAGE_BYTES)
        if chunk.has_dictionary_page:
            longest = max(longest, self._longest_in_dictionary(group, chunk) or whole)
        return longest

    def _longest_in_dictionary(self, group: int, chunk: Any) -> int | None:
        """Length of a dictionary's longest value in bytes; None if it cannot be told."""
        leaf = chunk.path_in_schema
        coded = open_parquet(self._native, metadata=self._metadata, read_dictionary=[leaf])
        batches = coded.iter_batches(
            batch_size=1, row_groups=[group], columns=[leaf], use_threads=False
        )
        for batch in islice(batches, _NULLS_PASSED):
            values = column_at(batch, self._paths[leaf]).dictionary
            if len(values) > 1:
                return int(pc.max(pc.binary_length(values)).as_py())
            if len(values) == 1:
                # A dictionary of one value, or a first page without one, where another may follow.
                return None
        return None
