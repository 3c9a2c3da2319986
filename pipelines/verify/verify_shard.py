"""Check one token shard: its file, and everything that its sidecar says of its rows.

Every id is looked at. Rows that stand for themselves are also decoded and encoded again, which must
give the same ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BpeError, OutputError
from bpe.tokenizer import Tokenizer
from pipelines.corpus.token_lengths import token_lengths
from pipelines.shards.manifest import file_sha256
from pipelines.shards.shard_files import REPAIR, ShardFacts
from pipelines.shards.split_documents import Splitter
from pipelines.storage.output_files import exists, join, open_for_reading
from pipelines.storage.wording import counted
from pipelines.verify.verify_order import OrderedRows, RowOrder
from schemas.sidecars import ShardSidecar
from schemas.token_shards import token_shard_schema
from schemas.versions import check_version

__all__ = ["RowSettings", "ShardCheck"]

# Of each shard, the first rows are encoded again, up to so many ids.
_SAMPLE_IDS = 50_000

_Ints = npt.NDArray[np.int64]


class RowSettings(msgspec.Struct):
    """The settings of a run that show in the rows; see `pipelines.encoding.encode_documents`."""

    tokenizer_digest: str
    bos: int | None
    eos: int | None
    special_text: str
    max_row_tokens: int | None
    max_row_bytes: int
    splits: list[tuple[str, str]]
    pack: int | None
    pack_mode: str | None
    pack_tail: str | None
    pad: int | None
    pack_window: int | None
    shuffle: str
    seed: int | None
    id_field: str | None
    input_format: str

    @property
    def split_names(self) -> tuple[str, ...]:
        """Folders of the shards below the output, in order; one empty name without splits."""
        return tuple(name for name, _ in self.splits) or ("",)


class ShardCheck:
    """Checks a shard of a finished output.

    Args:
        output: the folder.
        sidecar: what the manifest says of the shard.
        tokenizer: that made the ids.
        settings: of the run.
        order: takes all rows, to see that they follow one another.
        is_streamed: whether documents were encoded as streams, so that a row may end within a
            pre-token; else each piece stands for itself.

    Attributes:
        passed_ids: of rows that hold a part of a document, which gets other ids alone.
    """

    def __init__(
        self,
        output: str,
        sidecar: ShardSidecar,
        tokenizer: Tokenizer,
        settings: RowSettings,
        *,
        order: RowOrder,
        is_streamed: bool = False,
    ) -> None:
        self.passed_ids = 0
        self._path = join(output, sidecar.file)
        self._sidecar = sidecar
        self._tokenizer = tokenizer
        self._settings = settings
        self._order = order
        self._is_streamed = is_streamed
        self._lengths = token_lengths(tokenizer)
        self._splitter = Splitter(settings.splits, settings.seed or 0) if settings.splits else None
        self._facts = ShardFacts()
        self._text_bytes = 0
        # Ids that were encoded again.
        self._sampled = 0
        # Whether the row before, perhaps of the batch before, may go on in the next.
        self._after_full = False
        order.begin(self._path, sidecar)

    def run(self, *, full: bool) -> int:
        """Check file, columns, ids, marks, splits and facts.

        Args:
            full: encode every row again, not a few of each batch.

        Returns:
            How many rows, or whole documents of packed rows, were encoded again.

        Raises:
            OutputError: something does not agree; names the file, the row and the values.
        """
        self._check_file()
        again = 0
        try:
            with open_for_reading(self._path) as file:
                reader = pa.ipc.open_file(file)
                check_version(reader.schema, self._schema())
                for index in range(reader.num_record_batches):
                    batch = reader.get_batch(index)
                    batch.validate(full=True)
                    self._check_rows(batch)
                    share = None if full else _SAMPLE_IDS // reader.num_record_batches
                    # A row may have millions of ids: one of them is sample enough.
                    if full or self._sampled < 2 * _SAMPLE_IDS:
                        again += self._encode_again(batch, limit=share)
                    self.passed_ids += self._dependent_ids(batch)
                    self._facts.add(batch)
                    if batch.num_rows:
                        self._after_full = bool(self._are_full(batch)[-1])
        except BpeError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._failure(str(error)) from error
        self._check_facts()
        return again

    def _schema(self) -> pa.Schema:
        return token_shard_schema(self._tokenizer.max_id)

    def _check_file(self) -> None:
        if not exists(self._path):
            raise self._failure("is missing")
        sha256 = file_sha256(self._path)
        if sha256 != self._sidecar.sha256:
            raise self._failure(
                f"its sha256 is {sha256}, the manifest says {self._sidecar.sha256}: the file was "
                f"changed or damaged; {REPAIR}"
            )

    def _check_rows(self, batch: pa.RecordBatch) -> None:
        """Ids are the tokenizer's, rows are no longer than allowed, BOS and EOS in their places."""
        ids = batch["input_ids"].flatten().to_numpy()
        lengths = pc.list_value_length(batch["input_ids"]).to_numpy().astype(np.int64)
        ends = np.cumsum(lengths)
        self._check_ids(ids, ends)
        too_long = np.flatnonzero(lengths > self._max_row_tokens())
        if len(too_long):
            raise self._row_failure(too_long[0], f"has {counted(lengths[too_long[0]], 'id')}")
        self._text_bytes += int(self._lengths[ids].sum())
        starts = ends - lengths
        begins = batch["part"].to_numpy() == 0
        closes = batch["is_last"].to_numpy(zero_copy_only=False)
        self._check_mark("BOS", self._settings.bos, ids, starts, begins & (lengths > 0), begins)
        self._check_mark("EOS", self._settings.eos, ids, ends - 1, closes & (lengths > 0), closes)
        self._check_split(batch["document_id"], np.arange(batch.num_rows))
        parts = batch["part"].to_numpy().astype(np.int64)
        self._order.add(
            OrderedRows(
                rows=self._facts.rows + np.arange(batch.num_rows),
                names=batch["document_id"],
                sources=batch["source"],
                starts=batch["byte_start"].to_numpy(),
                places=parts,
                ends=parts + 1,
                is_first=begins,
                is_last=closes,
            )
        )

    def _max_row_tokens(self) -> int:
        return 2**31 if self._settings.max_row_tokens is None else self._settings.max_row_tokens

    def _check_split(self, document_ids: pa.Array, rows: _Ints) -> None:
        """Every document belongs to the split that the shard is of.

        Args:
            document_ids: of documents.
            rows: int64, row of each.
        """
        if self._splitter is None:
            return
        names = self._settings.split_names
        splits = self._splitter.assign(document_ids)
        wrong = np.flatnonzero(splits != names.index(self._sidecar.split))
        if len(wrong):
            raise self._row_failure(
                rows[wrong[0]],
                f"is of document {document_ids[wrong[0]]}, which belongs to the split "
                f"{names[splits[wrong[0]]]}",
            )

    def _check_ids(self, ids: npt.NDArray[Any], ends: _Ints) -> None:
        places = np.flatnonzero(self._lengths[ids] < 0)
        if len(places):
            row = int(np.searchsorted(ends, places[0], side="right"))
            raise self._row_failure(
                row, f"holds id {int(ids[places[0]])}, which is none of the tokenizer's"
            )

    def _check_mark(
        self,
        name: str,
        mark: int | None,
        ids: npt.NDArray[Any],
        places: _Ints,
        present: npt.NDArray[np.bool_],
        wanted: npt.NDArray[np.bool_],
    ) -> None:
        """At `places` of the rows that are `wanted`, the flat ids hold the mark."""
        if mark is None:
            return
        right = present.copy()
        right[present] = ids[places[present]] == mark
        wrong = np.flatnonzero(wanted & ~right)
        if len(wrong):
            raise self._row_failure(wrong[0], f"lacks {name} {mark}")
        # The mark is no text.
        self._text_bytes -= int(self._lengths[mark]) * int(wanted.sum())

    def _check_facts(self) -> None:
        found = dict(self._facts.__dict__)
        if not self._tokenizer.is_lossy(self._settings.special_text):
            found["bytes"] = self._text_bytes
        for name, value in found.items():
            said = getattr(self._sidecar, name)
            if value != said:
                raise self._failure(f"its rows give {name} {value}, the manifest says {said}")

    def _encode_again(self, batch: pa.RecordBatch, *, limit: int | None) -> int:
        """Encode the decoded text of rows that stand for themselves, up to so many ids or all."""
        checked = seen = 0
        if not self._tokenizer.reencodes:
            return 0
        policy = "allow" if self._settings.special_text == "allow" else "text"
        # Anywhere, but the same rows for who asks again.
        place = f"{self._sidecar.sha256} {self._facts.rows}"
        first = 0 if limit is None else zlib.crc32(place.encode()) % max(1, batch.num_rows)
        for row, name, ids in self._whole_documents(batch, first):
            if limit is not None and seen > limit:
                break
            try:
                again = self._tokenizer.encode(self._tokenizer.decode(ids), special_text=policy)
            except BpeError as error:
                raise self._row_failure(row, str(error)) from error
            if not np.array_equal(again, ids):
                raise self._row_failure(
                    row,
                    f"({name}): encoding its text again gives {len(again)} "
                    f"other ids than the {len(ids)} that are stored",
                )
            checked += 1
            seen += len(ids)
        self._sampled += seen
        return checked

    def _dependent_ids(self, batch: pa.RecordBatch) -> int:
        """How many ids are in rows that get other ids alone than with the rows around them."""
        lengths = pc.list_value_length(batch["input_ids"]).to_numpy()
        return int(lengths[~self._stand_alone(batch)].sum())

    def _whole_documents(
        self, batch: pa.RecordBatch, first: int
    ) -> Iterator[tuple[int, str, npt.NDArray[np.uint32]]]:
        """What stands for itself, without BOS and EOS: (row, document, ids).

        From row `first` on, and then those before it.
        """
        parts, lasts = batch["part"], batch["is_last"]
        rows = np.flatnonzero(self._stand_alone(batch))
        for row in np.roll(rows, -int(np.searchsorted(rows, first))).tolist():
            ids = batch["input_ids"][row].values.to_numpy().astype(np.uint32)
            name = batch["document_id"][row].as_py()
            yield (
                row,
                name,
                self._without_marks(
                    ids, is_first=parts[row].as_py() == 0, is_last=lasts[row].as_py()
                ),
            )

    def _stand_alone(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows hold a whole piece, or a whole document where pieces do not stand alone.

        A piece longer than `max_row_tokens` goes over several rows: such rows are full, or follow a
        full one.
        """
        is_full = self._are_full(batch)
        alone: npt.NDArray[np.bool_] = ~is_full
        alone[:1] &= not self._after_full
        alone[1:] &= ~is_full[:-1]
        if self._is_streamed:
            alone &= (batch["part"].to_numpy() == 0) & batch["is_last"].to_numpy(
                zero_copy_only=False
            )
        return alone

    def _are_full(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        lengths = pc.list_value_length(batch["input_ids"]).to_numpy()
        are_full: npt.NDArray[np.bool_] = lengths >= self._max_row_tokens()
        return are_full

    def _without_marks(
        self, ids: npt.NDArray[np.uint32], *, is_first: bool, is_last: bool
    ) -> npt.NDArray[np.uint32]:
        start = 1 if self._settings.bos is not None and is_first else 0
        end = len(ids) - 1 if self._settings.eos is not None and is_last else len(ids)
        return ids[start:end]

    def _row_failure(self, row: int, what: str) -> OutputError:
        """Of a row of the batch that comes after those whose facts were taken."""
        return self._failure(f"row {self._facts.rows + row} {what}")

    def _failure(self, what: str) -> OutputError:
        return OutputError(f"{self._path}: {what}")
