"""Whose an output folder is: the record that a command leaves there before it works.

    run.json    which command writes here, its settings and its inputs; of `encode` in the folder
                `pipelines.output_layout.OWN_FOLDER`

A folder that holds this record is the command's; one without it must hold nothing that the command
would replace, unless the user says `--overwrite`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bpe.errors import OutputError
from pipelines.output_files import (
    TEMPORARY,
    delete_files,
    exists,
    is_temporary_name,
    join,
    list_files,
    write_atomically,
)
from pipelines.output_layout import ENCODE_RUN, REJECTS_FOLDER, RUN
from pipelines.output_lock import LOCK_NAME
from pipelines.output_names import REJECTS_FILE
from pipelines.records import read_record
from schemas.run_record import RUN_VERSION, RunRecord

__all__ = [
    "RUN",
    "delete_rejects",
    "find_run",
    "has_old_layout",
    "read_run",
    "refuse_foreign_files",
    "refuse_other_command",
    "write_run",
]


def write_run(output: str, record: RunRecord) -> None:
    """Mark the folder as this run's.

    Raises:
        OutputError: the file cannot be written.
    """
    name = ENCODE_RUN if record.command == "encode" else RUN
    write_atomically(output, name, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def read_run(output: str, command: str) -> RunRecord | None:
    """The record of an earlier run of this command; None if the folder has none.

    Raises:
        OutputError: the record is damaged, of another command, or of an earlier version of this
            program that laid its files out otherwise.
    """
    record = find_run(output)
    _refuse_other(output, record, command)
    if has_old_layout(output) and not exists(join(output, ENCODE_RUN)):
        raise OutputError(
            f"--output {output}: holds an output of an earlier version of beam-bpe, whose files "
            "lie elsewhere; use that version, give another folder, or --overwrite to start again"
        )
    return record


def refuse_other_command(output: str, command: str) -> None:
    """Check, before overwriting, that the folder is not another command's.

    Raises:
        OutputError: it is. A damaged record is no reason: overwriting is the way out of that.
    """
    try:
        record = find_run(output)
    except OutputError:
        return
    _refuse_other(output, record, command)


def _refuse_other(output: str, record: RunRecord | None, command: str) -> None:
    if record is not None and record.command != command:
        raise OutputError(
            f"--output {output}: is a folder of beam-bpe {record.command}; choose another one for "
            f"beam-bpe {command}"
        )


def has_old_layout(output: str) -> bool:
    """Whether an earlier version of `encode`, without `OWN_FOLDER`, left its record there."""
    try:
        record = _read(join(output, RUN))
    except OutputError:
        return False
    return record is not None and record.command == "encode"


def find_run(output: str) -> RunRecord | None:
    """The record of whatever command, also of an earlier version; None if the folder has none.

    Raises:
        OutputError: the record is damaged.
    """
    return _read(join(output, ENCODE_RUN)) or _read(join(output, RUN))


def _read(path: str) -> RunRecord | None:
    if not exists(path):
        return None
    remedy = "start again with --overwrite"
    return read_record(path, RunRecord, version=RUN_VERSION, remedy=remedy)


def refuse_foreign_files(output: str, folders: Sequence[str]) -> None:
    """Check that a folder without a record holds nothing that a run would replace or remove.

    Args:
        output: the folder.
        folders: sub-folders that the command writes into; others are nobody's business.

    Raises:
        OutputError: it does; names the first file.
    """
    for folder in ["", TEMPORARY, *folders, *(f"{each}/{TEMPORARY}" for each in folders)]:
        names = list_files(join(output, folder) if folder else output)
        foreign = sorted(
            name for name in names if name != LOCK_NAME and not is_temporary_name(name)
        )
        if foreign:
            name = f"{folder}/{foreign[0]}" if folder else foreign[0]
            raise OutputError(
                f"--output {output}: the folder holds {name} and was not begun by this command; "
                "choose an empty folder, or --overwrite to replace what this command writes in it"
            )


def delete_rejects(
    directory: str, kept: frozenset[int] = frozenset(), folder: str = REJECTS_FOLDER
) -> int:
    """Delete the lists of rejected rows, but for the units to be kept; returns how many."""
    folder = join(directory, folder)
    found = {name: REJECTS_FILE.fullmatch(name) for name in list_files(folder)}
    stale = [name for name, match in found.items() if match and int(match[1]) not in kept]
    delete_files(folder, stale)
    return len(stale)
