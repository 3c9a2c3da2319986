"""A global shuffle: every document of the input in random order, over two jobs.

    unit (JSON)   ─ SpillUnit   ─► OUTPUT/__beam-bpe__/shuffle, its record; records (JSON)
    bucket (JSON) ─ WriteBucket ─► OUTPUT/shard-BBBBB-PPP.arrow, its sidecar; sidecars (JSON)

The first job encodes units and leaves their rows sorted by bucket, the second gathers each bucket
from all units and puts it in order. A document's bucket, and its place there, come from a hash of
the seed, the file's index and the byte at which it starts, so that shards are the same bytes on
every runner.

Rows travel through files on the storage of the output on every runner, also where the runner could
group them by key. That is one way in place of two; it can be resumed by unit and by bucket; a
bucket of any number of bytes is gathered in bounded memory; and 800 MB through a GroupByKey take
several gigabytes of memory on local runners. The price is that a bucket opens a file per unit.

In place of `EncodeDocuments` in the example of `pipelines`:

    with EncodeRun("enc", encoding, plan, tokenizer) as run:
        with beam.Pipeline() as pipeline:
            pipeline | run.units() | SpillDocuments(run)
        with beam.Pipeline() as pipeline:
            pipeline | run.buckets() | WriteBuckets(run)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.process_memory import give_back_memory
from bpe.errors import OutputError
from pipelines.corpus.document_keys import DocumentKeys
from pipelines.corpus.plan import Plan, Unit, unpacked_guess
from pipelines.corpus.read_documents import KEPT_BYTES
from pipelines.corpus.settings import digest_of
from pipelines.encoding.encode_documents import UnitEncoder
from pipelines.encoding.shuffle_rows import in_order
from pipelines.encoding.write_output import OutputWriter
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.encode_settings import EncodeSettings, RunTarget
from pipelines.shards.shard_files import OpenShard
from pipelines.shards.token_rows import TokenRows
from pipelines.shards.tokenizer_files import cached_tokenizer
from pipelines.shards.write_shards import ShardGroup, input_identity
from pipelines.storage.output_files import join, open_for_reading, write_atomically
from pipelines.storage.output_layout import TOKENIZER_FOLDER
from pipelines.storage.output_names import spill_name, unit_record_name
from schemas.shuffle_spills import shuffle_spill_schema
from schemas.sidecars import UnitRecord, UnitTotals
from schemas.token_shards import token_shard_schema

__all__ = [
    "Bucket",
    "SpillDocuments",
    "WriteBuckets",
    "bucket_of",
    "plan_buckets",
    "spill_unit",
    "write_bucket",
]

# So much text of a unit is sorted by bucket at a time.
_SPILL_BYTES = 64 << 20
# Smaller batches are joined in memory; larger ones stay in the mapped file until they are written.
_SMALL_BYTES = 8 << 20


@dataclass(frozen=True)
class Bucket:
    """What a worker of the second job does in one go.

    Attributes:
        index: of the bucket; its shards are named after it.
        buckets: how many there are.
        units: how many units the plan has.
        input_digest: of what all of them read.
    """

    index: int
    buckets: int
    units: int
    input_digest: str

    def to_json(self) -> bytes:
        """The bucket as JSON; `from_json` restores it."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes) -> Bucket:
        """The bucket that `to_json` wrote."""
        return msgspec.json.decode(data, type=cls)

    @property
    def group(self) -> ShardGroup:
        """Its shards."""
        return ShardGroup(self.index, [], self.input_digest)


def plan_buckets(plan: Plan, settings: EncodeSettings) -> list[Bucket]:
    """The buckets of a run: so many that one usually fills three quarters of a shard.

    Args:
        plan: of the input.
        settings: `shard_bytes` decides.
    """
    size = sum(map(unpacked_guess, plan.files))
    count = max(1, -(-4 * size // (3 * settings.shard_bytes)))
    digest = digest_of([input_identity(unit) for unit in plan.units])
    return [Bucket(index, count, len(plan.units), digest) for index in range(count)]


class SpillDocuments(beam.PTransform):
    """The first job: encodes units and leaves their rows sorted by bucket.

    Input: units as JSON (bytes), see `pipelines.corpus.plan.Unit`. Output: one record per unit
    (JSON, bytes), as it was written to `UNIT_FOLDER`. Running a unit twice leaves the same files.

    Args:
        run: the `EncodeRun` that holds the output folder.
        progress_folder: from `pipelines.runners.progress.show_progress`; "" to report no progress.
    """

    def __init__(self, run: RunTarget, *, progress_folder: str = "") -> None:
        super().__init__()
        self._spill = _SpillUnit(run.output, run.settings, run.bucket_count, progress_folder)

    def expand(self, units: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        """Apply to a PCollection of units."""
        return units | "SpillUnit" >> beam.ParDo(self._spill).with_output_types(bytes)


class _SpillUnit(beam.DoFn):
    """Reads and encodes one unit and writes its spill."""

    def __init__(
        self, output: str, settings: EncodeSettings, buckets: int, progress_folder: str
    ) -> None:
        self._output = output
        self._settings = settings
        self._buckets = buckets
        self._progress_folder = progress_folder

    def process(self, element: bytes) -> Iterator[bytes]:
        """Spill one unit; everything happens here, never in `finish_bundle` (Dask drops that)."""
        with reported_errors() as work:
            unit = Unit.from_json(element)
            work.name = unit.describe()
            record = self.spill(unit)
            give_back_memory(keep_bytes=KEPT_BYTES)
            yield record

    def spill(self, unit: Unit) -> bytes:
        """Read and encode a unit, and write its rows and record; returns the record as JSON."""
        settings = self._settings
        reading = UnitEncoder(self._output, unit, settings, self._progress_folder)
        schema = shuffle_spill_schema(reading.tokenizer.id_type)
        keys = DocumentKeys(unit, settings.seed)
        file = OpenShard(self._output, spill_name(unit.index), schema, "none")
        try:
            held: list[TokenRows] = []
            for rows in reading.rows():
                held.append(_with_keys(rows, keys, schema))
                if sum(each.batch.nbytes for each in held) >= _SPILL_BYTES:
                    self._write_round(file, held)
                    held = []
            if held:
                self._write_round(file, held)
            facts = file.close()
        except BaseException:
            file.abandon()
            raise
        record = UnitRecord(
            unit=unit.index,
            settings_digest=settings.digest,
            inputs=input_identity(unit),
            totals=reading.totals(),
            spill_bytes=facts["file_bytes"],
            spill_sha256=facts["sha256"],
        )
        data = msgspec.json.format(msgspec.json.encode(record))
        write_atomically(self._output, unit_record_name(unit.index), data)
        return data

    def _write_round(self, file: OpenShard, held: list[TokenRows]) -> None:
        """One batch for each bucket, of which many may be empty."""
        keys = np.concatenate([each.batch["shuffle_key"].to_numpy() for each in held])
        buckets = bucket_of(keys, self._buckets)
        order = np.argsort(buckets, kind="stable")
        borders = np.searchsorted(buckets[order], np.arange(self._buckets + 1))
        for start, end in zip(borders.tolist(), borders[1:].tolist(), strict=False):
            if start == end:
                file.write(held[0].slice(0, 0))
                continue
            batches = [rows.batch for rows in in_order(held, order[start:end])]
            (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
            file.write(TokenRows(joined, np.zeros(end - start, np.int64)))


def _with_keys(rows: TokenRows, keys: DocumentKeys, schema: pa.Schema) -> TokenRows:
    arrays = [*rows.batch.columns, pa.array(keys.of(rows.batch)), pa.array(rows.text_bytes)]
    return TokenRows(pa.RecordBatch.from_arrays(arrays, schema=schema), rows.text_bytes)


def bucket_of(keys: npt.NDArray[np.uint64], buckets: int) -> npt.NDArray[np.int64]:
    """Buckets share the range of the keys evenly, in order."""
    return ((keys >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)


class WriteBuckets(beam.PTransform):
    """The second job: writes the shards of each bucket, once all units are spilled.

    Input: buckets as JSON (bytes), see `plan_buckets`. Output: one sidecar (JSON, bytes) per shard.
    Running a bucket twice leaves the same files.

    Args:
        run: the `EncodeRun` that holds the output folder.
    """

    def __init__(self, run: RunTarget) -> None:
        super().__init__()
        self._write = _WriteBucket(run.output, run.settings)

    def expand(self, buckets: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        """Apply to a PCollection of buckets."""
        return buckets | "WriteBucket" >> beam.ParDo(self._write).with_output_types(bytes)


class _WriteBucket(beam.DoFn):
    """Gathers the rows of one bucket and writes them in order."""

    def __init__(self, output: str, settings: EncodeSettings) -> None:
        self._output = output
        self._settings = settings

    def process(self, element: bytes) -> Iterator[bytes]:
        """Write one bucket."""
        with reported_errors():
            sidecars = self.write(Bucket.from_json(element))
            give_back_memory()
            yield from sidecars

    def write(self, bucket: Bucket) -> list[bytes]:
        """Write the shards of a bucket; returns their sidecars as JSON."""
        settings = self._settings
        folder = join(self._output, TOKENIZER_FOLDER)
        tokenizer = cached_tokenizer(folder, settings.tokenizer_digest)
        # What the first job left in a process that does both.
        tokenizer.forget_encoder()
        gathered = _Gathered(token_shard_schema(tokenizer.id_type))
        for unit in range(bucket.units):
            gathered.add(_read_spill(self._output, unit, bucket))
        with OutputWriter(self._output, bucket.group, tokenizer, settings) as writer:
            for rows in gathered.in_order():
                writer.write(rows)
            packing = writer.finish_packing()
            return writer.finish(
                UnitTotals(
                    parts=0,
                    documents_in=0,
                    rejects={},
                    accepted={},
                    special_text={},
                    rejects_file=None,
                    rejects_sha256=None,
                    packing=packing,
                )
            )


def spill_unit(output: str, unit: Unit, settings: EncodeSettings, buckets: int) -> bytes:
    """Read and encode one unit, and write its rows by bucket; returns its record as JSON."""
    return _SpillUnit(output, settings, buckets, "").spill(unit)


def write_bucket(output: str, bucket: Bucket, settings: EncodeSettings) -> list[bytes]:
    """Write the shards of one bucket, from the spills; returns their sidecars as JSON."""
    return _WriteBucket(output, settings).write(bucket)


def _read_spill(output: str, unit: int, bucket: Bucket) -> list[pa.RecordBatch]:
    """The batches of a bucket in a unit's spill."""
    path = join(output, spill_name(unit))
    try:
        with open_for_reading(path) as file:
            reader = pa.ipc.open_file(file)
            places = range(bucket.index, reader.num_record_batches, bucket.buckets)
            return [batch for place in places if (batch := reader.get_batch(place)).num_rows]
    except (OSError, pa.ArrowException) as error:
        raise OutputError(
            f"{path}: cannot be read: {error}; run the same command again, which makes it again"
        ) from error


class _Gathered:
    """The rows of a bucket, from all units in order."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sources: dict[str, int] = {}
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._small_bytes = 0

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Take the batches of one unit, whose sources share a dictionary."""
        for batch in batches:
            numbered = self._with_numbers(batch)
            if batch.nbytes >= _SMALL_BYTES:
                self._join_small()
                self._batches.append(numbered)
                continue
            self._small.append(numbered)
            self._small_bytes += numbered.nbytes
            if self._small_bytes >= _SMALL_BYTES:
                self._join_small()

    def _with_numbers(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Numbers of the sources that occur in the bucket in place of the unit's."""
        source = batch["source"]
        used, codes = np.unique(source.indices.to_numpy(), return_inverse=True)
        names = source.dictionary.take(pa.array(used)).to_pylist()
        numbers = [self._sources.setdefault(name, len(self._sources)) for name in names]
        column = pa.array(np.array(numbers, np.int32)[codes])
        return batch.set_column(batch.schema.get_field_index("source"), "source", column)

    def _join_small(self) -> None:
        """Copy small batches into one, so that no file stays open for them."""
        if self._small:
            table = pa.Table.from_batches(self._small)
            # Taking copies, which combining a single chunk would not.
            whole = table.combine_chunks().take(pa.array(np.arange(table.num_rows)))
            self._batches += whole.combine_chunks().to_batches()
            self._small, self._small_bytes = [], 0

    def in_order(self) -> Iterator[TokenRows]:
        """All rows by key; those of a document in the order of units and within them."""
        self._join_small()
        if not self._batches:
            return
        names = pa.array(list(self._sources), pa.string())
        keys = np.concatenate([batch["shuffle_key"].to_numpy() for batch in self._batches])
        rows = [self._token_rows(batch, names) for batch in self._batches]
        self._batches = []
        order = np.argsort(keys, kind="stable")
        del keys
        yield from in_order(rows, order)

    def _token_rows(self, batch: pa.RecordBatch, names: pa.Array) -> TokenRows:
        columns: dict[str, Any] = {name: batch[name] for name in self._schema.names}
        columns["source"] = pa.DictionaryArray.from_arrays(batch["source"], names)
        arrays = list(columns.values())
        return TokenRows(
            pa.RecordBatch.from_arrays(arrays, schema=self._schema),
            batch["text_bytes"].to_numpy(),
        )
