"""Rows joined into documents: a long one goes over several rows, batches and shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from mmap import PROT_READ, mmap
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.exports.shard_source import TokenBatch

__all__ = ["DocumentBatch", "DocumentLengths", "whole_documents"]


@dataclass(frozen=True)
class DocumentBatch:
    """Whole documents, in the order of the shards.

    Attributes:
        ids: uint16 or uint32, the ids of all documents, one after the other.
        lengths: int64, ids of each document.
        labels: `document_id`, `source` and `byte_start` of each document's first row.
    """

    ids: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]
    labels: pa.RecordBatch


class DocumentLengths:
    """Turns the lengths of rows into those of the documents that end in them."""

    def __init__(self) -> None:
        self._open = 0

    def add(
        self, lengths: npt.NDArray[np.int64], ends: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Take the next rows; returns int64, the ids of each document that ends in them."""
        sums = np.cumsum(lengths) + self._open
        closed = sums[ends]
        self._open = int(sums[-1] if len(sums) else self._open) - int(
            closed[-1] if len(closed) else 0
        )
        return np.diff(closed, prepend=0)


def whole_documents(
    batches: Iterable[TokenBatch], spool: Callable[[], IO[bytes]]
) -> Iterator[DocumentBatch]:
    """Documents, those that go over several batches too.

    The ids of documents within a batch are views of the batch. Those of a document that goes over
    several are set aside in a file, and mapped from it: memory does not grow with a document.

    Args:
        batches: rows that follow each other; the last one ends a document.
        spool: makes a file to set ids aside in.
    """
    pending: _Pending | None = None
    for batch in batches:
        row_ends = np.cumsum(batch.lengths)
        last_rows = np.flatnonzero(batch.ends)
        first = 0
        if pending is not None and len(batch.lengths):
            if not len(last_rows):
                pending.add(batch.ids)
                continue
            first = int(last_rows[0]) + 1
            pending.add(batch.ids[: row_ends[first - 1]])
            yield pending.finish()
            pending = None
            last_rows = last_rows[1:]
        begin = int(row_ends[first - 1]) if first else 0
        if len(last_rows):
            stop = int(last_rows[-1]) + 1
            ends = row_ends[last_rows]
            starts = np.concatenate([[first], last_rows[:-1] + 1])
            yield DocumentBatch(
                batch.ids[begin : ends[-1]],
                np.diff(ends, prepend=begin),
                batch.labels.take(pa.array(starts)),
            )
            first, begin = stop, int(ends[-1])
        if first < len(batch.lengths):
            pending = _Pending(spool(), batch.labels.slice(first, 1))
            pending.add(batch.ids[begin:])


class _Pending:
    """A document whose end has not come yet."""

    def __init__(self, file: IO[bytes], labels: pa.RecordBatch) -> None:
        self._file = file
        self._labels = labels
        self._dtype = np.dtype(np.uint16)
        self._count = 0

    def add(self, ids: npt.NDArray[Any]) -> None:
        """Set ids aside."""
        self._dtype = ids.dtype
        self._count += len(ids)
        if len(ids):
            self._file.write(np.ascontiguousarray(ids).data.cast("B"))

    def finish(self) -> DocumentBatch:
        """The whole document; the file lives as long as its ids."""
        self._file.flush()
        # An empty file cannot be mapped.
        mapped: Any = mmap(self._file.fileno(), 0, prot=PROT_READ) if self._count else b""
        self._file.close()
        ids = np.frombuffer(mapped, self._dtype)
        return DocumentBatch(ids, np.array([self._count], np.int64), self._labels)
