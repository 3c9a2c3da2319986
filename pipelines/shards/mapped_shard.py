"""One shard of a finished output, mapped into memory, for random access to its rows.

The batches of a shard without compression are views of the file. Those of a compressed one are
decompressed when they are asked for, and the latest are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import OutputError
from pipelines.corpus.arrow.arrow_footer import batch_places, batch_rows
from pipelines.shards.shard_reader import ShardReader, shard_errors
from pipelines.storage.wording import counted

__all__ = ["MappedShard", "PackedRow", "TokenRow", "sums"]

# Batches that are kept: enough for rows in order, and few enough to hold many shards open.
_KEPT_BATCHES = 2

_Ids = npt.NDArray[Any]
_Ints = npt.NDArray[np.int64]


class TokenRow(NamedTuple):
    """A row with all its columns; see `schemas.token_shards`."""

    ids: _Ids
    document_id: str
    source: str
    byte_start: int
    part: int
    is_last: bool


class PackedRow(NamedTuple):
    """A packed row with all its columns; see `schemas.packed_shards`.

    The lists have an entry per segment; ids after those of the segments are padding.
    """

    ids: _Ids
    lengths: _Ints
    positions: _Ints
    document_ids: list[str]
    sources: list[str]
    byte_starts: _Ints
    is_first: npt.NDArray[np.bool_]
    is_last: npt.NDArray[np.bool_]


def sums(counts: Sequence[int]) -> _Ints:
    """0, and the sums of the first 1, 2, … counts."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


class _Batch(NamedTuple):
    """Ids of a batch: int64, where each row begins and the last one ends, and the flat values."""

    offsets: _Ints
    values: _Ids


class MappedShard:
    """One mapped shard.

    Args:
        path: of the file.
        rows, ids: how many there are in it; of packed rows, with padding.
        row_ids: ids in each packed row; None if the shard is not packed.

    Attributes:
        dtype: of the ids.

    Raises:
        OutputError: the file is missing, damaged, or holds something else.
    """

    def __init__(self, path: str, rows: int, ids: int, row_ids: int | None) -> None:
        self._path = path
        self._row_ids = row_ids
        with shard_errors(path):
            with pa.memory_map(path) as file:
                data = file.read_buffer()
            only_ids = pa.ipc.IpcReadOptions(included_fields=[0], use_threads=False)
            self._ids_reader = pa.ipc.open_file(data, options=only_ids)
            reader = ShardReader(data, row_ids)
            self._reader, self.dtype = reader.file, reader.dtype
            self._rows = sums(_rows_of_batches(data))
        self._batch = lru_cache(_KEPT_BATCHES)(self._load)
        found = int(self._tokens[-1]) if row_ids is None else int(self._rows[-1]) * row_ids
        if (self._rows[-1], found) != (rows, ids):
            raise OutputError(
                f"{path}: has {counted(int(self._rows[-1]), 'row')} with {counted(found, 'id')}, "
                f"the manifest says {rows} with {ids}; beam-bpe verify tells what is damaged"
            )

    def __iter__(self) -> Iterator[_Ids]:
        for number in range(len(self._rows) - 1):
            batch = self._batch(number)
            for start, end in pairwise(batch.offsets.tolist()):
                yield batch.values[start:end]

    @cached_property
    def last_rows(self) -> _Ints:
        """The rows with which documents end; not of packed rows."""
        ends = [
            self._reader.get_batch(number)["is_last"].to_numpy(zero_copy_only=False)
            for number in range(len(self._rows) - 1)
        ]
        return np.flatnonzero(np.concatenate(ends)) if ends else np.zeros(0, np.int64)

    def ids(self, row: int) -> _Ids:
        """The ids of a row."""
        number, within = self._place(row)
        batch = self._batch(number)
        return batch.values[batch.offsets[within] : batch.offsets[within + 1]]

    def row(self, row: int) -> TokenRow | PackedRow:
        """All columns of a row."""
        number, within = self._place(row)
        columns = self._reader.get_batch(number)
        if self._row_ids is None:
            names = TokenRow._fields[1:]
            return TokenRow(self.ids(row), *(columns[name][within].as_py() for name in names))
        lists = {name: columns[name][within].values for name in PackedRow._fields[1:]}
        texts = {name: lists.pop(name).to_pylist() for name in ("document_ids", "sources")}
        arrays = {name: each.to_numpy(zero_copy_only=False) for name, each in lists.items()}
        return PackedRow(ids=self.ids(row), **texts, **arrays)

    def token_position(self, row: int) -> int:
        """How many ids of the shard come before a row."""
        number, within = self._place(row)
        offsets = self._batch(number).offsets
        return int(self._tokens[number] + offsets[within] - offsets[0])

    def pieces(self, start: int, stop: int) -> list[_Ids]:
        """The ids from `start` to before `stop`, as one array for each record batch."""
        found = []
        while start < stop:
            number = int(np.searchsorted(self._tokens, start, side="right")) - 1
            end = min(stop, int(self._tokens[number + 1]))
            batch = self._batch(number)
            base = int(batch.offsets[0]) - int(self._tokens[number])
            found.append(batch.values[base + start : base + end])
            start = end
        return found

    @cached_property
    def _tokens(self) -> _Ints:
        """Ids before each batch, and in all of them."""
        if self._row_ids is not None:
            return self._rows * self._row_ids
        counts = []
        for number in range(len(self._rows) - 1):
            offsets = self._load(number).offsets
            counts.append(int(offsets[-1] - offsets[0]))
        return sums(counts)

    def _load(self, number: int) -> _Batch:
        with shard_errors(self._path):
            column = self._ids_reader.get_batch(number)["input_ids"]
        if self._row_ids is None:
            return _Batch(column.offsets.to_numpy(), column.values.to_numpy())
        offsets = np.arange(len(column) + 1, dtype=np.int64) * self._row_ids
        return _Batch(offsets, column.flatten().to_numpy())

    def _place(self, row: int) -> tuple[int, int]:
        number = int(np.searchsorted(self._rows, row, side="right")) - 1
        return number, row - int(self._rows[number])


def _rows_of_batches(data: pa.Buffer) -> list[int]:
    """Rows of each batch, from the metadata alone: nothing is decompressed."""
    view = memoryview(data)

    def read_at(start: int, size: int) -> bytes:
        return bytes(view[start : start + size])

    return [batch_rows(read_at, place) for place in batch_places(read_at, len(view))]
