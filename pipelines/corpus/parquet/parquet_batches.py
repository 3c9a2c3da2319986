"""How many rows of a Parquet file are read at a time, so that a batch takes bounded memory.

Batches are counted in rows, and rows may be of any length. Where values stand in pages as they are,
an average tells enough; but what a dictionary holds once may stand in every row, and a batch of
such rows is many times what the file says it unpacks to. So the size of the dictionary, or the
longest text in it, is looked up before rows are asked for.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.parquet.parquet_dictionaries import find_dictionary
from pipelines.corpus.table_columns import TableColumns

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


def open_parquet(native: Any, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file for reading piece by piece, its pages' checksums compared.

    Args:
        native: the open file, see `pipelines.corpus.table_files`.
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
        native: the open file, see `pipelines.corpus.table_files`.
        parquet: the same, opened by pyarrow.
        columns: that are read.
    """

    def __init__(self, native: Any, parquet: pq.ParquetFile, columns: TableColumns) -> None:
        self._native = native
        self._metadata = parquet.metadata
        # By the schema: there may be thousands of columns.
        schema, leaves = parquet.schema, columns.leaves
        self._places = [
            place for place in range(len(schema)) if schema.column(place).path in leaves
        ]
        # Columns that are dictionaries for Arrow, too, stay so when they are read.
        self._coded = {
            leaf
            for leaf, path in zip(columns.leaves, columns.paths, strict=True)
            if pa.types.is_dictionary(parquet.schema_arrow.field(path[0]).type)
        }

    def rows(self, group: int) -> int:
        """How many rows of a row group to read at a time, at least 1.

        Raises:
            OSError: the file cannot be read.
        """
        most = _BATCH_ROWS
        row_group = self._metadata.row_group(group)
        for chunk in map(row_group.column, self._places):
            if chunk.physical_type == "BYTE_ARRAY" and chunk.num_values:
                average = max(1, chunk.total_uncompressed_size // chunk.num_values)
                most = min(most, _BATCH_BYTES // average)
                if longest := self._longest(chunk, most):
                    most = min(most, _WORST_BATCH_BYTES // longest)
        return max(1, most)

    def _longest(self, chunk: Any, rows: int) -> int:
        """Most bytes of a value which is stored once, for many rows; 0 where there is none such."""
        whole = int(chunk.total_uncompressed_size)
        if chunk.path_in_schema in self._coded or rows * whole <= _WORST_BATCH_BYTES:
            return 0
        longest = 0
        if "DELTA_BYTE_ARRAY" in chunk.encodings:
            # A value stands for what it has in common with the one before, within a page.
            longest = min(whole, _PAGE_BYTES)
        if chunk.has_dictionary_page:
            longest = max(longest, self._longest_in_dictionary(chunk, rows, whole))
        return longest

    def _longest_in_dictionary(self, chunk: Any, rows: int, whole: int) -> int:
        """The same of a dictionary: the size of all its values, or what is found among them."""
        page = find_dictionary(self._native, chunk)
        if page is None:
            return whole
        if rows * page.size <= _WORST_BATCH_BYTES:
            return page.size
        return page.longest() or page.size
