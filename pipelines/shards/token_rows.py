"""Rows of a token shard from document pieces and their ids: BOS, EOS, capped row length.

One batch in, one batch out, on flat NumPy views of the ids; no document becomes a Python object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["RowMaker", "TokenRows", "with_marks"]

_Ints = npt.NDArray[np.int64]
# Columns of pieces that rows have as they are.
_COPIED = ["document_id", "source", "byte_start"]


@dataclass(frozen=True)
class TokenRows:
    """Rows ready to be written.

    Attributes:
        batch: columns of `schemas.token_shards`, or of `schemas.packed_shards` once packed.
        text_bytes: int64, per row: bytes of text that end with the row (a piece that takes several
            rows counts at its last one, so that a shard never closes inside it); of a packed row,
            the bytes that its ids decode to.
    """

    batch: pa.RecordBatch
    text_bytes: _Ints

    def slice(self, start: int, end: int) -> TokenRows:
        """Rows `start` to `end`, without copying."""
        return TokenRows(self.batch.slice(start, end - start), self.text_bytes[start:end])

    def filter(self, wanted: npt.NDArray[np.bool_]) -> TokenRows:
        """The rows that are wanted, copied unless it is all of them."""
        if wanted.all():
            return self
        return TokenRows(self.batch.filter(pa.array(wanted)), self.text_bytes[wanted])


class RowMaker:
    """Makes the rows of one unit, batch after batch.

    Args:
        schema: of the rows (`schemas.token_shards`); decides uint16 or uint32.
        sources: every value of the column `source` in the unit, so that all batches of a file
            share one dictionary.
        bos: id put before each document, or None.
        eos: id put after each document, or None.
        max_row_tokens: most ids in a row; a longer piece continues in the next row, with the next
            `part`.
    """

    def __init__(
        self,
        schema: pa.Schema,
        sources: list[str],
        *,
        bos: int | None,
        eos: int | None,
        max_row_tokens: int,
    ) -> None:
        self._schema = schema
        self._sources = pa.array(sources, pa.string())
        self._bos = bos
        self._eos = eos
        self._cap = max_row_tokens
        # `part` of the last row made: the next row of the same document needs a larger one.
        self._last_part = -1

    def make(self, pieces: pa.RecordBatch, ids: pa.LargeListArray) -> TokenRows:
        """Rows of a batch of pieces.

        Args:
            pieces: columns of `schemas.documents.DOCUMENT_PIECES`, in reading order.
            ids: the ids of each piece; uint16 or uint32 as in the schema.
        """
        is_first = pieces["is_first"].to_numpy(zero_copy_only=False)
        is_last = pieces["is_last"].to_numpy(zero_copy_only=False)
        values, lengths = with_marks(
            ids.flatten().to_numpy(),
            pc.list_value_length(ids).to_numpy().astype(np.int64),
            is_first,
            is_last,
            bos=self._bos,
            eos=self._eos,
        )
        text_bytes = pc.binary_length(pieces["text"]).to_numpy().astype(np.int64)
        if not len(lengths) or int(lengths.max()) <= self._cap:
            parts = self._rising_parts(pieces["part"].to_numpy(), is_first)
            return TokenRows(self._batch(pieces, values, lengths, parts, is_last), text_bytes)
        rows_of = np.maximum(1, -(-lengths // self._cap))
        piece = np.repeat(np.arange(len(rows_of)), rows_of)
        within = np.arange(len(piece)) - np.repeat(np.cumsum(rows_of) - rows_of, rows_of)
        ends_piece = within == rows_of[piece] - 1
        row_lengths = np.where(ends_piece, lengths[piece] - within * self._cap, self._cap)
        starts_document = is_first[piece] & (within == 0)
        parts = self._rising_parts(pieces["part"].to_numpy()[piece], starts_document)
        facts = pieces.select(_COPIED).take(pa.array(piece))
        batch = self._batch(facts, values, row_lengths, parts, is_last[piece] & ends_piece)
        return TokenRows(batch, np.where(ends_piece, text_bytes[piece], 0))

    def _batch(
        self,
        pieces: pa.RecordBatch,
        values: npt.NDArray[Any],
        lengths: _Ints,
        parts: _Ints,
        is_last: npt.NDArray[np.bool_],
    ) -> pa.RecordBatch:
        """The rows' columns; `pieces` has one of `_COPIED` for each."""
        columns = {
            "input_ids": self._lists(values, lengths),
            "document_id": pieces["document_id"],
            "source": self._source_column(pieces["source"]),
            "byte_start": pieces["byte_start"],
            "part": pa.array(parts, pa.int32()),
            "is_last": pa.array(is_last),
        }
        arrays = [columns[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _rising_parts(self, parts: npt.NDArray[Any], starts: npt.NDArray[np.bool_]) -> _Ints:
        """Parts of the pieces, raised where needed so that they rise from row to row.

        Within a document, row i gets the largest of `parts[j] + (i - j)` over its rows j up to i.
        """
        if not len(parts):
            return np.zeros(0, np.int64)
        if starts.all():
            self._last_part = int(parts[-1])
            return parts.astype(np.int64)
        place = np.arange(len(parts))
        lead = parts.astype(np.int64) - place
        if not starts[0]:
            lead[0] = max(lead[0], self._last_part + 1)
        # A running maximum for each document: those before it are too low to matter.
        apart = np.cumsum(starts) * (int(lead.max()) - int(lead.min()) + 1)
        rising: _Ints = np.maximum.accumulate(lead + apart) - apart + place
        self._last_part = int(rising[-1])
        return rising

    def _lists(self, values: npt.NDArray[Any], lengths: _Ints) -> pa.ListArray:
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(values), type=self._schema.field("input_ids").type
        )

    def _source_column(self, sources: Any) -> pa.DictionaryArray:
        codes = pc.index_in(sources.cast(pa.string()), value_set=self._sources)
        return pa.DictionaryArray.from_arrays(codes, self._sources)


def with_marks(
    values: npt.NDArray[Any],
    lengths: _Ints,
    is_first: npt.NDArray[np.bool_],
    is_last: npt.NDArray[np.bool_],
    *,
    bos: int | None,
    eos: int | None,
) -> tuple[npt.NDArray[Any], _Ints]:
    """Flat ids with BOS and EOS put in, and the new lengths; what came in where there are none.

    Args:
        values: uint16 or uint32, the ids of all rows, one row after the other.
        lengths: int64, ids of each row.
        is_first: per row, whether a document begins with it: BOS comes first.
        is_last: per row, whether a document ends with it: EOS comes last.
        bos: id put before each document, or None.
        eos: id put after each document, or None.
    """
    if bos is None and eos is None:
        return values, lengths
    if bos is not None:
        lengths = lengths + is_first
    if eos is not None:
        lengths = lengths + is_last
    ends = np.cumsum(lengths)
    marked = np.empty(int(ends[-1]) if len(ends) else 0, values.dtype)
    is_text = np.ones(len(marked), np.bool_)
    if bos is not None:
        places = (ends - lengths)[is_first]
        marked[places] = bos
        is_text[places] = False
    if eos is not None:
        places = ends[is_last] - 1
        marked[places] = eos
        is_text[places] = False
    marked[is_text] = values
    return marked, lengths
