"""Reads the documents of a unit, whatever the formats of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.missing_bytes import MissingBytes
from bpe.errors import BadFileError
from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.arrow.read_arrow import check_stream, read_arrow
from pipelines.corpus.compression.byte_streams import (
    ByteStream,
    UnstableFileError,
    check_unchanged,
    check_whole,
    open_stream,
)
from pipelines.corpus.csv.read_csv import read_csv
from pipelines.corpus.document_batches import count_anomalies, join_small
from pipelines.corpus.jsonl.read_jsonl import read_jsonl
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.missing_bytes import set_aside_missing_bytes
from pipelines.corpus.parquet.read_parquet import read_parquet
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.table_files import DamagedPartError, open_table_file
from pipelines.corpus.text.read_rows import read_lines, read_separated
from pipelines.corpus.text.read_text import read_text

__all__ = ["KEPT_BYTES", "read_unit"]

KEPT_BYTES = 96 << 20
"""Of memory that a unit leaves, what may stay for the next one: a range of text and its ids."""
# Small batches are joined until they hold so many bytes of text.
BATCH_BYTES = 4 << 20

_Reader = Callable[
    [ByteStream, FileRange, ReadOptions, CutFinder, Rejects], Iterator[pa.RecordBatch]
]


def read_unit(
    unit: Unit,
    options: ReadOptions,
    cut_finder: CutFinder,
    rejects: Rejects,
    missing: MissingBytes | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the documents that start in a unit's ranges.

    Args:
        unit: from the plan.
        options: the same that the plan was made with.
        cut_finder: where documents may be cut; decides the pieces of long ones.
        rejects: takes bad rows and files, and counts.
        missing: bytes that make a document a bad row.

    Yields:
        `schemas.documents.DOCUMENT_PIECES`, not empty, 2 to 8 MiB of text each where there is
        that much; more for longer ranges and rows.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop. Two kinds of bad files
            stop the run under any policy, since some of them may be in the output already: one
            that turns out to be bad after some of it was handed on, and one that changed or
            vanished while other units read other ranges of it.
        SettingsError: a range of text that cannot be cut is longer than `max_row_bytes`.
    """
    batches = (
        batch for range_ in unit.ranges for batch in _read(range_, options, cut_finder, rejects)
    )
    for batch in join_small(batches, BATCH_BYTES):
        if missing:
            batch = set_aside_missing_bytes(batch, missing, unit, rejects)  # noqa: PLW2901
        kept = _look_over(batch, options, rejects)
        if kept.num_rows:
            yield kept


def _reader(range_: FileRange, options: ReadOptions) -> _Reader:
    if range_.file.format == "jsonl":
        return read_jsonl
    if range_.file.format == "lines":
        return read_lines
    if range_.file.format in {"csv", "tsv"}:
        return read_csv
    return read_text if options.document_separator is None else read_separated


def _read(
    range_: FileRange, options: ReadOptions, finder: CutFinder, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """The documents of one file's range, with the policy for bad files."""
    file = range_.file
    is_table = file.format in TABLE_FORMATS
    handed_on = False
    if file.refusal is not None:
        rejects.bad_file(range_, BadFileError(f"{file.path}: {file.refusal}"))
        return
    try:
        if options.on_bad_file == "skip":
            # Damage may come to light at the end only, when it is too late to leave the file out.
            # (Of a Parquet or Arrow file, each part is looked at before it is used.)
            if file.format == "arrow":
                with open_table_file(file, mapped=True) as native:
                    check_stream(native, range_, options)
            elif file.compression != "none":
                check_whole(file)
        if is_table:
            batches = _table_batches(range_, options, rejects)
        else:
            batches = _stream_batches(range_, options, finder, rejects)
        for batch in batches:
            handed_on = True
            yield batch
        check_unchanged(file)
    except BadFileError as error:
        # Others may have read their ranges of a file that is no longer the one that it was.
        is_too_late = isinstance(error, UnstableFileError) and not range_.is_whole
        if options.on_bad_file == "skip":
            is_too_late |= handed_on or isinstance(error, DamagedPartError)
        if is_too_late:
            raise _not_to_be_left_out(error, options) from error
        rejects.bad_file(range_, error)


def _stream_batches(
    range_: FileRange, options: ReadOptions, finder: CutFinder, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Documents of a file that is read from front to back."""
    with closing(open_stream(range_.file, sniff=options.input_format == "auto")) as stream:
        yield from _reader(range_, options)(stream, range_, options, finder, rejects)


def _table_batches(
    range_: FileRange, options: ReadOptions, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Documents of a file that Arrow reads."""
    is_parquet = range_.file.format == "parquet"
    # Parquet's pages are unpacked and so copied anyway; Arrow's batches are used where they are.
    with open_table_file(range_.file, mapped=not is_parquet) as native:
        yield from (read_parquet if is_parquet else read_arrow)(native, range_, options, rejects)


def _not_to_be_left_out(error: BadFileError, options: ReadOptions) -> BadFileError:
    """An error that stops the run under any policy; only where asked does it need an excuse."""
    if options.on_bad_file == "fail":
        return BadFileError(str(error))
    return BadFileError(
        f"{error}; --on-bad-file=skip cannot leave it out, because some of it may be in the output "
        f"already"
    )


def _look_over(batch: pa.RecordBatch, options: ReadOptions, rejects: Rejects) -> pa.RecordBatch:
    """Count documents and anomalies; leave empty documents out if asked to."""
    # The output counts ends: a document that starts and never ends, or the other way round, shows.
    rejects.documents_in += pc.sum(batch["is_first"]).as_py() or 0
    count_anomalies(batch, rejects.accepted)
    if options.empty == "keep":
        return batch
    is_empty = pc.and_(pc.equal(pc.binary_length(batch["text"]), 0), batch["is_first"])
    dropped = pc.sum(is_empty).as_py()
    if not dropped:
        return batch
    rejects.accepted["dropped_empty"] += dropped
    return batch.filter(pc.invert(is_empty))
