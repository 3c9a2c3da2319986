"""Say where a document holds a special token that `--special-text=reject` does not take."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from bpe.errors import InputError
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.plan import Unit

__all__ = ["refuse_special_text"]

FindFirst = Callable[[pa.LargeBinaryArray], tuple[int, int, str] | None]


def refuse_special_text(find_first: FindFirst, batch: pa.RecordBatch, unit: Unit) -> None:
    """Refuse the first row that holds a special token, by file, document and byte.

    Args:
        find_first: says where some documents hold a special token first: row, byte, token.
        batch: `schemas.documents.DOCUMENT_PIECES`.
        unit: that the batch was read from.

    Raises:
        InputError: a row holds one.
    """
    found = find_first(batch["text"])
    if found is None:
        return
    row, start, token = found
    source, begin = batch["source"][row].as_py(), batch["byte_start"][row].as_py()
    formats = {part.file.format for part in unit.ranges if part.file.source == source}
    if formats & TABLE_FORMATS:
        place = f"in row {begin + 1}"
    elif formats <= {"text", "lines"}:
        place = f"at byte {begin + start}"
    else:
        # Escapes and quotes in a row move its text: only the row's own place is certain.
        place = f"in the row at byte {begin}"
    raise InputError(
        f"{source}: document {batch['document_id'][row].as_py()} holds the special token "
        f"{token!r} {place}; remove it, or take it as ordinary text "
        "(--special-text=text) or as the special token (--special-text=allow)"
    )
