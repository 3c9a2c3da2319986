"""Asks the first file of each kind for its columns, before any work starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.arrow.read_arrow import arrow_columns
from pipelines.corpus.compression.byte_streams import open_stream
from pipelines.corpus.csv.read_csv import csv_header
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.parquet.read_parquet import parquet_columns
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.table_columns import ColumnError
from pipelines.corpus.table_files import open_table_file

__all__ = ["check_columns"]


def check_columns(files: Sequence[InputFile], options: ReadOptions) -> None:
    """Check that text and id are where the options say, in one file of each format with columns.

    A file that cannot be read at all is passed over: what becomes of it is a matter of policy.

    Raises:
        SettingsError: there is no such column, or it holds something else.
    """
    for kind in sorted({file.format for file in files} & _LOOKS.keys()):
        file = next((file for file in files if file.format == kind and file.size), None)
        try:
            if file is not None:
                _LOOKS[kind](file, options)
        except ColumnError as error:
            raise SettingsError(str(error)) from error
        except BadFileError:
            continue


def _look_at_csv(file: InputFile, options: ReadOptions) -> None:
    with closing(open_stream(file)) as stream:
        csv_header(stream, file, options)


def _look_at_parquet(file: InputFile, options: ReadOptions) -> None:
    with open_table_file(file) as native:
        parquet_columns(native, file, options)


def _look_at_arrow(file: InputFile, options: ReadOptions) -> None:
    with open_table_file(file) as native:
        arrow_columns(native, file, options)


_LOOKS = {
    "csv": _look_at_csv,
    "tsv": _look_at_csv,
    "parquet": _look_at_parquet,
    "arrow": _look_at_arrow,
}
