"""Check one packed token shard; see `pipelines.verify.verify_shard`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.storage.wording import counted
from pipelines.verify.verify_order import OrderedRows
from pipelines.verify.verify_shard import ShardCheck
from schemas.packed_shards import PACKED_LISTS, packed_shard_schema

__all__ = ["PackedCheck"]

_Ints = npt.NDArray[np.int64]


class PackedCheck(ShardCheck):
    """Checks a shard of packed rows (`schemas.packed_shards`)."""

    def _schema(self) -> pa.Schema:
        return packed_shard_schema(self._tokenizer.max_id, self._settings.pack or 0)

    def _check_rows(self, batch: pa.RecordBatch) -> None:
        """Segments fill rows up to the padding; ids, BOS, EOS and splits are right."""
        size = self._settings.pack or 0
        ids = batch["input_ids"].flatten().to_numpy()
        rows, lengths, starts = self._segments(batch)
        self._check_ids(ids, np.arange(1, batch.num_rows + 1) * size)
        is_first, is_last = (self._flags(batch, name) for name in ("is_first", "is_last"))
        self._text_bytes += int(self._lengths[ids].sum())
        self._check_padding(batch, ids, rows, lengths)
        settings = self._settings
        for name, mark, places, wanted in (
            ("BOS", settings.bos, starts, is_first),
            ("EOS", settings.eos, starts + lengths - 1, is_last),
        ):
            self._check_marks_of(name, mark, ids, places, wanted, lengths, rows)
        positions = batch["positions"].flatten().to_numpy()
        self._refuse(is_first & (positions != 0), rows, "has a document that starts inside itself")
        self._check_split(batch["document_ids"].flatten(), rows)
        self._order.add(
            OrderedRows(
                rows=self._facts.rows + rows,
                names=batch["document_ids"].flatten(),
                sources=batch["sources"].flatten(),
                starts=batch["byte_starts"].flatten().to_numpy(),
                places=positions,
                ends=positions + lengths,
                is_first=is_first,
                is_last=is_last,
            )
        )

    def _segments(self, batch: pa.RecordBatch) -> tuple[_Ints, _Ints, _Ints]:
        """Of each segment: its row, its length, and its place among the batch's ids."""
        counts = pc.list_value_length(batch["lengths"]).to_numpy().astype(np.int64)
        for name in PACKED_LISTS:
            others = pc.list_value_length(batch[name]).to_numpy()
            wrong = np.flatnonzero(others != counts)
            if len(wrong):
                row = wrong[0]
                segments, entries = counted(counts[row], "segment"), others[row]
                raise self._row_failure(
                    row, f"has {segments}, and {counted(entries, 'entry', 'entries')} in {name}"
                )
        rows = np.repeat(np.arange(batch.num_rows), counts)
        lengths = batch["lengths"].flatten().to_numpy().astype(np.int64)
        before = np.cumsum(lengths) - lengths
        row_starts = before[np.searchsorted(rows, rows)]
        return rows, lengths, rows * (self._settings.pack or 0) + before - row_starts

    def _check_padding(
        self, batch: pa.RecordBatch, ids: npt.NDArray[Any], rows: _Ints, lengths: _Ints
    ) -> None:
        size = self._settings.pack or 0
        negative = np.flatnonzero(lengths < 0)
        if len(negative):
            segment = negative[0]
            raise self._row_failure(rows[segment], f"has a segment of {lengths[segment]} ids")
        filled = np.bincount(rows, lengths, batch.num_rows).astype(np.int64)
        too_long = np.flatnonzero(filled > size)
        if len(too_long):
            row = too_long[0]
            raise self._row_failure(row, f"has segments of {counted(filled[row], 'id')} together")
        short = np.flatnonzero(filled < size)
        if not len(short):
            return
        if self._settings.pack_tail == "drop":
            raise self._row_failure(
                short[0], f"has segments of {counted(filled[short[0]], 'id')} only"
            )
        padding = ids.reshape(batch.num_rows, size)[short]
        is_padding = np.arange(size) >= filled[short][:, None]
        wrong = np.flatnonzero((is_padding & (padding != self._settings.pad)).any(axis=1))
        if len(wrong):
            raise self._row_failure(
                short[wrong[0]], f"is filled up with other ids than {self._settings.pad}"
            )
        # Padding is no text.
        self._text_bytes -= int(is_padding.sum()) * int(self._lengths[self._settings.pad])

    def _check_marks_of(
        self,
        name: str,
        mark: int | None,
        ids: npt.NDArray[Any],
        places: _Ints,
        wanted: npt.NDArray[np.bool_],
        lengths: _Ints,
        rows: _Ints,
    ) -> None:
        if mark is None:
            return
        present = wanted & (lengths > 0)
        right = present.copy()
        right[present] = ids[places[present]] == mark
        self._refuse(wanted & ~right, rows, f"lacks {name} {mark}")
        self._text_bytes -= int(self._lengths[mark]) * int(wanted.sum())

    def _refuse(self, wrong: npt.NDArray[np.bool_], rows: _Ints, what: str) -> None:
        places = np.flatnonzero(wrong)
        if len(places):
            raise self._row_failure(rows[places[0]], what)

    def _flags(self, batch: pa.RecordBatch, name: str) -> npt.NDArray[np.bool_]:
        flags: npt.NDArray[np.bool_] = batch[name].flatten().to_numpy(zero_copy_only=False)
        return flags

    def _dependent_ids(self, batch: pa.RecordBatch) -> int:
        """How many ids are in segments that are parts of documents."""
        _, lengths, _ = self._segments(batch)
        is_whole = self._flags(batch, "is_first") & self._flags(batch, "is_last")
        return int(lengths[~is_whole].sum())

    def _are_full(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Of no meaning here: segments say whether they are whole documents."""
        return np.zeros(batch.num_rows, np.bool_)

    def _whole_documents(
        self, batch: pa.RecordBatch, first: int
    ) -> Iterator[tuple[int, str, npt.NDArray[np.uint32]]]:
        """Segments that are whole documents, from row `first` on, and then those before it."""
        ids = batch["input_ids"].flatten().to_numpy()
        rows, lengths, starts = self._segments(batch)
        whole = self._flags(batch, "is_first") & self._flags(batch, "is_last")
        names = batch["document_ids"].flatten()
        segments = np.flatnonzero(whole)
        before = int(np.searchsorted(rows[segments], first))
        for segment in np.roll(segments, -before).tolist():
            start = starts[segment]
            found = ids[start : start + lengths[segment]].astype(np.uint32)
            text = self._without_marks(found, is_first=True, is_last=True)
            yield int(rows[segment]), names[segment].as_py(), text
