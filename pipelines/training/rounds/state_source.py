"""What the state of rounds is made of, raw text or a count table, and the record of its making."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import apache_beam as beam
import msgspec
import pyarrow as pa

from bpe.errors import OutputError
from bpe.rounds.shard_state import ShardState
from bpe.tokenizer import Tokenizer
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import Plan, make_plan, unpacked_guess
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import check_rejects
from pipelines.corpus.settings import reading_settings
from pipelines.corpus.unit_reports import UnitReport, check_balance, read_reports, remove_reports
from pipelines.runners.progress import show_progress
from pipelines.storage.output_files import join
from pipelines.storage.output_folder import delete_rejects
from pipelines.storage.run_folder import Step, claim
from pipelines.training.count_artifact import CountArtifact
from pipelines.training.raw_documents import describe_totals
from pipelines.training.rounds.checkpoints import (
    clear_rounds,
    read_initial_record,
    write_initial_record,
)
from pipelines.training.rounds.initial_state import (
    UNITS_FOLDER,
    RawSource,
    WordBucket,
    WriteRawState,
    WriteWordState,
)
from pipelines.training.rounds.options import Sample
from pipelines.training.rounds.raw_sequences import RawReading
from pipelines.training.rounds.round_files import INHERITED, write_table
from pipelines.training.rounds.state_files import STATE_FOLDER, has_state, write_state
from pipelines.training.train_bpe import TrainSettings
from schemas import MERGES, InitialRecord, StateFile
from schemas.run_record import InputRecord

__all__ = [
    "RawText",
    "RunJob",
    "StateSize",
    "StateSource",
    "WordTable",
    "ensure_files",
    "make_state",
]

RunJob = Callable[[str, Callable[[beam.Pipeline], Any]], None]
"""Runs the pipeline that the second argument builds, under the name that the first one ends."""

# Marks in long documents: readers hold about two of these parts in memory.
_RANGE_BYTES = 1 << 20
_STATE_JOB = "state"
# Bytes of a token in the first state, and of a word besides: its end and its count.
_TOKEN_BYTES, _WORD_BYTES = 2, 16


@dataclass(frozen=True)
class StateSize:
    """How large a state is.

    Attributes:
        shards: how many files.
        tokens: in all of them.
        bytes: of all of them.
    """

    shards: int
    tokens: int
    bytes: int

    @classmethod
    def of(cls, files: Sequence[StateFile]) -> StateSize:
        """The size of these files."""
        tokens, size = sum(each.tokens for each in files), sum(each.bytes for each in files)
        return cls(len(files), tokens, size)


class StateSource(Protocol):
    """Where the sequences of a training come from."""

    inputs: list[InputRecord]
    """The files that were read; empty where the state is made of counts."""

    units: int
    """How many elements the job has; each leaves a report."""

    expected: StateSize
    """What the state will be, roughly; it is known before anything is read."""

    def settings(self) -> dict[str, Any]:
        """What decides the state."""

    def run(self, folder: str, run_job: RunJob) -> None:
        """Write the state below the folder of the rounds."""

    def totals(self, reports: list[UnitReport]) -> dict[str, Any]:
        """What was read, for the training record.

        Raises:
            OutputError: documents were lost.
            BadRecordError, BadFileError: more was set aside than allowed.
        """


class RawText:
    """The text of a corpus, or a sample of it.

    Args:
        plan: the corpus.
        read: how it is read.
        settings: special tokens and tie order.
        sample: what to take.
        shards: how many there shall be, roughly.
        output: folder of the command.
    """

    def __init__(
        self,
        plan: Plan,
        read: ReadOptions,
        settings: TrainSettings,
        *,
        sample: Sample,
        shards: int,
        output: str,
    ) -> None:
        self._read, self._settings, self._sample = read, settings, sample
        self._output, self._shards = output, shards
        # Parquet counts by its size, as ranges do: by what it may unpack to, they would be too
        # large for a shard each.
        total = sum(
            min(file.size, unpacked_guess(file)) if _is_stored_text(file) else unpacked_guess(file)
            for file in plan.files
        )
        self._shard_bytes = max(1, math.ceil(total / shards))
        ranges = math.ceil(self._shard_bytes / _RANGE_BYTES)
        self._round_read = replace(read, range_bytes=math.ceil(self._shard_bytes / ranges))
        self._plan = make_plan(
            plan.files, self._round_read, unit_bytes=self._shard_bytes, fewest_units=1
        )
        self.inputs: list[InputRecord] = [
            {"path": file.path, "identity": file.identity} for file in plan.files
        ]
        self.units = len(self._plan.units)
        kept = math.ceil(total * sample.share)
        self.expected = StateSize(self.units, kept, kept * _TOKEN_BYTES)

    def settings(self) -> dict[str, Any]:
        """What decides the state."""
        reading = reading_settings(self._read)
        del reading["range_bytes"]
        return {**reading, "sample": self._sample.to_dict(), "state_shards": self._shards}

    def run(self, folder: str, run_job: RunJob) -> None:
        """Write the state below the folder of the rounds."""
        delete_rejects(self._output)
        source = RawSource(
            reading=RawReading(
                read=self._round_read,
                special_tokens=self._settings.special_tokens,
                special_text=self._settings.special_text,
                sample=self._sample,
            ),
            tie_order=self._settings.tie_order,
            shard_bytes=self._shard_bytes,
            output=self._output,
        )
        units = [unit.to_json().encode() for unit in self._plan.units]
        with show_progress("reading", self._plan.total_bytes) as progress:
            run_job(
                _STATE_JOB,
                lambda pipeline: (
                    pipeline
                    | "Units" >> beam.Create(units)
                    | WriteRawState(folder, source, progress)
                ),
            )

    def totals(self, reports: list[UnitReport]) -> dict[str, Any]:
        """What was read, for the training record."""
        total = UnitReport.sum(reports)
        check_balance(self._output, total, went="were kept", result="this training")
        check_rejects(total.rejects, self._read, self._output, left=total.documents)
        return describe_totals(total, self._sample)


class WordTable:
    """The words of a count table.

    Args:
        artifact: the table; its words need not be loaded.
        folder: where its files lie.
        settings: tie order.
        text_bytes: bytes of all distinct words, roughly.
        shards: how many there shall be, roughly.
        first_stage: a tokenizer whose merges are made already, and its folder; None for none.
    """

    def __init__(
        self,
        artifact: CountArtifact,
        folder: str,
        settings: TrainSettings,
        *,
        text_bytes: int,
        shards: int,
        first_stage: tuple[str, Tokenizer] | None = None,
    ) -> None:
        self._first_stage = first_stage
        self._artifact, self._tie_order, self._shards = artifact, settings.tie_order, shards
        self._shard_bytes = max(1, math.ceil(text_bytes / shards))
        self._buckets = artifact.bucket_files(folder)
        self.inputs: list[InputRecord] = []
        self.units = len(self._buckets)
        size = text_bytes * _TOKEN_BYTES + artifact.words * _WORD_BYTES
        self.expected = StateSize(max(shards, self.units), text_bytes, size)

    def settings(self) -> dict[str, Any]:
        """What decides the state."""
        settings = {"counts": self._artifact.digest, "state_shards": self._shards}
        if self._first_stage is not None:
            settings["first_stage"] = self._first_stage[1].digest
        return settings

    def run(self, folder: str, run_job: RunJob) -> None:
        """Write the state below the folder of the rounds."""
        elements = [
            msgspec.json.encode(WordBucket(index, *bucket))
            for index, bucket in enumerate(self._buckets)
        ]
        stage = None
        if self._first_stage is not None:
            path, tokenizer = self._first_stage
            write_table(folder, INHERITED, _merges_table(tokenizer), MERGES)
            stage = (path, tokenizer.digest)
        write = WriteWordState(folder, self._tie_order, self._shard_bytes, stage)
        run_job(_STATE_JOB, lambda pipeline: pipeline | "Buckets" >> beam.Create(elements) | write)

    def totals(self, reports: list[UnitReport]) -> dict[str, Any]:
        """What was counted, for the training record."""
        del reports
        return self._artifact.totals


def _is_stored_text(file: InputFile) -> bool:
    """Whether a file's size bounds its text; it does not say how much a limit leaves of it."""
    return file.compression == "none" and file.text_bytes is None


def _merges_table(tokenizer: Tokenizer) -> pa.Table:
    """Merges of a first stage; how often each occurred is not known."""
    merges = tokenizer.model.merges
    columns = [[left for left, _, _ in merges], [right for _, right, _ in merges]]
    return pa.table([*columns, [0] * len(merges)], schema=pa.schema(list(MERGES)))


def make_state(
    source: StateSource,
    *,
    folder: str,
    output: str,
    settings: Mapping[str, Any],
    run_job: RunJob,
    begin: Callable[[], None],
) -> tuple[InitialRecord, bool]:
    """The state before the first merge: the record of an earlier run of the command, or made now.

    Args:
        source: what it is made of.
        folder: of the rounds.
        output: folder of the command, for messages.
        settings: what else decides the merges.
        run_job: runs a pipeline.
        begin: is called before work, unless the state is there.

    Returns:
        The record, and whether it was there.

    Raises:
        OutputError: what is there is of other settings or input.
    """
    wanted = {**settings, **source.settings()}
    found = claim(
        Step(
            folder=folder,
            read=read_initial_record,
            remove=clear_rounds,
            settings=wanted,
            inputs=source.inputs,
            holds=f"--output {output}: holds an unfinished training of other settings",
            remedy="give the same settings to go on, another folder, or --overwrite to start again",
        )
    )
    if found.record is not None:
        return found.record, True
    begin()
    started = time.time()
    files, totals = _write(source, folder, run_job)
    ended = time.time()
    record = InitialRecord(
        settings=wanted,
        inputs=source.inputs,
        totals=totals,
        state_files=files,
        seconds=ended - started,
        ended=ended,
    )
    write_initial_record(folder, record)
    return record, False


def _write(
    source: StateSource, folder: str, run_job: RunJob
) -> tuple[list[StateFile], dict[str, Any]]:
    source.run(folder, run_job)
    reports_folder = join(folder, UNITS_FOLDER)
    reports = read_reports(reports_folder, source.units)
    files = [file for report in reports for file in report.files]
    _check_neighbours(folder, files)
    totals = source.totals(reports)
    remove_reports(reports_folder)
    if not files:
        # A corpus without any text has a state all the same: one shard that holds nothing.
        nothing = ShardState(pa.array([], pa.large_list(pa.uint16())))
        files = [write_state(join(folder, STATE_FOLDER), "r000-unit-00000-000.arrow", nothing)]
    return files, totals


def _check_neighbours(folder: str, files: list[StateFile]) -> None:
    opens = [*(file.open_left for file in files), False]
    for before, after in zip([False, *(file.open_right for file in files)], opens, strict=True):
        if before != after:
            raise OutputError(
                f"{folder}: shards do not fit together; this is a fault of beam-bpe: do not use "
                "this training"
            )


def ensure_files(
    source: StateSource,
    record: InitialRecord,
    folder: str,
    run_job: RunJob,
    note: Callable[[str], None],
) -> None:
    """Make the state before the first merge again, and say so, unless its files are there.

    Raises:
        OutputError: the input gives another state than it did.
    """
    if has_state(join(folder, STATE_FOLDER), record.state_files):
        return
    note(f"state files in {folder} are missing: making them again from the input and the merges")
    files, _ = _write(source, folder, run_job)
    if files != record.state_files:
        raise OutputError(
            f"{folder}: the input gives another state than when this training began; start again "
            "with --overwrite"
        )
