"""Asks the first file of each kind for its columns, before any work starts."""

from __future__ import annotations

from collections.abc import Sequence

from bpe.errors import BadFileError, SettingsError
from pipelines.inputs import InputFile
from pipelines.read_arrow import arrow_columns
from pipelines.read_options import ReadOptions
from pipelines.read_parquet import parquet_columns
from pipelines.table_columns import ColumnError
from pipelines.table_files import open_table_file

__all__ = ["check_columns"]


def check_columns(files: Sequence[InputFile], options: ReadOptions) -> None:
    """Check that text and id are where the options say, in one file of each format with columns.

    A file that cannot be read at all is passed over: what becomes of it is a matter of policy.

    Raises:
        SettingsError: there is no such column, or it holds something else.
    """
    for kind, look in (("parquet", parquet_columns), ("arrow", arrow_columns)):
        file = next((file for file in files if file.format == kind and file.size), None)
        if file is None:
            continue
        try:
            with open_table_file(file) as native:
                look(native, file, options)
        except ColumnError as error:
            raise SettingsError(str(error)) from error
        except BadFileError:
            continue
