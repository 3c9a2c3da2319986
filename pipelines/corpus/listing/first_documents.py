"""`--limit`: the first documents of the input, found by reading its beginning on the driver.

The files after them are taken off the list, and the last one that is left gets a place from which
on nothing is read. So workers need not know of each other, and how the input is cut into ranges
and units does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import BAD_FILE, Rejects

__all__ = ["first_documents"]

_Places = npt.NDArray[np.int64]


def first_documents(
    files: Sequence[InputFile], options: ReadOptions, limit: int
) -> tuple[list[InputFile], int]:
    """The files that hold the first documents of some.

    Rows that are set aside, and documents that are dropped as empty, count as well: which documents
    are the first does not depend on policies. Rows of files that are set aside do not.

    Args:
        files: in the order of the plan.
        options: how they are read.
        limit: how many documents there shall be.

    Returns:
        The files, the last of them with its `stop`; and how many documents they hold, less than
        `limit` if there are no more.

    Raises:
        BadFileError: a file is bad, and that is to stop the run.
        SettingsError: as for `read_unit`.
    """
    # Bad rows are counted here; who reads them for good does with them what the options say.
    nulls = "empty" if options.nulls == "empty" else "skip"
    read = replace(options, on_bad_record="skip", nulls=nulls, max_bad_records=None, empty="keep")
    found: list[InputFile] = []
    left = limit
    for file in files:
        if not left:
            break
        count, cut = _take(file, read, left)
        found.append(cut)
        left -= count
    return found, limit - left


def _take(file: InputFile, read: ReadOptions, limit: int) -> tuple[int, InputFile]:
    """How many of the first documents a file holds, and the file, cut if it holds more."""
    is_document = file.format == "text" and read.document_separator is None
    if is_document and file.compression == "none":
        return 1, file
    unit = Unit(0, (FileRange(file, 0, None),))
    rejects = Rejects(unit, read)
    starts: list[_Places] = []
    count = size = 0
    for batch in read_unit(unit, read, CutFinder(get_scheme("gpt2")), rejects):
        if is_document:
            return 1, file
        starts.append(_starts(batch))
        count += len(starts[-1])
        size += pc.sum(pc.binary_length(batch["text"])).as_py()
        if count + rejects.rejected_records >= limit:
            places = _joined(starts, rejects, file)
            # Rows after the batch may have been set aside already, and others not yet read.
            places = places[places <= starts[-1].max(initial=-1)]
            if len(places) >= limit:
                stop = int(places[limit - 1]) + 1
                return limit, replace(file, stop=stop, text_bytes=size * limit // len(places))
    places = _joined(starts, rejects, file)
    if len(places) <= limit:
        return len(places), file
    stop = int(places[limit - 1]) + 1
    return limit, replace(file, stop=stop, text_bytes=size * limit // len(places))


def _starts(batch: pa.RecordBatch) -> _Places:
    """Where the documents start that begin in a batch."""
    places: _Places = batch["byte_start"].filter(batch["is_first"]).to_numpy()
    return places


def _joined(starts: list[_Places], rejects: Rejects, file: InputFile) -> _Places:
    """Where all documents start, those that were set aside too, in order."""
    rejected: list[int] = []
    for record in map(json.loads, rejects.to_jsonl().splitlines()):
        if record["reason"] != BAD_FILE:
            place = record["row"] - 1 if file.format in TABLE_FORMATS else record["byte_offset"]
            rejected += range(place, place + record.get("rows", 1))
    return np.sort(np.concatenate([*starts, np.array(rejected, np.int64)]))
