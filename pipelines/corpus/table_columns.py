"""Documents from columns: the text's and the id's column of an Arrow batch, without a Python row.

Text stays where Arrow put it; only offsets are widened. Rows are looked at one by one only where
something is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BadFileError
from pipelines.corpus.document_batches import batch_of_rows, is_utf8
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.read_options import NULL_TEXT, ReadOptions
from pipelines.corpus.rejects import RAW_BYTES_KEPT, Rejects
from pipelines.storage.wording import counted

__all__ = [
    "ColumnError",
    "TableColumns",
    "TableReading",
    "check_rows",
    "column_at",
    "documents_of_rows",
    "find_columns",
]

# Rows are handed on together until they hold so many bytes of text.
_RUN_BYTES = 4 << 20
_RUN_ROWS = 1 << 16
_COLUMNS_NAMED = 12


class ColumnError(BadFileError):
    """A file has no such column, or one of another type.

    The type stays inside the process; a worker hands on a `BadFileError`.
    """


@dataclass(frozen=True)
class TableColumns:
    """Where a table has its documents.

    Attributes:
        text: names from the column to the field inside it, the text's.
        id: the same of the document's id; None if documents are named by their place.
    """

    text: tuple[str, ...]
    id: tuple[str, ...] | None

    @property
    def paths(self) -> list[tuple[str, ...]]:
        """Names on the way to each field, each field once."""
        return list(dict.fromkeys((self.text, self.id or self.text)))

    @property
    def leaves(self) -> list[str]:
        """The fields as dotted paths, in the order of `paths`."""
        return [".".join(path) for path in self.paths]

    @property
    def roots(self) -> list[str]:
        """Names of the columns that they lie in, each once."""
        return list(dict.fromkeys((self.text[0], (self.id or self.text)[0])))


def find_columns(schema: pa.Schema, options: ReadOptions, name: str) -> TableColumns:
    """Find the fields of the options in a table's schema.

    A column whose name has dots in it goes before a field inside a column.

    Args:
        schema: of the table.
        options: `text_field` and `id_field`.
        name: of the file, for messages.

    Raises:
        ColumnError: there is no such field, there are several, or it holds something else.
    """
    text, kind = _find(schema, options.text_field, "text", name)
    if not _is_text(kind):
        raise ColumnError(
            f"{name}: column {options.text_field!r} is of type {kind}, not text or bytes; "
            f"name the text column with --text-field"
        )
    if options.id_field is None:
        return TableColumns(text, None)
    id_, kind = _find(schema, options.id_field, "id", name)
    if not (_is_text(kind) or pa.types.is_integer(_value_type(kind))):
        raise ColumnError(
            f"{name}: column {options.id_field!r} is of type {kind}, neither text nor integer; "
            f"name the id column with --id-field"
        )
    return TableColumns(text, id_)


def _find(schema: pa.Schema, path: str, use: str, name: str) -> tuple[tuple[str, ...], pa.DataType]:
    """The names on the way to a field, and its type."""
    steps = (path,) if path in schema.names else tuple(path.split("."))
    fields = list(schema)
    kind: pa.DataType | None = None
    for depth, step in enumerate(steps):
        found = [field.type for field in fields if field.name == step]
        if len(found) != 1:
            place = f" in {'.'.join(steps[:depth])!r}" if depth else ""
            count = f"{len(found)} columns are called" if found else "no column"
            there = (
                f"it is of type {kind}" if depth and not fields else f"there are: {_names(fields)}"
            )
            raise ColumnError(
                f"{name}: {count} {step!r}{place}; {there}; "
                f"name the {use} column with --{use}-field"
            )
        kind = found[0]
        is_struct = pa.types.is_struct(kind)
        fields = [kind.field(index) for index in range(kind.num_fields)] if is_struct else []
    return steps, kind


def _names(fields: list[Any]) -> str:
    names = [repr(field.name) for field in fields[:_COLUMNS_NAMED]]
    return ", ".join([*names, "…"] if len(fields) > _COLUMNS_NAMED else names) or "none"


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column's values are bytes; one without any value may be anything."""
    value = _value_type(kind)
    return any(
        is_kind(value)
        for is_kind in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
            pa.types.is_null,
        )
    )


@dataclass(frozen=True)
class TableReading:
    """How the rows of a file become documents.

    Attributes:
        file: that they are of.
        columns: of text and id.
        options: the longest text.
        rejects: takes rows whose text or id is null, whose text is too long, or whose id is not
            UTF-8.
    """

    file: InputFile
    columns: TableColumns
    options: ReadOptions
    rejects: Rejects


def documents_of_rows(
    batch: pa.RecordBatch, first_row: int, how: TableReading
) -> Iterator[pa.RecordBatch]:
    """The documents of some rows, as `schemas.documents.DOCUMENT_PIECES`.

    Args:
        batch: the rows, with at least the columns asked for.
        first_row: number of the first row in the file, from 0.
        how: to read them.

    Yields:
        About 4 MiB of text at a time; more only where a row has more.

    Raises:
        pa.ArrowException: offsets or lengths of a column are damaged.
    """
    if how.file.stop is not None:
        batch = batch.slice(0, max(0, how.file.stop - first_row))
    text = _checked(column_at(batch, how.columns.text))
    ids = None if how.columns.id is None else _checked(column_at(batch, how.columns.id))
    lengths = _byte_lengths(text)
    for start, stop in _runs(lengths):
        part = text.slice(start, stop - start)
        part_ids = None if ids is None else ids.slice(start, stop - start)
        yield _documents(part, part_ids, lengths[start:stop], first_row + start, how)


def check_rows(batch: pa.RecordBatch, columns: TableColumns) -> None:
    """Check some rows for damage that `documents_of_rows` would meet; its errors."""
    for path in (columns.text, columns.id):
        if path is not None:
            _check_layout(column_at(batch, path))


def column_at(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """The column, or field inside one, that a path leads to."""
    column = batch.column(path[0])
    # A field of a null struct is null.
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def _checked(array: pa.Array) -> pa.Array:
    """The same, after a check that no damage shows; see `_check_layout`."""
    _check_layout(array)
    return _flat(array)


def _flat(array: pa.Array) -> pa.Array:
    """Arrays of views, or of values of one size, as arrays with offsets; others as they are."""
    kind = array.type
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return _as_bytes(array).cast(pa.large_binary())
    return array


def _check_layout(array: pa.Array) -> None:
    """Check offsets and indices, which damage may have made point anywhere."""
    if pa.types.is_dictionary(array.type):
        _check_layout(array.dictionary)
        values = _as_bytes(array.dictionary)
        pa.DictionaryArray.from_arrays(array.indices, values, safe=False).validate(full=True)
    else:
        # As bytes: text that is not UTF-8 is no damage.
        _as_bytes(array).validate(full=True)


def _as_bytes(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        return array.view(pa.binary())
    if pa.types.is_large_string(array.type):
        return array.view(pa.large_binary())
    if pa.types.is_string_view(array.type):
        return array.view(pa.binary_view())
    return array


def _byte_lengths(text: pa.Array) -> npt.NDArray[np.int64]:
    """int64, per row; -1 where it is null."""
    if pa.types.is_null(text.type):
        return np.full(len(text), -1, np.int64)
    if pa.types.is_dictionary(text.type):
        of_values = pa.array(_byte_lengths(_flat(text.dictionary)), pa.int64())
        lengths = of_values.take(text.indices)
    else:
        lengths = pc.binary_length(text).cast(pa.int64())
    found: npt.NDArray[np.int64] = lengths.fill_null(-1).to_numpy(zero_copy_only=False)
    return found


def _runs(lengths: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold `_RUN_BYTES` each, or a row more than that."""
    ends = np.cumsum(np.maximum(lengths, 0))
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _RUN_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + _RUN_ROWS)
        yield start, stop
        start = stop


def _documents(
    text: pa.Array,
    ids: pa.Array | None,
    lengths: npt.NDArray[np.int64],
    first_row: int,
    how: TableReading,
) -> pa.RecordBatch:
    """One batch of documents; bad rows go to `how.rejects`."""
    options, rejects = how.options, how.rejects
    if options.nulls == "empty" and (lengths < 0).any():
        rejects.accepted[NULL_TEXT] += int((lengths < 0).sum())
        lengths = np.maximum(lengths, 0)
    bad = _bad_texts(lengths, options)
    names = None
    if ids is not None:
        names, bad_ids = _id_strings(ids, options)
        bad = bad_ids | bad
    positions = np.arange(first_row, first_row + len(text))
    for row in sorted(bad):
        reason, message = bad[row]
        rejects.bad_record(
            how.file,
            reason=reason,
            message=message,
            byte_offset=None,
            row=first_row + row + 1,
            raw=_first_bytes(text[row]),
            raw_bytes=max(0, int(lengths[row])),
        )
    if bad:
        kept = np.delete(np.arange(len(text)), sorted(bad))
        text, positions = text.take(pa.array(kept)), positions[kept]
        names = None if names is None else names.take(pa.array(kept))
    return batch_of_rows(how.file, _large_binary(text), positions, names)


def _bad_texts(lengths: npt.NDArray[np.int64], options: ReadOptions) -> dict[int, tuple[str, str]]:
    """Row to reason and message."""
    limit = options.max_row_bytes
    option = f"--max-row-bytes={limit}"
    wrong = np.flatnonzero((lengths < 0) | (lengths > limit)).tolist()
    return {
        row: (NULL_TEXT, f"column {options.text_field!r} is null")
        if lengths[row] < 0
        else (
            "too_long",
            f"the text has {counted(lengths[row], 'byte')}, over {option}; raise the limit",
        )
        for row in wrong
    }


def _id_strings(
    ids: pa.Array, options: ReadOptions
) -> tuple[pa.StringArray, dict[int, tuple[str, str]]]:
    """Ids as text, and the rows that have none: their reason and message."""
    if pa.types.is_dictionary(ids.type):
        ids = _flat(ids.dictionary).take(ids.indices)
    bad = {}
    if ids.null_count:
        message = f"column {options.id_field!r} is null"
        nulls = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))
        bad = dict.fromkeys(nulls.tolist(), ("null_id", message))
    ids = _as_bytes(ids)
    try:
        return ids.cast(pa.string()), bad
    except pa.ArrowInvalid:
        values = ids.to_pylist()
    for row, value in enumerate(values):
        if value is not None and not is_utf8(value):
            values[row] = b""
            bad[row] = ("id_not_utf8", f"column {options.id_field!r} is not UTF-8: {value!r}")
    return pa.array(values, pa.binary()).cast(pa.string()), bad


def _first_bytes(value: pa.Scalar) -> bytes:
    """The beginning of a text; nothing for null."""
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    if not value.is_valid:
        return b""
    return bytes(memoryview(value.as_buffer())[:RAW_BYTES_KEPT])


def _large_binary(text: pa.Array) -> pa.LargeBinaryArray:
    """Text as bytes with 64-bit offsets, null as none; the bytes themselves are not copied."""
    if pa.types.is_dictionary(text.type):
        text = _flat(text.dictionary).take(text.indices)
    return _as_bytes(text).cast(pa.large_binary()).fill_null(b"")
