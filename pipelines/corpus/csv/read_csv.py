"""Reads CSV and TSV: a row of names, then a document a row, with its text in one of the columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import BadFileError
from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.compression.byte_streams import ByteStream
from pipelines.corpus.csv.csv_fields import FieldError, fields_of_row, find_fields, row_ends
from pipelines.corpus.csv.csv_rows import csv_rows
from pipelines.corpus.document_batches import batch_of_rows, is_utf8, slices
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.row_blocks import LongRow, RowBlock
from pipelines.corpus.table_columns import ColumnError
from pipelines.corpus.text.read_rows import reject_long_row
from pipelines.corpus.text.read_text import BOM

__all__ = ["csv_header", "read_csv"]

_DELIMITERS = {"csv": b",", "tsv": b"\t"}
_NAMES_SHOWN = 12

_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Header:
    """What the first row says.

    Attributes:
        width: number of columns.
        columns: of the text and, if asked for, the id; from 0.
    """

    width: int
    columns: list[int]


def read_csv(
    stream: ByteStream,
    range_: FileRange,
    options: ReadOptions,
    finder: CutFinder,  # noqa: ARG001  all readers take the same
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    r"""Documents of a CSV or TSV file; rows end at `\n` or `\r\n` outside of quotes.

    Blank lines are counted and passed over, and so is a byte order mark. Where a file has one
    column only, a document without text is written `""`.

    Args:
        stream: the open file, at its start.
        range_: the file, all of it.
        options: the columns, and the longest row.
        finder: not used; rows are never cut.
        rejects: takes rows that are too long or cannot be used.

    Raises:
        BadFileError: the first row is no row of names, or does not have those asked for.
    """
    file = range_.file
    header: _Header | None = None
    for found in csv_rows(stream, _DELIMITERS[file.format], options.max_row_bytes, file.stop):
        if header is None and not _starts_with_names(found, rejects):
            continue
        if isinstance(found, LongRow):
            if header is None:
                raise _bad_header(
                    file, f"it is longer than --max-row-bytes={options.max_row_bytes}"
                )
            reject_long_row(file, found, options, rejects)
            continue
        kept = _filled_rows(found)
        rejects.accepted["blank_line"] += len(found.starts) - len(kept)
        if header is None:
            header = _read_header(_rows(found, kept[:1]), file, options)
            kept = kept[1:]
        if len(kept):
            yield _documents(found, kept, header, file, rejects)


def csv_header(stream: ByteStream, file: InputFile, options: ReadOptions) -> None:
    """Check the row of names; errors as for `read_csv`."""
    for found in csv_rows(stream, _DELIMITERS[file.format], options.max_row_bytes):
        if isinstance(found, RowBlock) and len(kept := _filled_rows(found)):
            _read_header(_rows(found, kept[:1]), file, options)
            return


def _starts_with_names(found: RowBlock | LongRow, rejects: Rejects) -> bool:
    """Whether rows from before the row of names is known hold it; blank ones do not."""
    if isinstance(found, LongRow):
        return True
    if found.base == 0 and found.data[: len(BOM)] == BOM:
        rejects.accepted["bom"] += 1
    if len(_filled_rows(found)):
        return True
    rejects.accepted["blank_line"] += len(found.starts)
    return False


def _filled_rows(block: RowBlock) -> _Positions:
    """Indices of the rows that are not blank."""
    filled: _Positions = np.flatnonzero(row_ends(block) > block.starts)
    return filled


def _rows(block: RowBlock, kept: _Positions) -> RowBlock:
    """Some rows of a block, with the last if that is cut; numbers are those of the block."""
    return replace(block, starts=block.starts[kept], ends=block.ends[kept])


def _read_header(block: RowBlock, file: InputFile, options: ReadOptions) -> _Header:
    raw = bytes(block.data[int(block.starts[0]) : int(row_ends(block)[0])])
    try:
        names = [name.decode("utf-8") for name in fields_of_row(raw, _DELIMITERS[file.format])]
    except (FieldError, UnicodeDecodeError) as error:
        raise _bad_header(file, str(error)) from error
    # A file of such line ends would be its row of names and nothing else.
    if b"\r" in raw.strip() and b'"' not in raw:
        raise _bad_header(file, "its lines end with \\r alone; convert them to end with \\n")
    wanted = {"text": options.text_field}
    if options.id_field is not None:
        wanted["id"] = options.id_field
    for use, name in wanted.items():
        count = names.count(name)
        if count != 1:
            found = f"{count} columns are called" if count else "no column"
            shown = ", ".join(map(repr, names[:_NAMES_SHOWN]))
            more = ", …" if len(names) > _NAMES_SHOWN else ""
            raise ColumnError(
                f"{file.path}: {found} {name!r}; there are: {shown}{more}; "
                f"name the {use} column with --{use}-field"
            )
    return _Header(len(names), [names.index(name) for name in wanted.values()])


def _bad_header(file: InputFile, why: str) -> BadFileError:
    return BadFileError(
        f"{file.path}: the first row cannot be read as a row of column names: {why}; give the file "
        f"such a row, or the name of its format"
    )


def _documents(
    whole: RowBlock,
    kept: _Positions,
    header: _Header,
    file: InputFile,
    rejects: Rejects,
) -> pa.RecordBatch:
    """Documents of a block's rows; bad rows go to `rejects`.

    Args:
        whole: the block.
        kept: indices of its rows that are not blank, nor names.
        header: what the first row of the file says.
        file: that is being read.
        rejects: takes bad rows.
    """
    block = _rows(whole, kept)
    fields, errors = find_fields(block, header.columns, header.width, _DELIMITERS[file.format])
    errors |= _invalid_rows(block)
    for row in sorted(errors):
        raw = bytes(block.data[int(block.starts[row]) : int(block.ends[row])])
        is_cut = block.last_is_cut and row == len(block.starts) - 1
        reason, message = _describe(errors[row], is_cut=is_cut)
        rejects.bad_record(
            file,
            reason=reason,
            message=message,
            byte_offset=block.base + int(block.starts[row]),
            row=None if whole.number is None else whole.number + int(kept[row]),
            raw=raw,
        )
    good = np.delete(np.arange(len(kept)), sorted(errors))
    columns = [slices(each.data, each.starts[good], each.ends[good]) for each in fields]
    ids = columns[1].cast(pa.string()) if len(columns) > 1 else None
    return batch_of_rows(file, columns[0], block.base + block.starts[good], ids)


def _invalid_rows(block: RowBlock) -> dict[int, FieldError]:
    """The rows that are not UTF-8, by index."""
    view = block.data
    if is_utf8(view[int(block.starts[0]) : int(block.ends[-1])]):
        return {}
    errors = {}
    for row, (start, end) in enumerate(zip(block.starts, block.ends, strict=True)):
        try:
            str(view[start:end], "utf-8")
        except UnicodeDecodeError as error:
            message = f"invalid UTF-8 at byte {error.start} of the row; mend the file"
            errors[row] = FieldError("invalid_utf8", message)
    return errors


def _describe(error: FieldError, *, is_cut: bool) -> tuple[str, str]:
    """Reason and message of a bad row."""
    if is_cut and error.reason == "wrong_columns":
        return "row_cut", f"the file ends inside this row: {error}; or copy the file again"
    return error.reason, str(error)
