"""Arithmetic on tables of pre-token counts: bucket and serialize; `bpe.count_sums` adds them.

A table has the columns of `schemas.word_counts`: `word` (large_binary, distinct), `count` (int64)
and, where the tie order `first` needs it, `first` (int64). Tables travel as Arrow IPC streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["from_ipc", "split_by_bucket", "to_ipc"]

# The bucket only spreads work; words that agree on so many bytes may share one.
_HASHED_BYTES = 32
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def to_ipc(table: pa.Table, *, compression: str | None = None) -> bytes:
    """The table as one Arrow IPC stream with one record batch.

    Args:
        table: any.
        compression: `zstd` or `lz4`, of its columns; None for none.
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def from_ipc(data: bytes) -> pa.Table:
    """The table in an Arrow IPC stream."""
    return pa.ipc.open_stream(data).read_all()


def split_by_bucket(table: pa.Table, buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """Split a table by a hash of the word.

    Args:
        table: a count table.
        buckets: how many there are; the bucket of a word depends on its bytes and this alone.

    Yields:
        (bucket, its rows in their order), for the buckets that have any.
    """
    if table.num_rows == 0:
        return
    table = table.combine_chunks()
    bucket = (_hash_words(table["word"]) % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    present, starts = np.unique(bucket[order], return_index=True)
    sorted_rows = table.take(pa.array(order))
    ends = [*starts[1:].tolist(), table.num_rows]
    for key, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
        yield key, sorted_rows.slice(start, end - start)


def _hash_words(words: Any) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each word: a polynomial over its first bytes, and its length."""
    array = pa.concat_arrays(words.chunks) if isinstance(words, pa.ChunkedArray) else words
    array = array.cast(pa.large_binary())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset :][: len(array) + 1]
    data = array.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    lengths = offsets[1:] - offsets[:-1]
    hashed = lengths.astype(np.uint64)
    with np.errstate(over="ignore"):
        for place in range(min(_HASHED_BYTES, int(lengths.max(initial=0)))):
            rows = np.flatnonzero(lengths > place)
            hashed[rows] = hashed[rows] * _MULTIPLIER + content[offsets[rows] + place]
        hashed ^= hashed >> np.uint64(29)
        hashed *= _MULTIPLIER
    return hashed >> np.uint64(32)
