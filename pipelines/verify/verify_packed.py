"""Check one packed token shard; see `pipelines.verify.verify_shard`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.storage.wording import counted
from pipelines.verify.document_parts import DocumentParts
from pipelines.verify.verify_shard import ShardCheck
from schemas.packed_shards import PACKED_LISTS

__all__ = ["PackedCheck"]

_Ints = npt.NDArray[np.int64]


class PackedCheck(ShardCheck):
    """Checks a shard of packed rows (`schemas.packed_shards`)."""

    @property
    def _size(self) -> int:
        return self._settings.pack or 0

    def _parts(self, batch: pa.RecordBatch) -> DocumentParts:
        """The segments of a batch, whose ids are all the tokenizer's."""
        numbers = self._facts.rows + np.arange(batch.num_rows)
        entries = {name: pc.list_value_length(batch[name]).to_numpy() for name in PACKED_LISTS}
        counts = entries["lengths"]
        for name in PACKED_LISTS:
            self._check_entries(name, counts, entries[name], numbers)
        columns = {name: batch[name].flatten() for name in PACKED_LISTS}
        ids = batch["input_ids"].flatten().to_numpy()
        self._check_ids(ids, np.arange(1, batch.num_rows + 1) * self._size)
        rows = np.repeat(np.arange(batch.num_rows), counts)
        lengths = columns["lengths"].to_numpy().astype(np.int64)
        before = np.cumsum(lengths) - lengths
        # From the sum over the batch to that within the row.
        row_starts = before[np.searchsorted(rows, rows)]
        places = columns["positions"].to_numpy()
        return DocumentParts(
            path=self._path,
            rows=self._facts.rows + rows,
            ids=ids,
            offsets=rows * self._size + before - row_starts,
            lengths=lengths,
            names=columns["document_ids"],
            sources=columns["sources"],
            starts=columns["byte_starts"].to_numpy(),
            places=places,
            ends=places + lengths,
            is_first=columns["is_first"].to_numpy(zero_copy_only=False),
            is_last=columns["is_last"].to_numpy(zero_copy_only=False),
        )

    def _check_entries(self, name: str, counts: _Ints, entries: _Ints, numbers: _Ints) -> None:
        self._refuse(
            entries != counts,
            numbers,
            lambda row: (
                f"has {counted(counts[row], 'segment')}, and "
                f"{counted(entries[row], 'entry', 'entries')} in {name}"
            ),
        )

    def _check_lengths(self, parts: DocumentParts) -> None:
        """Segments fill rows up to the padding, and documents start at their first id."""
        size, lengths = self._size, parts.lengths
        self._refuse(lengths < 0, parts.rows, lambda at: f"has a segment of {lengths[at]} ids")
        inside = parts.is_first & (parts.places != 0)
        self._refuse(inside, parts.rows, lambda _: "has a document that starts inside itself")
        rows = parts.ids.reshape(-1, size)
        numbers = self._facts.rows + np.arange(len(rows))
        filled = np.bincount(parts.rows - self._facts.rows, lengths, len(rows)).astype(np.int64)

        def segments(row: int) -> str:
            return f"has segments of {counted(filled[row], 'id')}"

        self._refuse(filled > size, numbers, lambda row: f"{segments(row)} together")
        if self._settings.pack_tail == "drop":
            self._refuse(filled < size, numbers, lambda row: f"{segments(row)} only")
        short = np.flatnonzero(filled < size)
        pad = self._settings.pad
        if not len(short) or pad is None:
            return
        is_padding = np.arange(size) >= filled[short][:, None]
        wrong = (is_padding & (rows[short] != pad)).any(axis=1)
        self._refuse(wrong, numbers[short], lambda _: f"is filled up with other ids than {pad}")
        # Padding is no text.
        self._text_bytes -= int(is_padding.sum()) * int(self._lengths[pad])

    def _stand_alone(self, parts: DocumentParts) -> npt.NDArray[np.bool_]:
        """Which segments are whole documents."""
        return parts.is_first & parts.is_last
