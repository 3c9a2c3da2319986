"""Hashes of documents that decide their split and their place in a shuffle.

A hash is 64 bits, the same on every machine and for every version of the libraries: words of eight
bytes are mixed into the state one after another with the finalizer of SplitMix64 (Steele, Lea and
Flood 2014), natively for all rows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import OutputError
from pipelines.corpus.splitmix64 import splitmix64

if TYPE_CHECKING:
    # Brings Beam, which readers of names of splits do without.
    from pipelines.corpus.plan import Unit

__all__ = ["DocumentKeys", "hash_integers", "hash_strings", "shuffle_keys"]

_Hashes = npt.NDArray[np.uint64]
_MASK = (1 << 64) - 1
_SHUFFLE_DOMAIN = 0x5CA77E12


def hash_integers(columns: list[npt.NDArray[np.int64]], seed: int) -> _Hashes:
    """Hash of each row of some integer columns.

    Args:
        columns: int64, at least one, all of the same length.
        seed: any integer; its low 64 bits count.
    """
    state = splitmix64(np.full(len(columns[0]), seed & _MASK, np.uint64))
    for column in columns:
        state = splitmix64(state ^ column.astype(np.uint64))
    return state


def hash_strings(strings: pa.Array, seed: int) -> _Hashes:
    """Hash of each string's UTF-8 bytes.

    Args:
        strings: string, without nulls.
        seed: as for `hash_integers`.
    """
    data, starts, lengths = _bytes_of(strings)
    state = hash_integers([lengths], seed)
    # Rows by descending length: those that still have bytes are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    words = -(-lengths[order] // 8)
    for index in range(int(words[0]) if len(words) else 0):
        rows = order[: np.searchsorted(-words, -index, side="left")]
        words_there = _words(data, starts[rows] + 8 * index, lengths[rows] - 8 * index)
        state[rows] = splitmix64(state[rows] ^ words_there)
    return state


def _bytes_of(
    strings: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The array's bytes, with eight zeros after them, and start and length of each string."""
    _, offset_buffer, data_buffer = strings.buffers()
    if not len(strings):
        none = np.zeros(0, np.int64)
        return np.zeros(8, np.uint8), none, none
    offsets = np.frombuffer(offset_buffer, np.int32)
    offsets = offsets[strings.offset : strings.offset + len(strings) + 1].astype(np.int64)
    content: Any = b"" if data_buffer is None else data_buffer
    used = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    data = np.concatenate([used, np.zeros(8, np.uint8)])
    return data, offsets[:-1] - offsets[0], np.diff(offsets)


def _words(
    data: npt.NDArray[np.uint8],
    places: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
) -> _Hashes:
    """The eight bytes at each place, little-endian, zeros for those beyond the `left` bytes."""
    # A view with an eight-byte number at every byte.
    every = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))
    unused = np.uint64(8) * np.maximum(8 - left, 0).astype(np.uint64)
    words: _Hashes = every[places] << unused >> unused
    return words


def shuffle_keys(files: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], seed: int) -> _Hashes:
    """Places of documents in a shuffle, by the numbers of their files and where they start."""
    return hash_integers([files, starts], seed ^ _SHUFFLE_DOMAIN)


class DocumentKeys:
    """Places of a unit's documents in a shuffle: hash of seed, file and start of the document.

    All rows of a document have its key, in this unit and in others.

    Args:
        unit: being read; it knows the index of each file.
        seed: of the shuffle.
    """

    def __init__(self, unit: Unit, seed: int) -> None:
        files = {part.file.source: part.file.index for part in unit.ranges}
        self._files = np.array(list(files.values()), np.int64)
        self._seed = seed
        # Start of the document that the last row belongs to.
        self._start: int | None = None

    def of(self, batch: pa.RecordBatch) -> _Hashes:
        """The key of each row, uint64.

        Args:
            batch: columns of `schemas.token_shards`, as `pipelines.shards.token_rows` makes them
                for the unit: in reading order, the unit's files as the dictionary of `source`.
        """
        if not batch.num_rows:
            return np.zeros(0, np.uint64)
        files = self._files[batch["source"].indices.to_numpy()]
        is_first = batch["part"].to_numpy() == 0
        starts = batch["byte_start"].to_numpy()
        # A row that goes on with a document has the start of the last row that began one.
        latest = np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), -1))
        document_starts = starts[latest]
        document_starts[latest < 0] = self._start_before(batch) if latest[0] < 0 else 0
        self._start = int(document_starts[-1])
        return shuffle_keys(files, document_starts, self._seed)

    def _start_before(self, batch: pa.RecordBatch) -> int:
        """Start of the document with which the batch goes on."""
        if self._start is not None:
            return self._start
        # It began in another unit. Only text files are cut that way, and their ids say where.
        name = str(batch["document_id"][0])
        try:
            return int(name.rsplit(":", 1)[1])
        except (IndexError, ValueError) as error:
            raise OutputError(
                f"document {name}: goes on from another unit, and its id does not say where it "
                "starts, so that it cannot be shuffled; this is a fault of beam-bpe"
            ) from error
