"""Record batches of document pieces (`schemas.documents`): built, joined and looked over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.cut_documents import Piece
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.text_checks import count_text_features
from schemas.documents import DOCUMENT_PIECES

__all__ = [
    "PIECE_ANOMALIES",
    "batch_of_piece",
    "batch_of_rows",
    "count_anomalies",
    "is_utf8",
    "join_small",
    "slices",
]

PIECE_ANOMALIES = frozenset({"invalid_utf8", "nul", "cr", "crlf"})
"""Of these, the pieces of documents that have them are counted; see `count_anomalies`."""

_Positions = npt.NDArray[np.int64]


def slices(data: bytes | memoryview, starts: _Positions, ends: _Positions) -> pa.LargeBinaryArray:
    """Ranges of a buffer as an array, copied natively.

    Args:
        data: the buffer.
        starts: int64, ascending.
        ends: int64, none of them beyond the next start.
    """
    # Ranges and the gaps between them, in turn, are one array over the buffer as it is.
    offsets = np.empty(2 * len(starts), np.int64)
    offsets[0::2] = starts
    offsets[1::2] = ends
    if not len(offsets):
        return pa.array([], pa.large_binary())
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(offsets), pa.py_buffer(data)],
    )
    return whole.take(pa.array(np.arange(0, len(offsets), 2)))


def is_utf8(data: bytes | memoryview) -> bool:
    """Whether some bytes are valid UTF-8, checked natively and without a copy."""
    return _all_utf8(_one_text(data))


def _one_text(data: bytes | memoryview) -> pa.LargeBinaryArray:
    """An array of one text, which is not copied."""
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 1, [None, offsets, pa.py_buffer(data)]
    )


def batch_of_rows(
    file: InputFile,
    text: pa.LargeBinaryArray,
    starts: _Positions,
    ids: Sequence[str] | pa.StringArray | None = None,
) -> pa.RecordBatch:
    """Whole documents of one file.

    Args:
        file: the file.
        text: of each document.
        starts: int64, the place of each in the file: byte in the uncompressed file, or row.
        ids: of each document; None for `FILE_INDEX:PLACE`.
    """
    count = len(text)
    positions = pa.array(starts, pa.int64())
    if ids is None:
        names = pc.binary_join_element_wise(str(file.index), positions.cast(pa.string()), ":")
    else:
        names = ids if isinstance(ids, pa.StringArray) else pa.array(ids, pa.string())
    whole = pa.repeat(pa.scalar(value=True), count)
    columns = [
        text,
        names,
        pa.repeat(pa.scalar(file.source), count),
        positions,
        pa.repeat(pa.scalar(0, pa.int32()), count),
        whole,
        whole,
        pa.repeat(pa.scalar(value=False), count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_PIECES)


def batch_of_piece(file: InputFile, document_start: int, piece: Piece) -> pa.RecordBatch:
    """One piece of a long document.

    Args:
        file: the file.
        document_start: where the document starts in the uncompressed file, bytes.
        piece: the piece.
    """
    row = {
        "document_id": f"{file.index}:{document_start}",
        "source": file.source,
        "byte_start": piece.start,
        "part": piece.part,
        "is_first": piece.start == document_start,
        "is_last": piece.is_last,
        "goes_on": piece.goes_on,
    }
    columns = [
        _one_text(piece.text) if field.name == "text" else pa.array([row[field.name]], field.type)
        for field in DOCUMENT_PIECES
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_PIECES)


def join_small(batches: Iterable[pa.RecordBatch], target: int) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: those below half of `target` bytes of text are joined."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        bytes_of_text = _text_bytes(batch)
        if bytes_of_text >= target // 2:
            yield from _join(waiting)
            waiting, size = [], 0
            yield batch
            continue
        waiting.append(batch)
        size += bytes_of_text
        # Rows without text take memory too.
        if size >= target or sum(each.num_rows for each in waiting) >= target // 64:
            yield from _join(waiting)
            waiting, size = [], 0
    yield from _join(waiting)


def _text_bytes(batch: pa.RecordBatch) -> int:
    offsets = _offsets(batch["text"])
    return int(offsets[-1] - offsets[0])


def _join(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def count_anomalies(batch: pa.RecordBatch, counts: Counter[str]) -> None:
    """Count what is unusual about some pieces of text, but read all the same.

    Adds to `counts`, per anomaly, the number of pieces that have it: `empty`, `whitespace_only`
    (whole documents), `invalid_utf8`, `nul`, `cr` (a carriage return without a line feed) and
    `crlf` (`PIECE_ANOMALIES`, whose counts depend on how long documents are cut: who reads one
    piece of a document does not know of the others).
    """
    whole = np.logical_and(_booleans(batch["is_first"]), _booleans(batch["is_last"]))
    found = count_text_features(batch["text"], whole)
    counts.update({name: count for name, count in found.items() if count})


def _offsets(text: pa.LargeBinaryArray) -> _Positions:
    offsets = np.frombuffer(text.buffers()[1], np.int64)
    return offsets[text.offset : text.offset + len(text) + 1]


def _booleans(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    values: npt.NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return values


def _all_utf8(text: pa.LargeBinaryArray) -> bool:
    try:
        text.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True
