"""Arithmetic on tables of pre-token counts: bucket, serialize, add.

A table has the columns of `schemas.word_counts`: `word` (large_binary, distinct), `count` (int64)
and, where the tie order `first` needs it, `first` (int64). Tables travel as Arrow IPC streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import CountTableError

__all__ = ["add_tables", "from_ipc", "split_by_bucket", "to_ipc"]

_LARGEST_COUNT = 2**63 - 1
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


def add_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Add tables word by word.

    Args:
        tables: at least one, all with the same columns.

    Returns:
        One table sorted by word: counts added, the smallest `first` kept; the schema and metadata
        of the first table.

    Raises:
        CountTableError: a sum that does not fit into int64; the text names a word.
    """
    schema = tables[0].schema
    table = pa.concat_tables([each.cast(schema) for each in tables])
    kinds = [("count", "sum")] + ([("first", "min")] if "first" in schema.names else [])
    _check_sums(table)
    grouped = table.group_by("word", use_threads=False).aggregate(kinds)
    columns = {"word": grouped["word"], "count": grouped["count_sum"]}
    if "first" in schema.names:
        columns["first"] = grouped["first_min"]
    added = pa.table([columns[name] for name in schema.names], schema=schema)
    return added.take(pc.sort_indices(added["word"])).combine_chunks()


def _check_sums(table: pa.Table) -> None:
    """Arrow's sum of int64 wraps without a word, so look before adding."""
    if table.num_rows == 0:
        return
    largest = pc.max(table["count"]).as_py()
    # No sum can be larger than this; real corpora never get further.
    if largest * table.num_rows <= _LARGEST_COUNT:
        return
    low = pc.bit_wise_and(table["count"], 0xFFFFFFFF)
    high = pc.shift_right(table["count"], 32)
    halves = pa.table({"word": table["word"], "low": low, "high": high})
    sums = halves.group_by("word").aggregate([("low", "sum"), ("high", "sum")])
    carried = pc.add(sums["high_sum"], pc.shift_right(sums["low_sum"], 32))
    over = sums.filter(pc.greater(carried, 0x7FFFFFFF))
    if over.num_rows:
        word = over["word"][0].as_py()
        raise CountTableError(
            f"the count of pre-token {word!r} exceeds {_LARGEST_COUNT}; train on a part of the "
            "corpus"
        )


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
