"""Random access to a finished output of `beam-bpe encode`, by row, document and token position.

    shards = TokenShards("out/tokens")
    shards[3]                       ids of row 3, a view of the mapped file
    shards.document(0)              ids of a document, however many rows it goes over
    shards.tokens(1000, 1000 + 65)  65 ids of all shards taken as one row after the other

It stands here, not in `bpe`, since it reads what `schemas` describes, and imports no Beam: a
training loop needs NumPy and pyarrow only. Folders must be local: files are mapped into memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import index as as_index
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import OutputError
from pipelines.records import decode_record
from schemas.sidecars import MANIFEST_VERSION, Manifest, ShardSidecar
from schemas.token_shards import token_shard_schema
from schemas.versions import check_version

__all__ = ["TokenRow", "TokenShards"]

# Shards that stay mapped; views keep theirs beyond that.
_OPEN_SHARDS = 128

_Ids = npt.NDArray[Any]
_Ints = npt.NDArray[np.int64]


class TokenRow(NamedTuple):
    """A row with all its columns; see `schemas.token_shards`."""

    ids: _Ids
    document_id: str
    source: str
    byte_start: int
    part: int
    is_last: bool


class TokenShards(Sequence[_Ids]):
    """The rows of all shards, in order, as arrays of ids.

    Arrays are read-only views of mapped files, except where ids are asked for that lie in several
    record batches: those are copied. PyTorch takes them as `torch.from_numpy(ids.astype("int64"))`.
    Pickled (to the workers of a data loader, say), it is opened again by its path.

    Args:
        directory: a local folder with a manifest.

    Attributes:
        dtype: of the ids, uint16 or uint32.
        manifest: of the folder.

    Raises:
        OutputError: the folder is unfinished, or a shard is missing or damaged.
        IndexError: no row, document or token has that number.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.path.abspath(os.fspath(directory))
        self.manifest = _read_manifest(self._directory)
        shards = self.manifest.shards
        self._rows = _sums([shard.rows for shard in shards])
        self._documents = _sums([shard.documents for shard in shards])
        self._tokens = _sums([shard.tokens for shard in shards])
        self._shard: Callable[[int], _Shard] = lru_cache(_OPEN_SHARDS)(self._open)
        self.dtype: np.dtype[Any] = self._shard(0).dtype

    def __reduce__(self) -> tuple[type[TokenShards], tuple[str]]:
        return TokenShards, (self._directory,)

    def __repr__(self) -> str:
        return (
            f"TokenShards({self._directory!r}): {len(self):,} rows, {self.document_count:,} "
            f"documents, {self.token_count:,} tokens of {self.dtype}"
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
        """How many ids there are in all rows together."""
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
        for number in range(len(self.manifest.shards)):
            yield from self._shard(number)

    def row(self, number: int) -> TokenRow:
        """A row with what is known of it."""
        shard, within = self._find(number)
        return shard.row(within)

    def document_rows(self, number: int) -> range:
        """The rows of a document, counted from 0 in the order in which they end."""
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

    def _find(self, row: int) -> tuple[_Shard, int]:
        number, within = self._place(row)
        return self._shard(number), within

    def _last_row(self, document: int) -> int:
        number = int(np.searchsorted(self._documents, document, side="right")) - 1
        within = self._shard(number).last_rows[document - int(self._documents[number])]
        return int(self._rows[number] + within)

    def _open(self, number: int) -> _Shard:
        shard = self.manifest.shards[number]
        return _Shard(os.path.join(self._directory, shard.file), shard)


def _read_manifest(directory: str) -> Manifest:
    path = os.path.join(directory, "manifest.json")
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be read ({error.strerror}): the folder is no finished output of "
            "beam-bpe encode"
        ) from error
    return decode_record(
        data, path, Manifest, version=MANIFEST_VERSION, remedy="run the encode command again"
    )


def _sums(counts: Sequence[int]) -> _Ints:
    """0, and the sums of the first 1, 2, … counts."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _checked(number: int, count: int, what: str) -> int:
    """The number of something, from the end if it is negative."""
    found = as_index(number)
    if not -count <= found < count:
        raise IndexError(f"{what} {number}: there are {count}")
    return found % count


class _Shard:
    """One mapped shard."""

    def __init__(self, path: str, facts: ShardSidecar) -> None:
        try:
            with pa.memory_map(path) as file:
                reader = pa.ipc.open_file(file)
                self._batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
            kind = reader.schema.field("input_ids").type.value_type
            self.dtype = np.dtype(kind.to_pandas_dtype())
            check_version(reader.schema, token_shard_schema(int(np.iinfo(self.dtype).max)))
        except (OSError, ValueError, KeyError, AttributeError, pa.ArrowException) as error:
            raise OutputError(
                f"{path}: cannot be read ({error}); beam-bpe verify tells what is damaged"
            ) from error
        lists = [batch["input_ids"] for batch in self._batches]
        self._offsets: list[npt.NDArray[np.int32]] = [each.offsets.to_numpy() for each in lists]
        self._values: list[_Ids] = [each.values.to_numpy() for each in lists]
        self._rows = _sums([batch.num_rows for batch in self._batches])
        self._tokens = _sums([int(each[-1] - each[0]) for each in self._offsets])
        if (self._rows[-1], self._tokens[-1]) != (facts.rows, facts.tokens):
            raise OutputError(
                f"{path}: has {self._rows[-1]} rows with {self._tokens[-1]} ids, the manifest says "
                f"{facts.rows} with {facts.tokens}; beam-bpe verify tells what is damaged"
            )

    def __iter__(self) -> Iterator[_Ids]:
        for offsets, values in zip(self._offsets, self._values, strict=True):
            places = offsets.tolist()
            for start, end in pairwise(places):
                yield values[start:end]

    @cached_property
    def last_rows(self) -> _Ints:
        """The rows with which documents end."""
        ends = [batch["is_last"].to_numpy(zero_copy_only=False) for batch in self._batches]
        return np.flatnonzero(np.concatenate(ends)) if ends else np.zeros(0, np.int64)

    def ids(self, row: int) -> _Ids:
        """The ids of a row."""
        number, within = self._place(row)
        offsets = self._offsets[number]
        return self._values[number][offsets[within] : offsets[within + 1]]

    def row(self, row: int) -> TokenRow:
        """All columns of a row."""
        number, within = self._place(row)
        batch = self._batches[number]
        names = ("document_id", "source", "byte_start", "part", "is_last")
        return TokenRow(self.ids(row), *(batch[name][within].as_py() for name in names))

    def token_position(self, row: int) -> int:
        """How many ids of the shard come before a row."""
        number, within = self._place(row)
        offsets = self._offsets[number]
        return int(self._tokens[number] + offsets[within] - offsets[0])

    def pieces(self, start: int, stop: int) -> list[_Ids]:
        """The ids from `start` to before `stop`, as one view for each record batch."""
        found = []
        while start < stop:
            number = int(np.searchsorted(self._tokens, start, side="right")) - 1
            end = min(stop, int(self._tokens[number + 1]))
            base = int(self._offsets[number][0]) - int(self._tokens[number])
            found.append(self._values[number][base + start : base + end])
            start = end
        return found

    def _place(self, row: int) -> tuple[int, int]:
        number = int(np.searchsorted(self._rows, row, side="right")) - 1
        return number, row - int(self._rows[number])
