"""The jobs of rounds: one step each, or several rounds in one pipeline.

In a chain, what the driver would do between two jobs is a stage of its own. It waits for all shards
(a grouping by one key), does its part, and sends the tasks of the next step on; once training is at
its end it sends none, and the rest of the chain has nothing to do.

    tasks ─ CountPairs ─ Wait ─ FinishCount ─ tasks ─ SendSegments ─ Wait ─ FinishSegments ─ …
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam

from pipelines.runners.worker_errors import reported_errors
from pipelines.training.rounds.checkpoints import read_count_record, read_segments_record
from pipelines.training.rounds.count_step import CountPairs
from pipelines.training.rounds.driver_steps import finish_count, finish_segments
from pipelines.training.rounds.segment_step import SendSegments
from pipelines.training.rounds.setup import RoundSetup, ShardTask
from pipelines.training.rounds.state_files import state_name

__all__ = ["RoundChain", "create_tasks", "state_names"]


def create_tasks(tasks: Sequence[ShardTask]) -> beam.PTransform:
    """The first step of a job: its tasks, spread over the workers."""
    return "Tasks" >> beam.Create([task.to_json() for task in tasks])


def state_names(tasks: Sequence[ShardTask], round_: int) -> list[str]:
    """Names of the files of a round's state, by shard."""
    if round_ == 0:
        return [task.initial for task in tasks]
    return [state_name(round_, task.shard) for task in tasks]


class RoundChain(beam.PTransform):
    """Several rounds in one pipeline.

    Input: `ShardTask` as JSON (bytes). Output: the same, for the step after the last.

    Args:
        setup: of the training.
        tasks: of all shards.
        first: number of the first round.
        rounds: how many.
        known: number of a round whose state is there.
        counted: whether the first round's `CountPairs` is done already.
    """

    def __init__(
        self,
        setup: RoundSetup,
        tasks: Sequence[ShardTask],
        *,
        first: int,
        rounds: int,
        known: int,
        counted: bool,
    ) -> None:
        super().__init__()
        self._setup, self._tasks = setup, list(tasks)
        self._first, self._rounds, self._known, self._counted = first, rounds, known, counted

    def expand(self, tasks: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        """Apply to a PCollection of tasks."""
        for round_ in range(self._first, self._first + self._rounds):
            if round_ > self._first or not self._counted:
                known = self._known if round_ == self._first else round_ - 1
                count = CountPairs(self._setup, round_, known)
                names = tasks | f"R{round_:03d}Count" >> count
                tasks = names | f"R{round_:03d}FinishCount" >> self._finish(round_, counting=True)
            names = tasks | f"R{round_:03d}Segments" >> SendSegments(self._setup, round_)
            tasks = names | f"R{round_:03d}FinishSegments" >> self._finish(round_, counting=False)
        return tasks

    def _finish(self, round_: int, *, counting: bool) -> _FinishStep:
        finish = _Finish(self._setup, self._tasks, round_, counting=counting, started=time.time())
        return _FinishStep(finish)


class _FinishStep(beam.PTransform):
    """Waits for all files of a step, finishes it, and gives out the tasks of the next."""

    def __init__(self, finish: _Finish) -> None:
        super().__init__()
        self._finish = finish

    def expand(self, names: beam.PCollection[str]) -> beam.PCollection[bytes]:
        """Apply to the names of the files written."""
        return (
            names
            | "OneKey" >> beam.WithKeys(0).with_output_types(tuple[int, str])
            | "Wait" >> beam.GroupByKey()
            | "Finish" >> beam.ParDo(self._finish).with_output_types(bytes)
            | "Spread" >> beam.Reshuffle()
        )


class _Finish(beam.DoFn):
    """The driver's part of a step, on a worker."""

    def __init__(
        self,
        setup: RoundSetup,
        tasks: list[ShardTask],
        round_: int,
        *,
        counting: bool,
        started: float,
    ) -> None:
        self._setup, self._tasks, self._round = setup, tasks, round_
        self._counting, self._started = counting, started

    def process(self, element: tuple[int, Iterable[str]]) -> Iterator[bytes]:
        """Finish the step; no tasks follow if training is at its end."""
        del element
        names = state_names(self._tasks, self._round)
        with reported_errors():
            finish = finish_count if self._counting else finish_segments
            record = finish(self._setup, self._round, names, self._begin())
        if record.stop_reason is None:
            yield from (task.to_json() for task in self._tasks)

    def _begin(self) -> float:
        """When the step began: with the job, or with the end of the step before."""
        folder, round_ = self._setup.folder, self._round
        if self._counting:
            before = read_segments_record(folder, round_ - 1) if round_ else None
            return max(self._started, before.ended if before else 0)
        counted = read_count_record(folder, round_)
        return max(self._started, counted.ended if counted else 0)
