"""MosaicML Streaming: MDS shards for `StreamingDataset`, with one column, `tokens`.

    shard.00000.mds, …   number of samples, where they begin, the configuration, samples
    index.json           written last: the shards

A sample is a document, or a block of `--block-size` ids as llm-foundry reads them; of packed
shards, a row, which is such a block too.
"""

from __future__ import annotations

import json
import re
import struct
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bpe.errors import SettingsError
from pipelines.exports.block_files import blocks_written, check_block_size, write_block_files
from pipelines.exports.documents import whole_documents
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written, longest_document
from pipelines.exports.shard_source import ShardSource

__all__ = ["MdsExport"]

_SHARD_BYTES = 1 << 26
# Places in a shard are uint32; a little is left for what comes before the samples.
_LARGEST_SHARD = 2**32 - 4096
_EMPTY = "documents without tokens"
_COPY_BYTES = 1 << 20
_COPY_IDS = 1 << 20


class MdsExport(Export):
    """Writes shards of up to 64 MiB, as their own program does."""

    title = "an MDS shard"
    takes = frozenset({"dtype", "block_size"})
    dtypes = ("uint16", "uint32", "int32", "int64")
    takes_packed_rows = True
    file_names = re.compile(r"shard\.\d{5,}\.mds|index\.json")

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        most = _LARGEST_SHARD // self.dtype(source).itemsize
        block_size = self._block_size(source)
        if block_size is not None:
            check_block_size(source, block_size, most)
            return
        longest = longest_document(source, most)
        if longest > most:
            raise SettingsError(
                f"{source.directory}: a document has {longest} ids, and {self.title} holds up to "
                f"{most}; cut documents into blocks with --block-size"
            )

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the shards, then their index."""
        block_size = self._block_size(source)
        if block_size is not None:
            return self._write_blocks(source, folder, block_size)
        return self._write_documents(source, folder)

    def dtype(self, source: ShardSource) -> np.dtype[Any]:
        """int32 for blocks, as llm-foundry writes them; else as for other formats."""
        if self._block_size(source) is not None and self.options.dtype is None:
            return np.dtype(np.int32)
        return super().dtype(source)

    def _block_size(self, source: ShardSource) -> int | None:
        """Ids in each sample; None where a sample is a document."""
        return self.options.block_size or source.row_ids

    def _write_documents(self, source: ShardSource, folder: ExportFolder) -> Written:
        dtype = self.dtype(source)
        config = _config(f"ndarray:{dtype.name}", None)
        shards: list[tuple[ExportFile, int]] = []
        shard = _OpenShard(folder, config)
        empty = 0
        for batch in whole_documents(source.batches(), folder.spool):
            ends = np.cumsum(batch.lengths)
            # Of several documents, each is a slice of bytes: no array is made for it.
            stored = _stored(batch.ids, dtype) if len(ends) > 1 else None
            for start, end in zip((ends - batch.lengths).tolist(), ends.tolist(), strict=True):
                # Their own program cannot write an array without elements.
                if start == end:
                    empty += 1
                    continue
                head = _sample_head(end - start, dtype)
                size = len(head) + (end - start) * dtype.itemsize
                if not shard.has_room(size):
                    shards.append(shard.close(len(shards)))
                    shard = _OpenShard(folder, config)
                shard.begin_sample(head, size)
                if stored is not None:
                    shard.write(stored[start * dtype.itemsize : end * dtype.itemsize])
                    continue
                for first in range(0, end, _COPY_IDS):
                    shard.write(_stored(batch.ids[first : first + _COPY_IDS], dtype))
        shards.append(shard.close(len(shards)))
        _write_index(folder, config, shards)
        left_out = {_EMPTY: empty} if empty else {}
        return Written(documents=source.documents - empty, tokens=source.tokens, left_out=left_out)

    def _write_blocks(self, source: ShardSource, folder: ExportFolder, block_size: int) -> Written:
        dtype = self.dtype(source)
        block_bytes = block_size * dtype.itemsize
        config = _config(f"ndarray:{dtype.name}:{block_size}", block_bytes)

        def begin(number: int, blocks: int) -> ExportFile:
            file = folder.create(_shard_name(number))
            _write_head(file, np.full(blocks, block_bytes), config)
            return file

        per_shard = max(1, (_SHARD_BYTES - 8 - len(_dump(config))) // (block_bytes + 4))
        shards = write_block_files(source, block_size, per_shard, dtype, begin)
        _write_index(folder, config, shards)
        return blocks_written(source, block_size)


def _shard_name(number: int) -> str:
    return f"shard.{number:05d}.mds"


def _config(encoding: str, size: int | None) -> dict[str, Any]:
    """What a shard says of itself: `size` is that of a sample in bytes, None where they differ."""
    return {
        "column_encodings": [encoding],
        "column_names": ["tokens"],
        "column_sizes": [size],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": _SHARD_BYTES,
        "version": 2,
    }


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _write_head(file: ExportFile, sizes: npt.NDArray[np.int64], config: dict[str, Any]) -> None:
    """What comes before the samples, whose sizes are given in bytes."""
    described = _dump(config)
    first = 4 + 4 * (len(sizes) + 1) + len(described)
    places = np.concatenate([[0], np.cumsum(sizes)]) + first
    file.write_array(np.array([len(sizes)]), np.uint32)
    file.write_array(places, np.uint32)
    file.write(described)


def _sample_head(count: int, dtype: np.dtype[Any]) -> bytes:
    """What comes before the ids of a sample: its size, one dimension, and their number."""
    size = count * dtype.itemsize
    if count < 1 << 8:
        return struct.pack("<IBB", 2 + size, 1 << 2, count)
    if count < 1 << 16:
        return struct.pack("<IBH", 3 + size, 1 << 2 | 1, count)
    return struct.pack("<IBI", 5 + size, 1 << 2 | 2, count)


def _stored(ids: npt.NDArray[Any], dtype: np.dtype[Any]) -> memoryview:
    """Ids as the bytes of a file."""
    if not len(ids):
        return memoryview(b"")
    return np.ascontiguousarray(ids, dtype.newbyteorder("<")).data.cast("B")


class _OpenShard:
    """A shard of documents; its samples are set aside until their number is known."""

    def __init__(self, folder: ExportFolder, config: dict[str, Any]) -> None:
        self._folder = folder
        self._config = config
        self._sizes: list[int] = []
        self._total = 8 + len(_dump(config))
        self._spool: IO[bytes] = folder.spool()

    def has_room(self, size: int) -> bool:
        """Whether a sample of so many bytes goes in; the first one always does."""
        return not self._sizes or self._total + size + 4 <= _SHARD_BYTES

    def begin_sample(self, head: bytes, size: int) -> None:
        """Begin a sample of `size` bytes, of which `head` are the first."""
        self._sizes.append(size)
        self._total += size + 4
        self._spool.write(head)

    def write(self, data: memoryview) -> None:
        """Append bytes of the sample."""
        self._spool.write(data)

    def close(self, number: int) -> tuple[ExportFile, int]:
        """Write the shard; returns its file and its samples."""
        file = self._folder.create(_shard_name(number))
        _write_head(file, np.array(self._sizes, np.int64), self._config)
        self._spool.seek(0)
        while block := self._spool.read(_COPY_BYTES):
            file.write(block)
        self._spool.close()
        file.close()
        return file, len(self._sizes)


def _write_index(
    folder: ExportFolder, config: dict[str, Any], shards: list[tuple[ExportFile, int]]
) -> None:
    described = [
        {
            **config,
            "raw_data": {"basename": file.name, "bytes": file.size, "hashes": {}},
            "samples": samples,
            "zip_data": None,
        }
        for file, samples in shards
    ]
    index = folder.create("index.json")
    index.write(_dump({"shards": described, "version": 2}))
    index.close()
