"""datatrove (and nanotron): files of bare ids, each with its documents' ends and a description.

    00000_unshuffled.ds            uint16 or uint32 ids
    00000_unshuffled.ds.index      uint64, where documents end, in ids
    00000_unshuffled.ds.metadata   tokenizer and bytes per id; number of ids; the same for people

A file closes at the end of the document with which it is full: none goes over two files.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pipelines.exports.documents import DocumentLengths
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written
from pipelines.exports.shard_source import ShardSource, TokenBatch

__all__ = ["DatatroveExport", "metric_count"]


class DatatroveExport(Export):
    """Writes one file after the other, its index beside it."""

    title = "datatrove's files"
    takes = frozenset({"dtype", "tokens_per_file"})
    file_names = re.compile(r"\d{5,}_unshuffled\.ds(\.index|\.metadata)?")

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the files."""
        limit = self.options.tokens_per_file or source.tokens + 1
        tokenizer = f"beam-bpe {source.manifest.tokenizer_digest[:16]}"
        dtype = self.dtype(source)
        file: _TokenFile | None = None
        count = 0
        for batch in source.batches():
            first = 0
            while first < len(batch.lengths):
                # Empty documents go into the full file: one of theirs alone would hold nothing.
                if file is not None and file.is_full and batch.lengths[first]:
                    file.close(tokenizer)
                    file = None
                if file is None:
                    file = _TokenFile(folder, f"{count:05d}_unshuffled.ds", dtype)
                    count += 1
                first = file.write(batch, first, limit)
        if file is not None:
            file.close(tokenizer)
        return Written(documents=source.documents, tokens=source.tokens)


class _TokenFile:
    """One file of ids and what belongs to it.

    Args:
        folder: where it goes.
        name: of the file of ids.
        dtype: of the ids.

    Attributes:
        is_full: whether the limit was reached, at the end of a document.
    """

    def __init__(self, folder: ExportFolder, name: str, dtype: np.dtype[Any]) -> None:
        self.is_full = False
        self._tokens: ExportFile = folder.create(name)
        self._index = folder.create(f"{name}.index")
        self._metadata = folder.create(f"{name}.metadata")
        self._dtype = dtype
        self._documents = DocumentLengths()
        self._count = 0
        self._last_end = 0

    def write(self, batch: TokenBatch, first: int, limit: int) -> int:
        """Append rows from `first` on until the file is full; returns the next row, not empty."""
        row_ends = np.cumsum(batch.lengths)
        begin = int(row_ends[first - 1]) if first else 0
        reached = self._count + row_ends[first:] - begin >= limit
        full = np.flatnonzero(reached & batch.ends[first:])
        self.is_full = len(full) > 0
        stop = len(row_ends)
        if self.is_full:
            stop = int(np.searchsorted(row_ends, row_ends[first + int(full[0])], side="right"))
        ids = batch.ids[begin : row_ends[stop - 1]]
        self._tokens.write_array(ids, self._dtype)
        self._count += len(ids)
        lengths = self._documents.add(batch.lengths[first:stop], batch.ends[first:stop])
        ends = np.cumsum(lengths) + self._last_end
        self._index.write_array(ends, np.uint64)
        self._last_end = int(ends[-1]) if len(ends) else self._last_end
        return stop

    def close(self, tokenizer: str) -> None:
        """Write the description, and close all three."""
        lines = [f"{tokenizer}|{self._dtype.itemsize}", str(self._count), metric_count(self._count)]
        self._metadata.write("\n".join(lines).encode())
        for file in (self._tokens, self._index, self._metadata):
            file.close()


def metric_count(number: int) -> str:
    """A number of tokens with three digits and a prefix: 459792 -> '460 kT'."""
    value, prefix = float(number), 0
    while value >= 1000 and prefix < 4:
        value, prefix = value / 1000, prefix + 1
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {('', 'k', 'M', 'G', 'T')[prefix]}T"
