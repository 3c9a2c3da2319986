"""Runs the rounds of a training, from where an earlier run of the same command stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipelines.storage.output_files import join, remove_temporary_files
from pipelines.training.rounds.checkpoints import (
    clear_round,
    delete_count_record,
    read_count_record,
    read_segments_record,
)
from pipelines.training.rounds.count_step import CountPairs
from pipelines.training.rounds.driver_steps import finish_count, finish_segments
from pipelines.training.rounds.job_chain import RoundChain, create_tasks, state_names
from pipelines.training.rounds.round_files import HEAVY
from pipelines.training.rounds.round_results import merges_of
from pipelines.training.rounds.segment_step import SendSegments
from pipelines.training.rounds.setup import RoundSetup, ShardTask
from pipelines.training.rounds.state_files import STATE_FOLDER, has_state
from pipelines.training.rounds.state_source import RunJob
from schemas import CountRecord, RoundSummary, SegmentsRecord

__all__ = ["Rounds", "RoundsResult", "run_rounds"]


@dataclass(frozen=True)
class Rounds:
    """How to run rounds.

    Attributes:
        setup: of the training.
        tasks: of all shards.
        run_job: runs a pipeline of a given name.
        ensure_initial_state: makes the state before the first merge again if it is not there.
        report: is told of each round that is done.
        rounds_per_job: how many rounds one pipeline holds.
    """

    setup: RoundSetup
    tasks: Sequence[ShardTask]
    run_job: RunJob
    ensure_initial_state: Callable[[], None]
    report: Callable[[RoundSummary], None]
    rounds_per_job: int = 1


@dataclass(frozen=True)
class RoundsResult:
    """What a training in rounds made.

    Attributes:
        merges: `schemas.MERGES`.
        stop_reason: as in `bpe.backends.values.MergeList`.
        rounds: one row a round.
    """

    merges: pa.Table
    stop_reason: str
    rounds: list[RoundSummary]


def run_rounds(this: Rounds) -> RoundsResult:
    """Run rounds until training is at its end; those that are done already are not run again.

    Raises:
        CountTableError: something was lost on the way.
        OutputError: a file is missing or damaged, or cannot be written.
    """
    folder, round_ = this.setup.folder, 0
    rounds: list[RoundSummary] = []
    is_new = False
    while True:
        counted = read_count_record(folder, round_)
        made = read_segments_record(folder, round_) if counted else None
        if counted is None or (made is None and counted.stop_reason is None):
            _advance(this, round_, counted)
            is_new = True
            continue
        if made is None:
            merges = merges_of(folder, round_ - 1)
            return RoundsResult(merges, counted.stop_reason or "exhausted", rounds)
        rounds.append(_summary(counted, made))
        if is_new:
            this.report(rounds[-1])
        if made.stop_reason is not None:
            return RoundsResult(merges_of(folder, round_), made.stop_reason, rounds)
        round_ += 1


def _summary(counted: CountRecord, made: SegmentsRecord) -> RoundSummary:
    return RoundSummary(
        round=made.round,
        merges=made.merges - counted.merges,
        vocabulary=256 + made.merges,
        last_count=made.last_count,
        heavy_pairs=made.heavy_pairs,
        segments=made.segments,
        segment_bytes=made.segment_bytes,
        bytes_sent=counted.bytes_sent + made.bytes_sent,
        seconds=round(counted.seconds + made.seconds, 3),
    )


def _advance(this: Rounds, round_: int, counted: CountRecord | None) -> None:
    """Run the next step, or a chain of steps."""
    folder = this.setup.folder
    if counted is not None and not has_state(join(folder, STATE_FOLDER), counted.state_files):
        # Its state was removed, because it was damaged, say: this step makes it again.
        delete_count_record(folder, round_)
        counted = None
    known = _known_round(this, round_) if counted is None else round_
    _clear_unfinished(this, round_, counted)
    if this.rounds_per_job > 1:
        _run_chain(this, round_, known, counted=counted is not None)
    elif counted is None:
        _run_count(this, round_, known)
    else:
        _run_segments(this, round_)


def _known_round(this: Rounds, round_: int) -> int:
    """A round before this one whose state is there: the last one, or the first one made again."""
    folder = join(this.setup.folder, STATE_FOLDER)
    before = read_count_record(this.setup.folder, round_ - 1) if round_ else None
    if before is not None and has_state(folder, before.state_files):
        return round_ - 1
    this.ensure_initial_state()
    return 0


def _clear_unfinished(this: Rounds, round_: int, counted: CountRecord | None) -> None:
    """Remove tables that a killed attempt left: a bucket that is empty now would leave its own."""
    for folder in (this.setup.folder, join(this.setup.folder, STATE_FOLDER)):
        remove_temporary_files(folder)
    kept = (HEAVY,) if counted is not None else ()
    clear_round(this.setup.folder, round_, kept=kept)
    for later in range(round_ + 1, round_ + this.rounds_per_job):
        clear_round(this.setup.folder, later)


def _run_count(this: Rounds, round_: int, known: int) -> None:
    started = time.time()
    this.run_job(
        f"r{round_:03d}-count",
        lambda pipeline: (
            pipeline | create_tasks(this.tasks) | CountPairs(this.setup, round_, known)
        ),
    )
    finish_count(this.setup, round_, state_names(this.tasks, round_), started)


def _run_segments(this: Rounds, round_: int) -> None:
    started = time.time()
    this.run_job(
        f"r{round_:03d}-segments",
        lambda pipeline: pipeline | create_tasks(this.tasks) | SendSegments(this.setup, round_),
    )
    finish_segments(this.setup, round_, state_names(this.tasks, round_), started)


def _run_chain(this: Rounds, round_: int, known: int, *, counted: bool) -> None:
    last = round_ + this.rounds_per_job - 1
    chain = RoundChain(
        this.setup,
        this.tasks,
        first=round_,
        rounds=this.rounds_per_job,
        known=known,
        counted=counted,
    )
    this.run_job(
        f"r{round_:03d}-r{last:03d}",
        lambda pipeline: pipeline | create_tasks(this.tasks) | "Rounds" >> chain,
    )
