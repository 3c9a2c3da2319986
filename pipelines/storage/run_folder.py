"""The claim of a folder: the work in it is new, resumed or finished.

A command that was killed goes on when it is started again. The folder of a command has a lock and a
record of the run (`Run`). A step within a command (`Step`) has a record that is written last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from re import Pattern
from typing import Any, Generic, Literal, TypeVar

from bpe.errors import OutputError
from pipelines.storage.output_files import prepare_output, remove_temporary_files
from pipelines.storage.output_folder import (
    read_run,
    refuse_foreign_files,
    refuse_other_command,
    write_run,
)
from pipelines.storage.output_lock import locked_output
from pipelines.storage.wording import counted, describe_differences
from schemas.count_manifest import CountManifest
from schemas.round_records import InitialRecord
from schemas.run_record import InputRecord, RunRecord

__all__ = ["Claim", "Run", "Step", "claim", "claimed", "refuse_changes"]

_Record = TypeVar("_Record")
_StepRecord = TypeVar("_StepRecord", CountManifest, InitialRecord)


@dataclass(frozen=True)
class Claim(Generic[_Record]):
    """What work found in its folder.

    Attributes:
        state: `new`, `resumed` (unfinished work of equal settings is there) or `finished`.
        notes: sentences for the user.
        record: of the finished work, if it has one.
    """

    state: Literal["new", "resumed", "finished"] = "new"
    notes: tuple[str, ...] = ()
    record: _Record | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing is to be done."""
        return self.state == "finished"

    @property
    def resumed(self) -> bool:
        """Whether unfinished work of equal settings is there."""
        return self.state == "resumed"


class _Work(ABC, Generic[_Record]):
    """Work whose results lie in a folder."""

    @abstractmethod
    def look(self) -> Claim[_Record]:
        """What the folder holds; changes nothing, and raises OutputError for other work."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all that such work makes, before it begins anew."""

    def begin(self) -> None:
        """Mark the folder as that of this work."""

    def tidy(self) -> None:
        """Remove what a run left that was killed just after it had finished."""


def claim(work: _Work[_Record]) -> Claim[_Record]:
    """Look into a folder, and prepare it for the work; raises OutputError for other work."""
    found = work.look()
    if found.finished:
        work.tidy()
        return found
    if not found.resumed:
        work.clear()
    work.begin()
    return found


@dataclass(frozen=True)
class Run(_Work[_Record]):
    """A run of a command in its output folder.

    Attributes:
        output: the folder.
        wanted: the record of this run.
        overwrite: remove what an earlier run made; `made` are its names (`refuse_other_command`).
    """

    output: str
    wanted: RunRecord
    overwrite: bool = False
    made: Sequence[Pattern[str]] = ()

    @abstractmethod
    def compare(self, earlier: RunRecord) -> Claim[_Record]:
        """What an earlier run of the command left, as `look`."""

    def look(self) -> Claim[_Record]:
        """What the folder holds of this command."""
        if self.overwrite:
            refuse_other_command(self.output, self.wanted.command, self.made)
            return Claim()
        earlier = read_run(self.output, self.wanted.command)
        if earlier is not None:
            return self.compare(earlier)
        refuse_foreign_files(self.output)
        return Claim()

    def begin(self) -> None:
        """Write the record of the run."""
        write_run(self.output, self.wanted)

    def tidy(self) -> None:
        """Remove temporary files."""
        remove_temporary_files(self.output)


@contextmanager
def claimed(run: Run[_Record]) -> Iterator[Claim[_Record]]:
    """Make the output folder, lock it while the block runs, and claim it.

    A finished output may be in a folder that cannot be written.

    Raises:
        OutputError: the folder cannot be written, another run works there, or it holds other work.
    """
    try:
        prepare_output(run.output)
        found = None
    except OutputError:
        found = _find_finished(run)
        if found is None:
            raise
    if found is not None:
        yield found
        return
    with locked_output(run.output):
        yield claim(run)


def _find_finished(run: Run[_Record]) -> Claim[_Record] | None:
    if run.overwrite:
        return None
    try:
        earlier = read_run(run.output, run.wanted.command)
        found = Claim[_Record]() if earlier is None else run.compare(earlier)
    except OutputError:
        return None
    return found if found.finished else None


@dataclass(frozen=True)
class Step(_Work[_StepRecord]):
    """A step of a command: what an earlier run finished is kept, all else is made anew.

    Attributes:
        folder: of its results.
        read: reads its record; gives None where there is none.
        remove: removes all that it makes.
        settings, inputs: what decides its results.
        holds, remedy: begin and end the message if an earlier step had others.
    """

    folder: str
    read: Callable[[str], _StepRecord | None]
    remove: Callable[[str], None]
    settings: Mapping[str, Any]
    inputs: list[InputRecord]
    holds: str
    remedy: str

    def look(self) -> Claim[_StepRecord]:
        """Compare an earlier step with this one."""
        record = self.read(self.folder)
        if record is None:
            return Claim()
        changes = describe_differences(record.settings, self.settings)
        old: list[InputRecord] = record.inputs
        new: list[InputRecord] = self.inputs
        if old != new:
            changed = [each for each in [*old, *new] if each not in old or each not in new]
            path = changed[0]["path"] if changed else "the order of files"
            changes.append(
                f"inputs: was {counted(len(old), 'file')}, now {len(new)}; {path} is new, gone or "
                "changed"
            )
        refuse_changes(self.holds, changes, self.remedy)
        return Claim("finished", record=record)

    def clear(self) -> None:
        """Remove all that the step makes."""
        self.remove(self.folder)


def refuse_changes(holds: str, changes: Sequence[str], remedy: str) -> None:
    """Raise an OutputError if there are changes: what the folder holds, they, and the remedy."""
    if changes:
        raise OutputError(f"{holds} ({'; '.join(changes)}); {remedy}")
