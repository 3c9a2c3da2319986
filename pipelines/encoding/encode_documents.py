"""Encode a corpus: units of the plan in, Arrow shards of token ids and their sidecars out.

    unit (JSON) ─ EncodeUnit ─► OUTPUT/shard-UUUUU-PPP.arrow, its sidecar, rejects; sidecars (JSON)

One fused step does all the work of a unit, so that no payload ever crosses the runner. A global
shuffle takes two (`pipelines.encoding.shuffle_buckets`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.process_memory import give_back_memory
from bpe.errors import SettingsError
from pipelines.corpus.document_keys import DocumentKeys
from pipelines.corpus.plan import Unit
from pipelines.corpus.read_documents import KEPT_BYTES, read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.encoding.encode_long_documents import PieceEncoder
from pipelines.encoding.shuffle_rows import ShuffleWindow
from pipelines.encoding.write_output import OutputWriter
from pipelines.runners.job_metrics import count_documents, count_rejects
from pipelines.runners.progress import ProgressReporter
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.encode_settings import EncodeSettings, RunTarget
from pipelines.shards.token_rows import RowMaker, TokenRows
from pipelines.shards.tokenizer_files import cached_tokenizer
from pipelines.shards.write_shards import ShardGroup, unit_totals
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import TOKENIZER_FOLDER
from schemas.sidecars import PackingTotals, UnitTotals
from schemas.token_shards import token_shard_schema

__all__ = ["EncodeDocuments", "EncodeSettings", "UnitEncoder", "encode_unit"]

_NO_CAP = 2**31 - 1


class EncodeDocuments(beam.PTransform):
    """Encodes the documents that the plan's units hold into Arrow shards.

    Input: units as JSON (bytes), see `pipelines.corpus.plan.Unit`. Output: one sidecar (JSON,
    bytes) per shard, as it was written beside the shard. The shards are files; see
    `schemas.token_shards` for their columns and `pipelines.shards.write_shards` for their names.
    Running a unit twice leaves the same files.

        with EncodeRun("enc", encoding, plan, tokenizer) as run, beam.Pipeline() as pipeline:
            pipeline | run.units() | EncodeDocuments(run)

    Args:
        run: the `EncodeRun` that holds the output folder.
        progress_folder: from `pipelines.runners.progress.show_progress`; "" to report no progress.

    Raises:
        SettingsError: when constructed with a global shuffle, which takes two transforms.
    """

    def __init__(self, run: RunTarget, *, progress_folder: str = "") -> None:
        super().__init__()
        if run.settings.shuffle == "global":
            raise SettingsError(
                "shuffle='global': use SpillDocuments and WriteBuckets in place of EncodeDocuments"
            )
        self._encode = _EncodeUnit(run.output, run.settings, progress_folder)

    def expand(self, units: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        """Apply to a PCollection of units."""
        return units | "EncodeUnit" >> beam.ParDo(self._encode).with_output_types(bytes)


class _EncodeUnit(beam.DoFn):
    """Reads, encodes and writes one unit; the sidecars are its output."""

    def __init__(self, output: str, settings: EncodeSettings, progress_folder: str) -> None:
        self._output = output
        self._settings = settings
        self._progress_folder = progress_folder

    def process(self, element: bytes) -> Iterator[bytes]:
        """Encode one unit; everything happens here, never in `finish_bundle` (Dask drops that)."""
        with reported_errors() as work:
            unit = Unit.from_json(element)
            work.name = unit.describe()
            sidecars = encode_unit(self._output, unit, self._settings, self._progress_folder)
            give_back_memory(keep_bytes=KEPT_BYTES)
            yield from sidecars


def encode_unit(
    output: str, unit: Unit, settings: EncodeSettings, progress_folder: str = ""
) -> list[bytes]:
    """Read and encode one unit, and write its shards; returns their sidecars as JSON.

    Args:
        output: folder of the shards; its tokenizer is loaded unless this process has it.
        unit: of the plan.
        settings: of the run.
        progress_folder: see `EncodeDocuments`.
    """
    reading = UnitEncoder(output, unit, settings, progress_folder)
    group = ShardGroup.of_unit(unit)
    with OutputWriter(output, group, reading.tokenizer, settings) as writer:
        if settings.shuffle == "shard":
            keys = DocumentKeys(unit, settings.seed)
            window = ShuffleWindow(keys, settings.shard_bytes)
            for rows in reading.rows():
                for shuffled in window.add(rows):
                    writer.write(shuffled)
            for shuffled in window.finish():
                writer.write(shuffled)
        else:
            for rows in reading.rows():
                writer.write(rows)
        packing = writer.finish_packing()
        return writer.finish(reading.totals(packing))


class UnitEncoder:
    """Reads and encodes the documents of one unit.

    Args:
        output: folder of the shards, with the tokenizer's copy.
        unit: to read.
        settings: of the run.
        progress_folder: see `EncodeDocuments`.

    Attributes:
        tokenizer: the job's.
        sources: values of the column `source` in the unit, in order.
    """

    def __init__(
        self, output: str, unit: Unit, settings: EncodeSettings, progress_folder: str
    ) -> None:
        folder = join(output, TOKENIZER_FOLDER)
        self.tokenizer = cached_tokenizer(folder, settings.tokenizer_digest)
        self.sources = list(dict.fromkeys(part.file.source for part in unit.ranges))
        self._output = output
        self._unit = unit
        self._settings = settings
        self._rejects = Rejects(unit, settings.read)
        self._special_hits: Counter[str] = Counter()
        self._progress = ProgressReporter(progress_folder)
        self._documents = self._text_bytes = self._tokens = 0

    def rows(self) -> Iterator[TokenRows]:
        """The unit's documents as rows of `schemas.token_shards`, in reading order."""
        settings, tokenizer = self._settings, self.tokenizer
        # Packing cuts rows by itself.
        cap = settings.max_row_tokens if settings.pack is None else _NO_CAP
        maker = RowMaker(
            token_shard_schema(tokenizer.id_type),
            self.sources,
            bos=settings.bos,
            eos=settings.eos,
            max_row_tokens=cap,
        )
        finder = tokenizer.cut_finder(settings.special_text)
        limit = settings.read.max_row_bytes
        encoder = PieceEncoder(tokenizer, settings.special_text, self._unit, limit_bytes=limit)
        missing = tokenizer.model.missing_bytes
        for read in read_unit(self._unit, settings.read, finder, self._rejects, missing):
            self._special_hits.update(tokenizer.count_special_text(read["text"]))
            for pieces, ids in encoder.encode(read):
                rows = maker.make(pieces, ids)
                self._documents += pc.sum(pieces["is_last"]).as_py() or 0
                self._text_bytes += int(rows.text_bytes.sum())
                self._tokens += len(rows.batch["input_ids"].flatten())
                self._count_unknown(ids)
                yield rows
            self._progress.add(read["text"].nbytes)
        if encoder.streamed:
            self._rejects.accepted["streamed"] += encoder.streamed

    def _count_unknown(self, ids: pa.LargeListArray) -> None:
        """Count what the tokenizer has no better id for."""
        unknown = self.tokenizer.model.unknown_id
        if unknown is None:
            return
        count = pc.sum(pc.equal(ids.flatten(), pa.scalar(unknown, ids.type.value_type))).as_py()
        if count:
            self._rejects.accepted["unknown_tokens"] += count

    def totals(self, packing: PackingTotals | None = None) -> UnitTotals:
        """What was read, once all rows are taken; writes the unit's rejects."""
        count_documents(documents=self._documents, size=self._text_bytes, tokens=self._tokens)
        count_rejects(self._rejects.counts)
        return unit_totals(self._output, self._rejects, self._special_hits, packing)
