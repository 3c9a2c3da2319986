"""Documents as the rows of pieces that encoding makes of them."""

from __future__ import annotations

import pyarrow as pa

from schemas.documents import DOCUMENT_PIECES


def pieces(documents: list[list[list[int]]]) -> tuple[pa.RecordBatch, pa.LargeListArray]:
    """Documents as lists of pieces as lists of ids -> a batch of pieces, and their ids."""
    rows, ids = [], []
    for number, document in enumerate(documents):
        for part, piece in enumerate(document):
            rows.append(
                {
                    "text": b"x" * len(piece),
                    "document_id": f"0:{number}",
                    "source": "a.txt",
                    "byte_start": 100 * number + part,
                    "part": part,
                    "is_first": part == 0,
                    "is_last": part == len(document) - 1,
                }
            )
            ids.append(piece)
    batch = pa.RecordBatch.from_pylist(rows, schema=DOCUMENT_PIECES)
    return batch, pa.array(ids, pa.large_list(pa.uint16()))
