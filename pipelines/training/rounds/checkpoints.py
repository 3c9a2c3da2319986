"""Records of what is done, each written last of its step: what the same command goes on from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pipelines.corpus.unit_reports import remove_reports
from pipelines.storage.output_files import (
    delete_files,
    exists,
    join,
    list_files,
    remove_empty_folder,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.records import read_record
from pipelines.training.rounds.initial_state import UNITS_FOLDER
from pipelines.training.rounds.round_files import INHERITED, ROUND_FILE, round_folder
from pipelines.training.rounds.state_files import STATE_FOLDER, delete_state
from schemas import CountRecord, InitialRecord, SegmentsRecord
from schemas.round_records import ROUND_RECORD_VERSION

__all__ = [
    "ROUNDS_FOLDER",
    "clear_round",
    "clear_rounds",
    "delete_count_record",
    "read_count_record",
    "read_initial_record",
    "read_segments_record",
    "write_count_record",
    "write_initial_record",
    "write_segments_record",
]

ROUNDS_FOLDER = "rounds"
"""Sub-folder of the command's output for all that rounds leave."""

_INITIAL = "initial.json"
_RECORD = re.compile(r"r(\d{3,6})-(count|segments)\.json")
_REMEDY = "start again with --overwrite"
_Record = TypeVar("_Record", InitialRecord, CountRecord, SegmentsRecord)


def _read(folder: str, name: str, kind: type[_Record], **expected: int) -> _Record | None:
    path = join(folder, name)
    if not exists(path):
        return None
    return read_record(path, kind, version=ROUND_RECORD_VERSION, remedy=_REMEDY, expected=expected)


def _write(folder: str, name: str, record: Any) -> None:
    write_atomically(folder, name, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def read_initial_record(folder: str) -> InitialRecord | None:
    """What the state was made of; None if it is not complete.

    Raises:
        OutputError: the record is damaged; so for the other records.
    """
    return _read(folder, _INITIAL, InitialRecord)


def write_initial_record(folder: str, record: InitialRecord) -> None:
    """Say that the state before the first merge is complete."""
    _write(folder, _INITIAL, record)


def read_count_record(folder: str, round_: int) -> CountRecord | None:
    """What the first step of a round left; None if it is not complete."""
    return _read(folder, f"r{round_:03d}-count.json", CountRecord, round=round_)


def write_count_record(folder: str, record: CountRecord) -> None:
    """Say that the first step of a round is complete."""
    _write(folder, f"r{record.round:03d}-count.json", record)


def delete_count_record(folder: str, round_: int) -> None:
    """Take the first step of a round for not done."""
    delete_files(folder, [f"r{round_:03d}-count.json"])


def read_segments_record(folder: str, round_: int) -> SegmentsRecord | None:
    """What the second step of a round left; None if it is not complete."""
    return _read(folder, f"r{round_:03d}-segments.json", SegmentsRecord, round=round_)


def write_segments_record(folder: str, record: SegmentsRecord) -> None:
    """Say that the second step of a round is complete."""
    _write(folder, f"r{record.round:03d}-segments.json", record)


def clear_rounds(folder: str) -> None:
    """Remove all that rounds leave; the records go first."""
    names = list_files(folder)
    delete_files(folder, [name for name in names if name == _INITIAL or _RECORD.fullmatch(name)])
    delete_files(folder, [INHERITED])
    remove_reports(join(folder, UNITS_FOLDER))
    state = join(folder, STATE_FOLDER)
    delete_state(state)
    remove_temporary_files(state)
    for round_ in range(_rounds_begun(names)):
        clear_round(folder, round_)
    remove_temporary_files(folder)
    for each in (state, folder):
        remove_empty_folder(each)


def _rounds_begun(names: Mapping[str, int]) -> int:
    """How many rounds may have files; a round's record comes after its files."""
    found = [int(match[1]) for match in map(_RECORD.fullmatch, names) if match]
    return max(found, default=-1) + 2


def clear_round(folder: str, round_: int, kept: tuple[str, ...] = ()) -> None:
    """Remove a round's tables but for those to be kept."""
    directory = round_folder(folder, round_)
    names = [name for name in list_files(directory) if ROUND_FILE.fullmatch(name)]
    delete_files(directory, [name for name in names if name not in kept])
    remove_temporary_files(directory)
    remove_empty_folder(directory)
