"""What an export reads: the rows of a finished folder of shards, checked on the way.

Of packed shards, the segments stand for rows: their padding is left out, and documents follow each
other as they do in shards that are not packed. `packed_batches` gives the rows as they are.

One batch is in memory at a time, as views of the mapped file where it is local and uncompressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import OutputError, SettingsError
from pipelines.corpus.settings import digest_of
from pipelines.shards.manifest import read_manifest
from pipelines.shards.shard_files import REPAIR, list_shards
from pipelines.shards.shard_reader import ShardReader, open_shard
from pipelines.shards.shards_of_split import shards_of_split
from pipelines.shards.token_rows import with_marks
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import MANIFEST
from pipelines.storage.wording import counted
from schemas.sidecars import ShardSidecar

__all__ = ["ShardSource", "TokenBatch"]

_LABELS = ["document_id", "source", "byte_start"]


@dataclass(frozen=True)
class TokenBatch:
    """Rows in the order of the shards.

    Attributes:
        ids: uint16 or uint32, the ids of all rows, one row after the other; not to be written to.
        lengths: int64, ids of each row.
        starts, ends: per row, whether a document begins, and ends, with it.
        labels: per row, the columns `document_id`, `source` and `byte_start`.
    """

    ids: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]
    starts: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.bool_]
    labels: pa.RecordBatch


class ShardSource:
    """A finished output of `beam-bpe encode`, with the marks that an export adds.

    Args:
        directory: the folder, on any file system.
        bos, eos: ids put before and after each document, or None.
        split: name of the split to read; None only if the folder has none.
        validation: name of a split that follows it, as documents held out.
        progress: called with the bytes of each shard once it has been read.

    Attributes:
        manifest: of the folder.
        shards: of the split, in order.
        training_documents: documents of the first of two splits; None without `validation`.
        row_ids: ids in each packed row; None if the shards are not packed.
        digest: sha256 (hex) of the shards' names and hashes, and of the marks.
        dtype: of the ids, uint16 or uint32.
        documents: how many end in the shards, the empty ones too.
        tokens: how many, with the marks and without padding.
        rows: how many.
        largest: the largest id, with the marks; -1 without ids.
        largest_place: the shard with that id, or the mark, for messages.

    Raises:
        OutputError: the folder is unfinished, or a shard is missing or of another size.
        SettingsError: the folder has no such split, or has splits and none is named.
    """

    def __init__(
        self,
        directory: str,
        *,
        bos: int | None = None,
        eos: int | None = None,
        split: str | None = None,
        validation: str | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.directory = directory
        self._remedy = f"beam-bpe verify {directory} finds what is damaged: {REPAIR}"
        self.manifest = read_manifest(directory)
        self.bos = bos
        self.eos = eos
        self._progress = progress
        self.shards = shards_of_split(directory, self.manifest, split, "--split")
        self.training_documents: int | None = None
        if validation is not None:
            self.training_documents = sum(shard.documents for shard in self.shards)
            self.shards += shards_of_split(directory, self.manifest, validation, "--split")
        self.row_ids: int | None = self.manifest.settings.get("pack")
        self._check_files()
        shards = [[shard.file, shard.sha256] for shard in self.shards]
        self.digest = digest_of({"shards": shards, "bos": bos, "eos": eos})
        self.dtype = self._read_dtype()
        marks = [mark for mark in (bos, eos) if mark is not None]
        self.documents = sum(shard.documents for shard in self.shards)
        self.rows = sum(shard.rows for shard in self.shards)
        self.tokens = sum(shard.tokens for shard in self.shards) + len(marks) * self.documents
        self.largest, self.largest_place = self._find_largest(marks)

    def check_joinable(self, title: str) -> None:
        """Refuse packed shards whose segments are not the documents one after the other.

        Args:
            title: of the format, for messages.

        Raises:
            SettingsError: rows were put together out of order, or parts of documents left out.
        """
        if self.row_ids is None:
            return
        settings = self.manifest.settings
        for name, value in (("pack_mode", "best-fit"), ("pack_tail", "drop")):
            if settings.get(name) == value:
                raise SettingsError(
                    f"{self.directory}: was packed with --{name.replace('_', '-')} {value}: not "
                    f"all documents are whole and in order, which {title} cannot do without; "
                    "export to hf, mds or litdata, which take the packed rows, or encode without "
                    "--pack"
                )

    def batches(self) -> Iterator[TokenBatch]:
        """All rows, in order; of packed shards, all segments.

        Raises:
            OutputError: a shard cannot be read, or its rows are not what the manifest says of them.
        """
        reading = _RowCheck()
        for shard in self.shards:
            for batch in self._read_tokens(shard, reading):
                yield self._with_marks(batch)
            self._progress(shard.file_bytes)
        if reading.inside:
            raise self._failure(self.shards[-1].file, "its last document has no end")

    def packed_batches(self) -> Iterator[pa.RecordBatch]:
        """All packed rows, in order, with all columns (`schemas.packed_shards`).

        Raises:
            OutputError: a shard cannot be read, or its rows are not what the manifest says of them.
        """
        for shard in self.shards:
            yield from self._read_shard(shard)
            self._progress(shard.file_bytes)

    def lengths(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
        """Ids of each row, with the marks, and whether it ends a document; ids are not read."""
        marks = (self.bos is not None, self.eos is not None)
        reading = _RowCheck()
        for shard in self.shards:
            for batch in self._read_tokens(shard, reading):
                yield batch.lengths + marks[0] * batch.starts + marks[1] * batch.ends, batch.ends

    def _check_files(self) -> None:
        sizes = list_shards(self.directory, tuple({shard.split for shard in self.shards}))
        for shard in self.shards:
            if shard.file not in sizes:
                raise self._failure(shard.file, "is missing")
            if sizes[shard.file] != shard.file_bytes:
                raise self._failure(
                    shard.file,
                    f"has {sizes[shard.file]} bytes, {MANIFEST} says {shard.file_bytes}",
                )

    def _read_dtype(self) -> np.dtype[Any]:
        """Of the first shard; the others are checked against it as they are read."""
        with self._open(self.shards[0]) as reader:
            return reader.dtype

    def _open(
        self, shard: ShardSidecar, id_type: pa.DataType | None = None
    ) -> AbstractContextManager[ShardReader]:
        path = join(self.directory, shard.file)
        return open_shard(path, self.row_ids, id_type=id_type, remedy=self._remedy)

    def _find_largest(self, marks: list[int]) -> tuple[int, str]:
        found = [(shard.max_id, shard.file) for shard in self.shards]
        largest = [(top, join(self.directory, name)) for top, name in found if top is not None]
        named = [(mark, "--append-eos or --prepend-bos") for mark in marks]
        return max([*largest, *named], default=(-1, self.directory), key=lambda item: item[0])

    def _read_tokens(self, shard: ShardSidecar, reading: _RowCheck) -> Iterator[TokenBatch]:
        convert = _token_batch if self.row_ids is None else _segment_batch
        first = 0
        for columns in self._read_shard(shard):
            batch = convert(columns)
            rows = np.arange(columns.num_rows) if self.row_ids is None else _segment_rows(columns)
            try:
                reading.check(batch, first + rows)
            except ValueError as error:
                raise self._out_of_order(shard.file, error) from error
            yield batch
            first += columns.num_rows

    def _read_shard(self, shard: ShardSidecar) -> Iterator[pa.RecordBatch]:
        """The batches of a shard, checked, and counted against what the manifest says."""
        rows = tokens = 0
        with self._open(shard, pa.from_numpy_dtype(self.dtype)) as reader:
            for columns in reader:
                yield columns
                rows += columns.num_rows
                tokens += _count_tokens(columns)
        if (rows, tokens) != (shard.rows, shard.tokens):
            raise self._failure(
                shard.file,
                f"has {counted(rows, 'row')} with {counted(tokens, 'id')}, {MANIFEST} says "
                f"{shard.rows} with {shard.tokens}",
            )

    def _out_of_order(self, name: str, error: ValueError) -> OutputError | SettingsError:
        """Of a document whose rows do not follow each other."""
        if self.manifest.settings.get("shuffle") != "shard":
            return self._failure(name, str(error))
        return SettingsError(
            f"{join(self.directory, name)}: {error}: a document longer than a shard was shuffled "
            "with --shuffle shard, range by range; encode with a larger --shard-bytes, or with "
            "--shuffle global, which keeps documents together"
        )

    def _with_marks(self, batch: TokenBatch) -> TokenBatch:
        ids, lengths = with_marks(
            batch.ids, batch.lengths, batch.starts, batch.ends, bos=self.bos, eos=self.eos
        )
        return TokenBatch(ids, lengths, batch.starts, batch.ends, batch.labels)

    def _failure(self, name: str, what: str) -> OutputError:
        return OutputError(f"{join(self.directory, name)}: {what}; {self._remedy}")


def _token_batch(columns: pa.RecordBatch) -> TokenBatch:
    return TokenBatch(
        ids=columns["input_ids"].flatten().to_numpy(),
        lengths=pc.list_value_length(columns["input_ids"]).to_numpy().astype(np.int64),
        starts=columns["part"].to_numpy() == 0,
        ends=columns["is_last"].to_numpy(zero_copy_only=False),
        labels=columns.select(_LABELS),
    )


def _segment_batch(columns: pa.RecordBatch) -> TokenBatch:
    """The segments of packed rows, without padding."""
    lengths = columns["lengths"].flatten().to_numpy().astype(np.int64)
    ids = columns["input_ids"].flatten().to_numpy()
    if len(ids) != int(lengths.sum()):
        ids = ids[_filled_places(columns, lengths)]
    lists = {"document_id": "document_ids", "source": "sources", "byte_start": "byte_starts"}
    labels = [columns[name].flatten() for name in lists.values()]
    return TokenBatch(
        ids=ids,
        lengths=lengths,
        starts=columns["is_first"].flatten().to_numpy(zero_copy_only=False),
        ends=columns["is_last"].flatten().to_numpy(zero_copy_only=False),
        labels=pa.RecordBatch.from_arrays(labels, names=list(lists)),
    )


def _filled_places(
    columns: pa.RecordBatch, lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which ids of packed rows are no padding: in each row, those before the segments' end."""
    size = columns["input_ids"].type.list_size
    filled = np.bincount(_segment_rows(columns), lengths, columns.num_rows)
    places: npt.NDArray[np.bool_] = np.arange(size) < filled[:, None]
    return places.ravel()


def _segment_rows(columns: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """The packed row of each segment."""
    segments = pc.list_value_length(columns["lengths"]).to_numpy()
    return np.repeat(np.arange(columns.num_rows), segments)


def _count_tokens(columns: pa.RecordBatch) -> int:
    if "lengths" in columns.schema.names:
        return int(pc.sum(columns["lengths"].flatten()).as_py() or 0)
    return len(columns["input_ids"].flatten())


class _RowCheck:
    """Sees to it that the rows of each document follow each other, over batches and shards.

    Attributes:
        inside: whether the last row leaves a document open.
    """

    def __init__(self) -> None:
        self.inside = False
        self._document = ""

    def check(self, batch: TokenBatch, rows: npt.NDArray[np.int64]) -> None:
        """Take the next batch; `rows` are their numbers in the shard.

        Raises:
            ValueError: a document does not go on where it should; the text names the row.
        """
        if not len(batch.lengths):
            return
        names = batch.labels["document_id"]
        goes_on = np.concatenate([[self.inside], ~batch.ends[:-1]])
        same = pc.equal(names.slice(1), names.slice(0, len(names) - 1))
        same_name = np.concatenate(
            [[names[0].as_py() == self._document], same.to_numpy(zero_copy_only=False)]
        )
        wrong = np.flatnonzero((goes_on == batch.starts) | (goes_on & ~same_name))
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"row {rows[at]} ({names[at].as_py()}) does not continue the document of "
                "the row before it, or begins inside it"
            )
        self.inside = not bool(batch.ends[-1])
        self._document = names[len(names) - 1].as_py()
