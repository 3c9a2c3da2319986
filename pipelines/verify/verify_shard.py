"""Check one token shard: its file, and everything that its sidecar says of its rows.

Every id is looked at. Rows that stand for themselves are also decoded and encoded again, which must
give the same ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BpeError, OutputError
from bpe.tokenizer import Tokenizer
from pipelines.corpus.token_lengths import token_lengths
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import file_sha256
from pipelines.shards.shard_files import REPAIR, ShardFacts
from pipelines.shards.shard_reader import open_shard
from pipelines.shards.split_documents import Splitter
from pipelines.storage.output_files import exists, join
from pipelines.storage.wording import counted
from pipelines.verify.document_parts import DocumentParts, refuse
from pipelines.verify.verify_order import RowOrder
from schemas.sidecars import ShardSidecar

__all__ = ["ShardCheck"]

# Of each shard, the first rows are encoded again, up to so many ids.
_SAMPLE_IDS = 50_000

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


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
        settings: EncodeSettings,
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
        order.begin(sidecar)

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
        pack, id_type = self._settings.pack, self._tokenizer.id_type
        with open_shard(self._path, pack, id_type=id_type, remedy=REPAIR) as batches:
            share = None if full else _SAMPLE_IDS // max(1, len(batches))
            for batch in batches:
                parts = self._check_rows(batch)
                alone = self._stand_alone(parts)
                # A row may have millions of ids: one of them is sample enough.
                if full or self._sampled < 2 * _SAMPLE_IDS:
                    again += self._encode_again(parts, alone, batch.num_rows, limit=share)
                self.passed_ids += int(parts.lengths[~alone].sum())
                self._facts.add(batch)
        self._check_facts()
        return again

    def _check_file(self) -> None:
        if not exists(self._path):
            raise self._failure("is missing")
        sha256 = file_sha256(self._path)
        if sha256 != self._sidecar.sha256:
            raise self._failure(
                f"its sha256 is {sha256}, the manifest says {self._sidecar.sha256}: the file was "
                f"changed or damaged; {REPAIR}"
            )

    def _check_rows(self, batch: pa.RecordBatch) -> DocumentParts:
        """Ids, lengths, BOS, EOS, splits and order are right; returns what the rows hold."""
        parts = self._parts(batch)
        self._check_lengths(parts)
        last = parts.offsets + parts.lengths - 1
        self._check_mark("BOS", self._settings.bos, parts, parts.offsets, parts.is_first)
        self._check_mark("EOS", self._settings.eos, parts, last, parts.is_last)
        self._check_split(parts)
        self._order.add(parts)
        return parts

    def _parts(self, batch: pa.RecordBatch) -> DocumentParts:
        """The rows of a batch, whose ids are all the tokenizer's."""
        ids = batch["input_ids"].flatten().to_numpy()
        lengths = pc.list_value_length(batch["input_ids"]).to_numpy().astype(np.int64)
        row_ends = np.cumsum(lengths)
        self._check_ids(ids, row_ends)
        places = batch["part"].to_numpy().astype(np.int64)
        return DocumentParts(
            path=self._path,
            rows=self._facts.rows + np.arange(batch.num_rows),
            ids=ids,
            offsets=row_ends - lengths,
            lengths=lengths,
            names=batch["document_id"],
            sources=batch["source"],
            starts=batch["byte_start"].to_numpy(),
            places=places,
            ends=places + 1,
            is_first=places == 0,
            is_last=batch["is_last"].to_numpy(zero_copy_only=False),
        )

    def _check_lengths(self, parts: DocumentParts) -> None:
        """No row is longer than allowed."""
        lengths, most = parts.lengths, self._settings.max_row_tokens
        self._refuse(lengths > most, parts.rows, lambda at: f"has {counted(lengths[at], 'id')}")

    def _check_ids(self, ids: npt.NDArray[Any], row_ends: _Ints) -> None:
        found = self._lengths[ids]
        rows = self._facts.rows + np.arange(len(row_ends))

        def failure(place: int) -> OutputError:
            row = rows[np.searchsorted(row_ends, place, side="right")]
            return self._row_failure(
                row, f"holds id {ids[place]}, which is none of the tokenizer's"
            )

        refuse(found < 0, failure)
        self._text_bytes += int(found.sum())

    def _check_mark(
        self, name: str, mark: int | None, parts: DocumentParts, places: _Ints, wanted: _Bools
    ) -> None:
        """At `places` among the ids, the parts that are `wanted` hold the mark."""
        if mark is None:
            return
        present = wanted & (parts.lengths > 0)
        right = present.copy()
        right[present] = parts.ids[places[present]] == mark
        self._refuse(wanted & ~right, parts.rows, lambda _: f"lacks {name} {mark}")
        # The mark is no text.
        self._text_bytes -= int(self._lengths[mark]) * int(wanted.sum())

    def _check_split(self, parts: DocumentParts) -> None:
        """Every document belongs to the split that the shard is of."""
        if self._splitter is None:
            return
        names = self._settings.split_names
        splits = self._splitter.assign(parts.names)
        self._refuse(
            splits != names.index(self._sidecar.split),
            parts.rows,
            lambda at: (
                f"is of document {parts.names[at]}, which belongs to the split {names[splits[at]]}"
            ),
        )

    def _check_facts(self) -> None:
        found = dict(self._facts.__dict__)
        if not self._tokenizer.is_lossy(self._settings.special_text):
            found["bytes"] = self._text_bytes
        for name, value in found.items():
            said = getattr(self._sidecar, name)
            if value != said:
                raise self._failure(f"its rows give {name} {value}, the manifest says {said}")

    def _encode_again(
        self, parts: DocumentParts, alone: _Bools, count: int, *, limit: int | None
    ) -> int:
        """Encode again what stands alone, in all `count` rows or up to so many ids."""
        if not self._tokenizer.reencodes:
            return 0
        checked = seen = 0
        policy = "allow" if self._settings.special_text == "allow" else "text"
        # Anywhere, but the same rows for who asks again.
        place = f"{self._sidecar.sha256} {self._facts.rows}"
        first = 0 if limit is None else zlib.crc32(place.encode()) % max(1, count)
        for at, ids in self._texts(parts, alone, self._facts.rows + first):
            if limit is not None and seen > limit:
                break
            try:
                again = self._tokenizer.encode(self._tokenizer.decode(ids), special_text=policy)
            except BpeError as error:
                raise self._row_failure(parts.rows[at], str(error)) from error
            if not np.array_equal(again, ids):
                raise self._row_failure(
                    parts.rows[at],
                    f"({parts.names[at]}): encoding its text again gives {len(again)} "
                    f"other ids than the {len(ids)} that are stored",
                )
            checked += 1
            seen += len(ids)
        self._sampled += seen
        return checked

    def _texts(
        self, parts: DocumentParts, alone: _Bools, first: int
    ) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
        """What stands alone, without BOS and EOS, from row `first` on, and then those before it."""
        places = np.flatnonzero(alone)
        before = int(np.searchsorted(parts.rows[places], first))
        for at in np.roll(places, -before).tolist():
            start = int(parts.offsets[at])
            end = start + int(parts.lengths[at])
            start += self._settings.bos is not None and bool(parts.is_first[at])
            end -= self._settings.eos is not None and bool(parts.is_last[at])
            yield at, parts.ids[start:end].astype(np.uint32)

    def _stand_alone(self, parts: DocumentParts) -> _Bools:
        """Which rows hold a whole piece, or a whole document where pieces do not stand alone.

        A piece longer than `max_row_tokens` goes over several rows: such rows are full, or follow a
        full one.
        """
        is_full = parts.lengths >= self._settings.max_row_tokens
        follows_full = np.concatenate([[self._after_full], is_full])
        self._after_full = bool(follows_full[-1])
        alone: _Bools = ~is_full & ~follows_full[:-1]
        return alone & parts.is_first & parts.is_last if self._is_streamed else alone

    def _refuse(self, wrong: _Bools, rows: _Ints, what: Callable[[int], str]) -> None:
        refuse(wrong, lambda at: self._row_failure(rows[at], what(at)))

    def _row_failure(self, row: int, what: str) -> OutputError:
        return self._failure(f"row {row} {what}")

    def _failure(self, what: str) -> OutputError:
        return OutputError(f"{self._path}: {what}")
