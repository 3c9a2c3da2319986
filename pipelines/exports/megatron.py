"""Megatron-LM's indexed dataset, a pair of files; a sequence per document.

    NAME_text_document.bin   ids, one document after the other
    NAME_text_document.idx   header, length and place of each sequence, where documents begin

An empty document has an entry in the index and no sequence, as their own program writes it.
"""

from __future__ import annotations

import re
import struct
from typing import IO

import numpy as np

from bpe.errors import SettingsError
from pipelines.exports.documents import DocumentLengths
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written, longest_document
from pipelines.exports.shard_source import ShardSource

__all__ = ["MegatronExport"]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_DTYPE_CODES = {"int32": 4, "uint16": 8}
_LONGEST = 2**31 - 1
_BLOCK = 1 << 20


class MegatronExport(Export):
    """Writes the ids, and sets the documents' lengths aside until the index can be written."""

    title = "Megatron's indexed dataset"
    takes = frozenset({"dtype", "name"})
    # There is no code for uint32.
    dtypes = ("uint16", "int32")
    file_names = re.compile(r".+_text_document\.(bin|idx)")
    keeps_documents = False

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        longest = longest_document(source, _LONGEST)
        if longest > _LONGEST:
            raise SettingsError(
                f"{source.directory}: a document has {longest} ids, and {self.title} holds up to "
                f"{_LONGEST} in one; npy and datatrove can hold it"
            )

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the two files."""
        dtype = self.dtype(source)
        prefix = f"{self.options.name or 'tokens'}_text_document"
        tokens = folder.create(f"{prefix}.bin")
        documents = DocumentLengths()
        with folder.spool() as spool:
            for batch in source.batches():
                tokens.write_array(batch.ids, dtype)
                ended = documents.add(batch.lengths, batch.ends)
                spool.write(ended.astype("<i4").tobytes())
            tokens.close()
            index = folder.create(f"{prefix}.idx")
            _write_index(index, spool, dtype)
            index.close()
        return Written(documents=source.documents, tokens=source.tokens)


def _blocks(spool: IO[bytes]) -> list[tuple[int, int]]:
    """Ranges of the documents set aside: first byte, number of bytes."""
    size = spool.seek(0, 2)
    step = 4 * _BLOCK
    return [(start, min(step, size - start)) for start in range(0, size, step)]


def _read(spool: IO[bytes], block: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    spool.seek(block[0])
    return np.frombuffer(spool.read(block[1]), "<i4")


def _write_index(index: ExportFile, spool: IO[bytes], dtype: np.dtype[np.generic]) -> None:
    """Write the index of the documents whose lengths were set aside.

    Args:
        index: the file.
        spool: int32, little-endian: ids of each document.
        dtype: of the ids.
    """
    blocks = _blocks(spool)
    sequences = sum(int(np.count_nonzero(_read(spool, block))) for block in blocks)
    documents = sum(size for _, size in blocks) // 4
    index.write(_MAGIC + struct.pack("<QB", _VERSION, _DTYPE_CODES[dtype.name]))
    index.write(struct.pack("<QQ", sequences, documents + 1))
    for block in blocks:
        lengths = _read(spool, block)
        index.write_array(lengths[lengths > 0], np.int32)
    place = 0
    for block in blocks:
        lengths = _read(spool, block)
        sizes = lengths[lengths > 0].astype(np.int64) * dtype.itemsize
        ends = np.cumsum(sizes) + place
        index.write_array(ends - sizes, np.int64)
        place = int(ends[-1]) if len(ends) else place
    index.write_array(np.zeros(1), np.int64)
    before = 0
    for block in blocks:
        counts = np.cumsum(_read(spool, block) > 0) + before
        index.write_array(counts, np.int64)
        before = int(counts[-1])
