"""The state before the first merge: text, or counted words, as sequences of byte tokens.

    unit (JSON)   ─ WriteRawState ──► (unit, files)      rounds/state/r000-unit-UUUUU-PPP.arrow
    bucket (JSON) ─ WriteWordState ─► (bucket, files)    the same

A unit becomes one shard or several, none much larger than asked for: where a document is longer
than that, it goes on in the next shard. What each unit brought is left in
`rounds/units/unit-UUUUU.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.process_memory import give_back_memory
from bpe.reference.training import base_symbols
from bpe.rounds.shard_state import ShardState
from bpe.second_stage import begin_second_stage
from pipelines.corpus.plan import Unit
from pipelines.corpus.read_documents import KEPT_BYTES
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.unit_reports import UnitReport
from pipelines.runners.progress import ProgressReporter
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.tokenizer_files import cached_tokenizer
from pipelines.storage.output_files import join
from pipelines.training.count_artifact import read_bucket_file
from pipelines.training.rounds.raw_sequences import RawReading, RawSequences, read_sequences
from pipelines.training.rounds.sequence_builder import SequenceBuilder, Sequences, divide
from pipelines.training.rounds.state_files import STATE_FOLDER, write_state
from schemas.round_state import StateFile

__all__ = [
    "UNITS_FOLDER",
    "RawSource",
    "WordBucket",
    "WriteRawState",
    "WriteWordState",
]

UNITS_FOLDER = "units"
"""Sub-folder of OUTPUT/rounds for the reports of units."""


@dataclass(frozen=True)
class RawSource:
    """How raw text becomes state.

    Attributes:
        reading: how text becomes sequences.
        tie_order: decides the ids of bytes.
        shard_bytes: text in a shard, roughly.
        output: folder of the command, for lists of rejected rows.
    """

    reading: RawReading
    tie_order: str
    shard_bytes: int
    output: str


class WordBucket(msgspec.Struct):
    """One file of a count table to make state of: its folder, name and hash; its number."""

    index: int
    folder: str
    name: str
    sha256: str


class WriteRawState(beam.PTransform):
    """Writes the text of the plan's units as state.

    Input: units as JSON (bytes). Output: `(unit, number of shards)`.

    Args:
        folder: of the rounds.
        source: how text becomes state.
        progress_folder: see `pipelines.runners.progress.show_progress`.
    """

    def __init__(self, folder: str, source: RawSource, progress_folder: str = "") -> None:
        super().__init__()
        self._write = _WriteRawUnit(folder, source, progress_folder)

    def expand(self, units: beam.PCollection[bytes]) -> beam.PCollection[tuple[int, int]]:
        """Apply to a PCollection of units."""
        return units | "WriteUnitState" >> beam.ParDo(self._write).with_output_types(
            tuple[int, int]
        )


class WriteWordState(beam.PTransform):
    """Writes the buckets of a count table as state of weighted words.

    Input: `WordBucket` as JSON (bytes). Output: `(bucket, number of shards)`.

    Args:
        folder: of the rounds.
        tie_order: decides the ids of bytes.
        shard_bytes: text of words in a shard, roughly.
        first_stage: folder and digest of a tokenizer whose merges are made already, or None.
    """

    def __init__(
        self,
        folder: str,
        tie_order: str,
        shard_bytes: int,
        first_stage: tuple[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._write = _WriteWordBucket(folder, tie_order, shard_bytes, first_stage)

    def expand(self, buckets: beam.PCollection[bytes]) -> beam.PCollection[tuple[int, int]]:
        """Apply to a PCollection of buckets."""
        return buckets | "WriteBucketState" >> beam.ParDo(self._write).with_output_types(
            tuple[int, int]
        )


class _WriteRawUnit(beam.DoFn):
    """Reads a unit and writes its shards."""

    def __init__(self, folder: str, source: RawSource, progress_folder: str) -> None:
        self._folder = folder
        self._source = source
        self._progress_folder = progress_folder

    def process(self, element: bytes) -> Iterator[tuple[int, int]]:
        """Write the shards of one unit."""
        with reported_errors() as work:
            unit = Unit.from_json(element)
            work.name = unit.describe()
            files = self._write(unit)
            give_back_memory(keep_bytes=KEPT_BYTES)
        yield unit.index, len(files)

    def _write(self, unit: Unit) -> list[StateFile]:
        source = self._source
        rejects, report = Rejects(unit, source.reading.read), UnitReport.start()
        progress = ProgressReporter(self._progress_folder)
        ids = _ids_of_bytes(source.tie_order)
        sequences = read_sequences(unit, source.reading, rejects, report)
        for taken in _fill_shards(sequences, source.shard_bytes, progress):
            name = _name(unit.index, len(report.files))
            state = ShardState(_to_tokens(taken, ids), None, taken.open_left, taken.open_right)
            report.files.append(write_state(join(self._folder, STATE_FOLDER), name, state))
        rejects.write(source.output)
        report.take(rejects)
        report.write(join(self._folder, UNITS_FOLDER), unit.index)
        return report.files


def _fill_shards(
    sequences: Iterator[RawSequences], shard_bytes: int, progress: ProgressReporter
) -> Iterator[Sequences]:
    """Sequences of `shard_bytes` each, but that the last of a unit may be half as long again."""
    builder = SequenceBuilder()
    most = shard_bytes + shard_bytes // 2
    for found in sequences:
        progress.add(len(found.content))
        rest: RawSequences | None = found
        while rest is not None:
            coming = builder.size + int((rest.ends - rest.starts).sum())
            if coming <= most:
                builder.add(rest)
                break
            part, rest = divide(rest, max(0, shard_bytes - builder.size))
            builder.add(part)
            yield builder.take()
    if builder.size:
        yield builder.take()


def _ids_of_bytes(tie_order: str) -> npt.NDArray[np.uint16]:
    """The id of each byte value."""
    symbols = np.frombuffer(base_symbols(tie_order), np.uint8)
    ids = np.empty(256, np.uint16)
    ids[symbols] = np.arange(256)
    return ids


def _to_tokens(taken: Sequences, ids: npt.NDArray[np.uint16]) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array(taken.offsets), pa.array(ids[taken.content]))


class _WriteWordBucket(beam.DoFn):
    """Writes a bucket's words as shards."""

    def __init__(
        self,
        folder: str,
        tie_order: str,
        shard_bytes: int,
        first_stage: tuple[str, str] | None,
    ) -> None:
        self._folder = folder
        self._tie_order = tie_order
        self._shard_bytes = shard_bytes
        self._first_stage = first_stage

    def process(self, element: bytes) -> Iterator[tuple[int, int]]:
        """Write the shards of one bucket."""
        with reported_errors():
            bucket = msgspec.json.decode(element, type=WordBucket)
            table = read_bucket_file(bucket.folder, bucket.name, bucket.sha256)
            files = self._write(bucket, table)
        yield bucket.index, len(files)

    def _write(self, bucket: WordBucket, table: pa.Table) -> list[StateFile]:
        words = table["word"].combine_chunks().cast(pa.large_binary())
        counts = table["count"].combine_chunks().cast(pa.int64())
        ends = np.cumsum(pc.binary_length(words).to_numpy(zero_copy_only=False))
        ids = _ids_of_bytes(self._tie_order)
        report = UnitReport.start()
        start = 0
        while start < len(words):
            before = int(ends[start - 1]) if start else 0
            last = int(np.searchsorted(ends, before + self._shard_bytes, side="left")) + 1
            part = words.slice(start, last - start)
            state = self._begin(part, counts.slice(start, last - start), ids)
            name = _name(bucket.index, len(report.files))
            report.files.append(write_state(join(self._folder, STATE_FOLDER), name, state))
            start = last
        report.write(join(self._folder, UNITS_FOLDER), bucket.index)
        return report.files

    def _begin(
        self, words: pa.LargeBinaryArray, counts: pa.Int64Array, ids: npt.NDArray[np.uint16]
    ) -> ShardState:
        if self._first_stage is None:
            return ShardState(_words_to_tokens(words, ids), counts)
        return begin_second_stage(words, counts, cached_tokenizer(*self._first_stage))


def _words_to_tokens(words: pa.LargeBinaryArray, ids: npt.NDArray[np.uint16]) -> pa.LargeListArray:
    offsets = np.frombuffer(words.buffers()[1], np.int64)[words.offset :][: len(words) + 1]
    content = np.frombuffer(words.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0]), pa.array(ids[content]))


def _name(unit: int, part: int) -> str:
    return f"r000-unit-{unit:05d}-{part:03d}.arrow"
