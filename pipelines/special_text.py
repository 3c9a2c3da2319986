"""Say where a document holds a special token that `--special-text=reject` does not take."""

from __future__ import annotations

import pyarrow as pa

from bpe.errors import InputError
from bpe.special_tokens import SpecialTokens
from pipelines.plan import Unit

__all__ = ["refuse_special_text"]


def refuse_special_text(specials: SpecialTokens, batch: pa.RecordBatch, unit: Unit) -> None:
    """Refuse the first row that holds a special token, by file, document and byte.

    Args:
        specials: what to look for.
        batch: `schemas.documents.DOCUMENT_PIECES`.
        unit: that the batch was read from.

    Raises:
        InputError: a row holds one.
    """
    rows = specials.rows_with_hits(batch["text"])
    if not rows:
        return
    row = rows[0]
    data = batch["text"][row].as_py()
    start, end, _ = specials.find(data) or (0, 0, 0)
    source, begin = batch["source"][row].as_py(), batch["byte_start"][row].as_py()
    is_jsonl = any(
        part.file.format == "jsonl" for part in unit.ranges if part.file.source == source
    )
    # Escapes in a row of JSON move its text: only the row's own place is certain.
    place = f"in the row at byte {begin}" if is_jsonl else f"at byte {begin + start}"
    raise InputError(
        f"{source}: document {batch['document_id'][row].as_py()} holds the special token "
        f"{data[start:end].decode()!r} {place}; remove it, or take it as ordinary text "
        "(--special-text=text) or as the special token (--special-text=allow)"
    )
