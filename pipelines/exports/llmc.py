"""llm.c: files of a header and ids, for validation first and then for training.

    NAME_val_000000.bin, NAME_train_000001.bin, …

A header is 256 int32: magic, version, number of ids, zeros. uint16 ids make files as of GPT-2,
which its C programs read; uint32 ids make files as of Llama 3, which its Python programs read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.errors import SettingsError
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.exports.protocol import Export, Written
from pipelines.exports.shard_source import ShardSource
from pipelines.exports.validation_split import check_held_out, held_out_of

__all__ = ["LlmcExport"]

_HEADER_INTS = 256
_MAGIC_AND_VERSION = {"uint16": (20240520, 1), "uint32": (20240801, 7)}
_MOST_TOKENS = 2**31 - 1
_TOKENS_PER_FILE = 100_000_000


class LlmcExport(Export):
    """Writes files of a set number of ids; documents go on in the next file."""

    title = "llm.c's files"
    takes = frozenset({"dtype", "name", "val_fraction", "tokens_per_file"})
    file_names = re.compile(r".+_(train|val)_\d{6,}\.bin")
    keeps_documents = False
    has_validation = True

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        if (self.options.tokens_per_file or 1) > _MOST_TOKENS:
            raise SettingsError(
                f"--tokens-per-file {self.options.tokens_per_file}: a header of {self.title} "
                f"counts up to {_MOST_TOKENS}"
            )
        check_held_out(source, self.options.val_fraction)

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write the files of both sides, as the rows come."""
        fraction = self.options.val_fraction
        val_tokens = _count_held_out(source, fraction)
        name, dtype = self.options.name or "tokens", self.dtype(source)
        size = self.options.tokens_per_file or _TOKENS_PER_FILE
        val = _Files(folder, f"{name}_val", first=0, tokens=val_tokens, size=size, dtype=dtype)
        # Numbers go on from one side to the other, as in the files of their own programs.
        train = _Files(
            folder,
            f"{name}_train",
            first=val.count,
            tokens=source.tokens - val_tokens,
            size=size,
            dtype=dtype,
        )
        held_out = held_out_of(source, fraction)
        for batch in source.batches():
            if held_out is None:
                train.write(batch.ids)
                continue
            chosen = held_out.divide(batch)
            val.write(batch.ids[chosen])
            train.write(batch.ids[~chosen])
        sides = held_out.sides(source) if held_out is not None else {}
        return Written(documents=source.documents, tokens=source.tokens, sides=sides)


def _count_held_out(source: ShardSource, fraction: float | None) -> int:
    """Ids of the documents that are held out: the headers come before the ids."""
    held_out = held_out_of(source, fraction)
    if held_out is None:
        return 0
    return sum(int(lengths[held_out.rows(ends)].sum()) for lengths, ends in source.lengths())


class _Files:
    """The files of one side.

    Args:
        folder: where they go.
        prefix: of their names.
        first: number of the first.
        tokens: in all of them together.
        size: ids in each but the last.
        dtype: of the ids.

    Attributes:
        count: how many there will be.
    """

    def __init__(
        self,
        folder: ExportFolder,
        prefix: str,
        *,
        first: int,
        tokens: int,
        size: int,
        dtype: np.dtype[Any],
    ) -> None:
        self.count = -(-tokens // size)
        self._folder = folder
        self._prefix = prefix
        self._number = first
        self._left = tokens
        self._size = size
        self._dtype = dtype
        self._file: ExportFile | None = None
        self._room = 0

    def write(self, ids: npt.NDArray[Any]) -> None:
        """Append ids, closing files where they are full."""
        while len(ids):
            file = self._file or self._begin()
            part, ids = ids[: self._room], ids[self._room :]
            file.write_array(part, self._dtype)
            self._room -= len(part)
            if not self._room:
                file.close()
                self._file = None

    def _begin(self) -> ExportFile:
        self._room = min(self._size, self._left)
        self._left -= self._room
        self._file = self._folder.create(f"{self._prefix}_{self._number:06d}.bin")
        self._number += 1
        header = np.zeros(_HEADER_INTS, np.int32)
        header[:3] = (*_MAGIC_AND_VERSION[self._dtype.name], self._room)
        self._file.write_array(header, np.int32)
        return self._file
