"""Random access to a finished output of `beam-bpe encode`, by row, document and token position.

    shards = TokenShards("out/tokens")
    shards[3]                       ids of row 3, a view of the mapped file
    shards.document(0)              ids of a document, however many rows it goes over
    shards.tokens(1000, 1000 + 65)  65 ids of all shards taken as one row after the other

Packed rows come whole, padding included, and `row` gives what `schemas.packed_shards` says of them:

    row = shards.row(3)
    row.ids, row.lengths    N ids, and how many belong to each segment

Of an output with splits, one is read: `TokenShards("out/tokens", split="train")`. Shards without
compression are mapped, and arrays are views of them; compressed ones are decompressed batch by
batch, and the latest few batches are kept.

It stands here, not in `bpe`, since it reads what `schemas` describes, and imports no Beam: a
training loop needs NumPy and pyarrow only. Folders must be local: files are mapped into memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import index as as_index
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from bpe.errors import OutputError, SettingsError
from pipelines.shards.mapped_shard import MappedShard, PackedRow, TokenRow, sums
from pipelines.shards.shards_of_split import shards_of_split, split_names
from pipelines.storage.output_layout import MANIFEST, OLD_MANIFEST
from pipelines.storage.own_paths import own_path
from pipelines.storage.records import decode_record
from pipelines.storage.wording import counted
from schemas.sidecars import MANIFEST_VERSION, Manifest, ShardSidecar

__all__ = ["PackedRow", "TokenRow", "TokenShards"]

# Shards that stay mapped; views keep theirs beyond that.
_OPEN_SHARDS = 128

_Ids = npt.NDArray[Any]
_Ints = npt.NDArray[np.int64]


class TokenShards(Sequence[_Ids]):
    """The rows of all shards, in order, as arrays of ids.

    Arrays are read-only views of mapped files, except where ids are asked for that lie in several
    record batches: those are copied. PyTorch takes them as `torch.from_numpy(ids.astype("int64"))`.
    Pickled (to the workers of a data loader, say), it is opened again by its path.

    Args:
        directory: a local folder with a manifest.
        split: name of the split to read; None only if the folder has none.

    Attributes:
        dtype: of the ids, uint16 or uint32.
        manifest: of the folder.
        row_ids: ids in each packed row; None if the shards are not packed.

    Raises:
        OutputError: the folder is unfinished, or a shard is missing or damaged.
        SettingsError: no such split, several and none named; a document of packed rows is asked
            for.
        IndexError: no row, document or token has that number.
    """

    def __init__(self, directory: str | os.PathLike[str], split: str | None = None) -> None:
        self._directory = os.path.abspath(os.fspath(directory))
        self.manifest = _read_manifest(self._directory)
        self._split = split
        shards = shards_of_split(self._directory, self.manifest, split, "split")
        self._sidecars = shards
        self.row_ids: int | None = self.manifest.settings.get("pack")
        self._rows = sums([shard.rows for shard in shards])
        self._documents = sums([shard.documents for shard in shards])
        self._tokens = sums([self._ids_in(shard) for shard in shards])
        self._shard: Callable[[int], MappedShard] = lru_cache(_OPEN_SHARDS)(self._open)
        self.dtype: np.dtype[Any] = self._shard(0).dtype

    def __reduce__(self) -> tuple[type[TokenShards], tuple[str, str | None]]:
        return TokenShards, (self._directory, self._split)

    def __repr__(self) -> str:
        return (
            f"TokenShards({self._directory!r}): {counted(len(self), 'row')}, "
            f"{counted(self.document_count, 'document')}, {counted(self.token_count, 'token')} of "
            f"{self.dtype}"
        )

    def __len__(self) -> int:
        """How many rows there are."""
        return int(self._rows[-1])

    @property
    def document_count(self) -> int:
        """How many documents there are, the empty ones too."""
        return int(self._documents[-1])

    @property
    def token_count(self) -> int:
        """How many ids there are in all rows together, padding included."""
        return int(self._tokens[-1])

    @overload
    def __getitem__(self, row: int) -> _Ids: ...

    @overload
    def __getitem__(self, row: slice) -> list[_Ids]: ...

    def __getitem__(self, row: int | slice) -> _Ids | list[_Ids]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(len(self)))]
        shard, within = self._find(row)
        return shard.ids(within)

    def __iter__(self) -> Iterator[_Ids]:
        for number in range(len(self._sidecars)):
            yield from self._shard(number)

    def row(self, number: int) -> TokenRow | PackedRow:
        """A row with what is known of it; a `PackedRow` if the shards are packed."""
        shard, within = self._find(number)
        return shard.row(within)

    def document_rows(self, number: int) -> range:
        """The rows of a document, counted from 0 in the order in which they end."""
        if self.row_ids is not None:
            raise SettingsError(
                f"{self._directory}: its rows are packed, and a document may lie in several; "
                "row(n) says which documents row n holds"
            )
        number = _checked(number, self.document_count, "document")
        first = self._last_row(number - 1) + 1 if number else 0
        return range(first, self._last_row(number) + 1)

    def document(self, number: int) -> _Ids:
        """The ids of a document, with the BOS and EOS that encode put there."""
        rows = self.document_rows(number)
        return self.tokens(self.token_position(rows.start), self.token_position(rows.stop))

    def token_position(self, row: int) -> int:
        """How many ids come before a row; `row` may be one more than the last."""
        if row == len(self):
            return self.token_count
        number, within = self._place(row)
        return int(self._tokens[number]) + self._shard(number).token_position(within)

    def tokens(self, start: int, stop: int) -> _Ids:
        """The ids from `start` to before `stop`, over the borders of rows and shards."""
        start, stop = as_index(start), as_index(stop)
        if not 0 <= start <= stop <= self.token_count:
            raise IndexError(
                f"tokens {start} to {stop}: {self._directory} holds tokens 0 to {self.token_count}"
            )
        pieces: list[_Ids] = []
        while start < stop:
            number = int(np.searchsorted(self._tokens, start, side="right")) - 1
            base = int(self._tokens[number])
            end = min(stop, int(self._tokens[number + 1]))
            pieces += self._shard(number).pieces(start - base, end - base)
            start = end
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros(0, self.dtype)

    def _place(self, row: int) -> tuple[int, int]:
        """Number of a row's shard, and of the row in it."""
        row = _checked(row, len(self), "row")
        number = int(np.searchsorted(self._rows, row, side="right")) - 1
        return number, row - int(self._rows[number])

    def _find(self, row: int) -> tuple[MappedShard, int]:
        number, within = self._place(row)
        return self._shard(number), within

    def _last_row(self, document: int) -> int:
        number = int(np.searchsorted(self._documents, document, side="right")) - 1
        within = self._shard(number).last_rows[document - int(self._documents[number])]
        return int(self._rows[number] + within)

    def _ids_in(self, shard: ShardSidecar) -> int:
        return shard.tokens if self.row_ids is None else shard.rows * self.row_ids

    def _open(self, number: int) -> MappedShard:
        shard = self._sidecars[number]
        path = own_path(self._directory, shard.file)
        return MappedShard(path, shard.rows, self._ids_in(shard), self.row_ids)


def _read_manifest(directory: str) -> Manifest:
    path = own_path(directory, MANIFEST)
    old = own_path(directory, OLD_MANIFEST)
    if os.path.isfile(old) and not os.path.exists(path):
        path = old
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        _refuse_split(directory)
        raise OutputError(
            f"{path}: cannot be read ({error.strerror}): the folder is no finished output of "
            "beam-bpe encode"
        ) from error
    return decode_record(
        data, path, Manifest, version=MANIFEST_VERSION, remedy="run the encode command again"
    )


def _refuse_split(directory: str) -> None:
    """Say how a folder is read that is a split of a finished output.

    Raises:
        OutputError: it is one.
    """
    parent, name = os.path.split(directory)
    if os.path.isfile(os.path.join(parent, MANIFEST)):
        manifest = _read_manifest(parent)
        if name in split_names(manifest):
            raise OutputError(
                f"{directory}: is the split {name} of an output; open it as "
                f"TokenShards({parent!r}, split={name!r})"
            )


def _checked(number: int, count: int, what: str) -> int:
    """The number of something, from the end if it is negative."""
    found = as_index(number)
    if not -count <= found < count:
        raise IndexError(f"{what} {number}: there are {count}")
    return found % count
