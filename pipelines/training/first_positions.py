"""Positions of words that can be compared over the whole corpus, for the tie order `first`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import SettingsError
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.plan import FileRange, Unit

__all__ = ["CorpusPositions"]

# File index above, position in the file below.
_OFFSET_BITS = 44


class CorpusPositions:
    """Turns positions in batches of a unit, one batch after another, into positions in the corpus.

    Where rows have byte offsets, these are positions in the file. Rows of tables have none: a
    range's text is laid out from the range's start, in a file as many times as long as fits.
    Only the order of positions has a meaning, and it does not depend on where files are cut.

    Args:
        unit: that the batches are read from.
    """

    def __init__(self, unit: Unit) -> None:
        self._ranges = unit.ranges
        self._sources = pa.array([part.file.source for part in unit.ranges], pa.string())
        self._text_bytes: Counter[int] = Counter()

    def of_batch(self, first: Any, batch: pa.RecordBatch) -> pa.Array:
        """Positions in the corpus.

        Args:
            first: positions (int64) in the batch's concatenated text.
            batch: `schemas.documents.DOCUMENT_PIECES`; the next one of the unit.

        Raises:
            SettingsError: a table holds too many times more text than it has bytes.
        """
        local = first.to_numpy()
        lengths = pc.binary_length(batch["text"]).to_numpy()
        ends = np.cumsum(lengths)
        rows = np.searchsorted(ends, local, side="right")
        starts = np.concatenate([[0], ends[:-1]])
        part_of = pc.index_in(batch["source"].cast(pa.string()), self._sources).to_numpy()
        places = batch["byte_start"].to_numpy().copy()
        for index in np.unique(part_of).tolist():
            if self._ranges[index].file.format in TABLE_FORMATS:
                of_part = part_of == index
                places[of_part] = self._lay_out(index, lengths[of_part])
        files = np.array([part.file.index for part in self._ranges], np.int64)[part_of]
        offsets = places[rows] + (local - starts[rows])
        return pa.array((files[rows] << _OFFSET_BITS) + offsets, pa.int64())

    def _lay_out(self, index: int, lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Where the texts of the next rows of a table start."""
        range_ = self._ranges[index]
        scale = max(1, (1 << _OFFSET_BITS) // max(1, range_.file.size))
        ends = np.cumsum(lengths, dtype=np.int64) + self._text_bytes[index]
        self._text_bytes[index] = int(ends[-1])
        if ends[-1] > range_.stored_bytes * scale:
            raise _too_long(range_)
        starts: npt.NDArray[np.int64] = ends - lengths + range_.start * scale
        return starts


def _too_long(range_: FileRange) -> SettingsError:
    return SettingsError(
        f"--tie-order first: {range_.file.path} holds so much more text than bytes that places in "
        f"it cannot be numbered; write it again without a dictionary, or choose another tie order"
    )
