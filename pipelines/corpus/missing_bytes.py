"""Set documents aside that hold bytes for which the vocabulary has no ids."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpe.encoding.missing_bytes import MissingBytes
from bpe.errors import BadRecordError
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import Unit
from pipelines.corpus.rejects import Rejects

__all__ = ["BYTE_WITHOUT_ID", "set_aside_missing_bytes"]

BYTE_WITHOUT_ID = "byte_without_id"


def set_aside_missing_bytes(
    batch: pa.RecordBatch, missing: MissingBytes, unit: Unit, rejects: Rejects
) -> pa.RecordBatch:
    """Take documents with such bytes out of a batch.

    Args:
        batch: `schemas.documents.DOCUMENT_PIECES`.
        missing: what to look for.
        unit: that the batch was read from.
        rejects: takes the documents.

    Raises:
        BadRecordError: the policy is to stop; or, under any policy, the document is read in pieces,
            others of which may be in the output already.
    """
    found = missing.find_rows(batch["text"])
    if not found:
        return batch
    keep = np.ones(batch.num_rows, np.bool_)
    for row, offset in found:
        piece = {name: batch[name][row].as_py() for name in batch.schema.names}
        text: bytes = piece["text"]
        file = _file_of(unit, piece["source"])
        is_whole = piece["is_first"] and piece["is_last"] and not piece["goes_on"]
        if not is_whole:
            raise BadRecordError(
                f"{file.path}, document {piece['document_id']}, in the range from byte "
                f"{piece['byte_start']}: the text holds {missing.describe(text[offset], offset)}; "
                "--on-bad-record=skip cannot leave the document out, because it is so long that "
                "it is read in pieces, others of which may be in the output already"
            )
        is_table = file.format in TABLE_FORMATS
        rejects.bad_record(
            file,
            reason=BYTE_WITHOUT_ID,
            message=f"the text holds {missing.describe(text[offset], offset)}",
            byte_offset=None if is_table else piece["byte_start"],
            row=piece["byte_start"] + 1 if is_table else None,
            raw=text,
        )
        keep[row] = False
    return batch.filter(pa.array(keep))


def _file_of(unit: Unit, source: str) -> InputFile:
    return next(part.file for part in unit.ranges if part.file.source == source)
