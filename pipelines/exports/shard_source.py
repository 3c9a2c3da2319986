"""What an export reads: the rows of a finished folder of shards, checked on the way.

One batch is in memory at a time, as views of the mapped file where it is local and uncompressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import OutputError
from pipelines.manifest import MANIFEST, read_manifest
from pipelines.output_files import join, list_files, open_for_reading
from pipelines.settings import digest_of
from pipelines.token_rows import with_marks
from schemas.sidecars import ShardSidecar
from schemas.token_shards import token_shard_schema
from schemas.versions import check_version

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
        progress: called with the bytes of each shard once it has been read.

    Attributes:
        manifest: of the folder.
        digest: sha256 (hex) of the shards' names and hashes, and of the marks.
        dtype: of the ids, uint16 or uint32.
        documents: how many, the empty ones too.
        tokens: how many, with the marks.
        largest: the largest id, with the marks; -1 without ids.
        largest_place: the shard with that id, or the mark, for messages.

    Raises:
        OutputError: the folder is unfinished, or a shard is missing or of another size.
    """

    def __init__(
        self,
        directory: str,
        *,
        bos: int | None = None,
        eos: int | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.directory = directory
        self.manifest = read_manifest(directory)
        self.bos = bos
        self.eos = eos
        self._progress = progress
        self._check_files()
        shards = [[shard.file, shard.sha256] for shard in self.manifest.shards]
        self.digest = digest_of({"shards": shards, "bos": bos, "eos": eos})
        self.dtype = self._read_dtype()
        marks = [mark for mark in (bos, eos) if mark is not None]
        self.documents = self.manifest.totals.documents
        self.tokens = self.manifest.totals.tokens + len(marks) * self.documents
        self.largest, self.largest_place = self._find_largest(marks)

    def batches(self) -> Iterator[TokenBatch]:
        """All rows, in order.

        Raises:
            OutputError: a shard cannot be read, or its rows are not what the manifest says of them.
        """
        reading = _RowCheck()
        for shard in self.manifest.shards:
            for batch in self._read_shard(shard, reading):
                yield self._with_marks(batch)
            self._progress(shard.file_bytes)
        if reading.inside:
            raise self._failure(self.manifest.shards[-1].file, "its last document has no end")

    def lengths(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
        """Ids of each row, with the marks, and whether it ends a document; ids are not read."""
        marks = (self.bos is not None, self.eos is not None)
        reading = _RowCheck()
        for shard in self.manifest.shards:
            for batch in self._read_shard(shard, reading):
                yield batch.lengths + marks[0] * batch.starts + marks[1] * batch.ends, batch.ends

    def _check_files(self) -> None:
        sizes = list_files(self.directory)
        for shard in self.manifest.shards:
            if shard.file not in sizes:
                raise self._failure(shard.file, "is missing")
            if sizes[shard.file] != shard.file_bytes:
                raise self._failure(
                    shard.file,
                    f"has {sizes[shard.file]} bytes, {MANIFEST} says {shard.file_bytes}",
                )

    def _read_dtype(self) -> np.dtype[Any]:
        """Of the first shard; the others are checked against it as they are read."""
        name = self.manifest.shards[0].file
        try:
            with open_for_reading(join(self.directory, name)) as file:
                kind = pa.ipc.open_file(file).schema.field("input_ids").type.value_type
                return np.dtype({"uint16": np.uint16, "uint32": np.uint32}[str(kind)])
        except (ValueError, KeyError, AttributeError, pa.ArrowException) as error:
            raise self._failure(name, f"is no token shard ({error})") from error

    def _find_largest(self, marks: list[int]) -> tuple[int, str]:
        found = [(shard.max_id, shard.file) for shard in self.manifest.shards]
        largest = [(top, join(self.directory, name)) for top, name in found if top is not None]
        named = [(mark, "--append-eos or --prepend-bos") for mark in marks]
        return max([*largest, *named], default=(-1, self.directory), key=lambda item: item[0])

    def _read_shard(self, shard: ShardSidecar, reading: _RowCheck) -> Iterator[TokenBatch]:
        schema = token_shard_schema(int(np.iinfo(self.dtype).max))
        rows = tokens = 0
        try:
            with open_for_reading(join(self.directory, shard.file)) as file:
                reader = pa.ipc.open_file(file)
                check_version(reader.schema, schema)
                for index in range(reader.num_record_batches):
                    columns = reader.get_batch(index)
                    columns.validate(full=True)
                    batch = _token_batch(columns)
                    reading.check(batch, rows)
                    yield batch
                    rows += columns.num_rows
                    tokens += len(batch.ids)
        except (ValueError, pa.ArrowException) as error:
            raise self._failure(shard.file, str(error)) from error
        if (rows, tokens) != (shard.rows, shard.tokens):
            raise self._failure(
                shard.file,
                f"has {rows} rows with {tokens} ids, {MANIFEST} says {shard.rows} with "
                f"{shard.tokens}",
            )

    def _with_marks(self, batch: TokenBatch) -> TokenBatch:
        ids, lengths = with_marks(
            batch.ids, batch.lengths, batch.starts, batch.ends, bos=self.bos, eos=self.eos
        )
        return TokenBatch(ids, lengths, batch.starts, batch.ends, batch.labels)

    def _failure(self, name: str, what: str) -> OutputError:
        return OutputError(
            f"{join(self.directory, name)}: {what}; beam-bpe verify {self.directory} finds what is "
            "damaged, and the encode command run again repairs it"
        )


def _token_batch(columns: pa.RecordBatch) -> TokenBatch:
    return TokenBatch(
        ids=columns["input_ids"].flatten().to_numpy(),
        lengths=pc.list_value_length(columns["input_ids"]).to_numpy().astype(np.int64),
        starts=columns["part"].to_numpy() == 0,
        ends=columns["is_last"].to_numpy(zero_copy_only=False),
        labels=columns.select(_LABELS),
    )


class _RowCheck:
    """Sees to it that the rows of each document follow each other, over batches and shards.

    Attributes:
        inside: whether the last row leaves a document open.
    """

    def __init__(self) -> None:
        self.inside = False
        self._document = ""

    def check(self, batch: TokenBatch, first_row: int) -> None:
        """Take the next batch, whose rows count from `first_row` in its shard.

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
            row = int(wrong[0])
            raise ValueError(
                f"row {first_row + row} ({names[row].as_py()}) does not continue the document of "
                "the row before it, or begins inside it"
            )
        self.inside = not bool(batch.ends[-1])
        self._document = names[len(names) - 1].as_py()
