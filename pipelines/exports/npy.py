"""NumPy: `tokens.npy`, all ids in a row, and `document_ends.npy`, uint64, where documents end.

`np.load(…, mmap_mode="r")` maps both; document i is `tokens[ends[i - 1] : ends[i]]`, the first one
from 0.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np

from pipelines.exports.documents import DocumentLengths
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written
from pipelines.exports.shard_source import ShardSource

__all__ = ["NpyExport"]


class NpyExport(Export):
    """Writes both files as the rows come; how long they get is known before."""

    title = "a NumPy file"
    takes = frozenset({"dtype"})
    dtypes = ("uint16", "uint32", "int32", "int64")
    file_names = re.compile(r"(tokens|document_ends)\.npy")

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the two files."""
        dtype = self.dtype(source)
        tokens = _begin(folder, "tokens.npy", dtype, source.tokens)
        ends = _begin(folder, "document_ends.npy", np.dtype(np.uint64), source.documents)
        documents = DocumentLengths()
        end = 0
        for batch in source.batches():
            tokens.write_array(batch.ids, dtype)
            ended = np.cumsum(documents.add(batch.lengths, batch.ends)) + end
            ends.write_array(ended, np.uint64)
            end = int(ended[-1]) if len(ended) else end
        tokens.close()
        ends.close()
        return Written(documents=source.documents, tokens=source.tokens)


def _begin(folder: ExportFolder, name: str, dtype: np.dtype[Any], length: int) -> ExportFile:
    header = BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {"descr": dtype.newbyteorder("<").str, "fortran_order": False, "shape": (length,)},
    )
    file = folder.create(name)
    file.write(header.getvalue())
    return file
