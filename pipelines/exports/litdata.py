"""litdata: chunks of ids for `StreamingDataset(…, item_loader=TokensLoader(block_size=N))`.

    chunk-0-0.bin, …   number of items (one), where they begin and end, ids
    index.json         written last: chunks, integer type, item loader

The loader drops the end of each chunk that fills no block, so chunks hold whole blocks.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bpe.errors import SettingsError
from pipelines.exports.block_files import blocks_written, check_block_size, write_block_files
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, ExportOptions, Written
from pipelines.exports.shard_source import ShardSource

__all__ = ["LitdataExport"]

_CHUNK_BYTES = 64_000_000
_HEADER_BYTES = 12
_LARGEST_CHUNK = 2**32 - 1 - _HEADER_BYTES
_DTYPE_CODES = {"int32": 2, "int64": 3, "uint16": 5, "uint32": 6}


class LitdataExport(Export):
    """Writes chunks of about 64 MB, as their own program does."""

    title = "litdata's chunks"
    takes = frozenset({"dtype", "block_size"})
    dtypes = ("uint16", "uint32", "int32", "int64")
    file_names = re.compile(r"chunk-0-\d+\.bin|index\.json")
    keeps_documents = False
    takes_packed_rows = True

    def __init__(self, options: ExportOptions) -> None:
        super().__init__(options)
        if options.block_size is None:
            raise SettingsError(
                "--to litdata: give --block-size N, the block_size of your TokensLoader (context "
                "length, plus one where inputs and targets overlap): chunks are cut for it, so "
                "that the loader drops nothing between them"
            )
        self._block_size: int = options.block_size

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        check_block_size(source, self._block_size, _LARGEST_CHUNK // self.dtype(source).itemsize)

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the chunks, then their index."""
        dtype = self.dtype(source)
        block_bytes = self._block_size * dtype.itemsize

        def begin(number: int, blocks: int) -> ExportFile:
            file = folder.create(f"chunk-0-{number}.bin")
            end = _HEADER_BYTES + blocks * block_bytes
            file.write_array(np.array([1, _HEADER_BYTES, end]), np.uint32)
            return file

        per_chunk = max(1, (_CHUNK_BYTES - _HEADER_BYTES) // block_bytes)
        files = write_block_files(source, self._block_size, per_chunk, dtype, begin)
        index = folder.create("index.json")
        index.write(json.dumps(self._index(source, files, dtype), sort_keys=True).encode())
        index.close()
        return blocks_written(source, self._block_size)

    def _index(
        self, source: ShardSource, files: list[tuple[ExportFile, int]], dtype: np.dtype[Any]
    ) -> dict[str, Any]:
        chunks = [
            {
                "chunk_bytes": file.size,
                "chunk_size": 1,
                "dim": blocks * self._block_size,
                "filename": file.name,
            }
            for file, blocks in files
        ]
        config = {
            "compression": None,
            "chunk_size": None,
            "chunk_bytes": _CHUNK_BYTES,
            "data_format": [f"no_header_numpy:{_DTYPE_CODES[dtype.name]}"],
            "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
            "encryption": None,
            "item_loader": "TokensLoader",
        }
        # The loader names its cache by it: other shards must give another one.
        version = source.digest[:16]
        return {"chunks": chunks, "config": config, "updated_at": version}
