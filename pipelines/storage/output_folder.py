"""Whose an output folder is: the record that a command leaves there before it works.

    run.json    which command writes here, its settings and its inputs; of `encode` in the folder
                `pipelines.storage.output_layout.OWN_FOLDER`

A folder that holds this record is the command's; one without it must hold nothing that the command
would replace, unless the user says `--overwrite`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from bpe.errors import OutputError
from pipelines.storage.escape_control import one_line
from pipelines.storage.output_files import (
    TEMPORARY,
    delete_files,
    exists,
    is_temporary_name,
    join,
    list_files,
    match_remote,
    write_atomically,
)
from pipelines.storage.output_layout import ENCODE_RUN, REJECTS_FOLDER, RUN
from pipelines.storage.output_lock import LOCK_NAME
from pipelines.storage.output_names import REJECTS_FILE
from pipelines.storage.own_paths import escape, is_local
from pipelines.storage.records import read_record
from pipelines.storage.wording import counted
from schemas.run_record import RUN_VERSION, RunRecord

__all__ = [
    "RUN",
    "delete_rejects",
    "find_run",
    "has_old_layout",
    "read_run",
    "refuse_foreign_files",
    "refuse_other_command",
    "refuse_parent",
    "write_run",
]

_RECORDS = (RUN, ENCODE_RUN)
# Names of files that commands replace: of a model, of counts, of an output of encode, of an export.
_MADE = re.compile(
    r"(?:(?:\d+|__beam-bpe__/tokenizer)/)?(?:config|vocab|tokenizer)\.json"
    r"|(?:\d+/)?(?:merges\.txt|golden\.jsonl)|counts/(?:manifest\.json|bucket-\d{5,}\.arrow)"
    r"|(?:[^/]+/)?shard-\d{5,}-\d{3,}\.arrow(?:\.json)?|(?:manifest|export)\.json"
    r"|(?:__beam-bpe__/)?(?:rejects|units)/unit-\d{5,}\.jsonl?|__beam-bpe__/manifest\.json"
)
_SHOWN = 3
# So many entries of a folder are looked at to find foreign files.
_MOST_LISTED = 10_000


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


def refuse_other_command(output: str, command: str, more: Sequence[re.Pattern[str]] = ()) -> None:
    """Check, before overwriting, that what would be replaced is this command's.

    Args:
        output: the folder.
        command: its name, such as `encode`.
        more: names of files that it makes, besides those of shards, models and counts.

    Raises:
        OutputError: the folder is another command's; or outputs lie in it; or no command began it,
            and it holds files of names that ours have. A damaged record is no reason: overwriting
            is the way out of that.
    """
    refuse_parent(output)
    try:
        record = find_run(output)
    except OutputError:
        return
    _refuse_other(output, record, command)
    if record is None and (not is_local(output) or os.path.isdir(output)):
        names, _ = _list_foreign(output)
        alike = [name for name in names if any(each.fullmatch(name) for each in (_MADE, *more))]
        if alike:
            raise OutputError(
                f"--output {output}: no record ({RUN}) says that this command made what it would "
                f"replace: {_named(alike)}; move these files away, or choose another folder"
            )


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


def refuse_foreign_files(output: str) -> None:
    """Check that a folder without a record holds no file, however deep, but what killed runs leave.

    Raises:
        OutputError: it does; names the first files, or the outputs that it is the parent of.
    """
    if is_local(output) and not os.path.isdir(output):
        return
    refuse_parent(output)
    names, whole = _list_foreign(output)
    if not names:
        return
    shown = ", ".join(one_line(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    others = f" and {counted(more, 'other')}" if more > 0 else ""
    number = counted(len(names), "file") if whole else f"more than {counted(len(names), 'file')}"
    raise OutputError(
        f"--output {output}: the folder holds {number} and was not begun by this command: "
        f"{shown}{others if whole else ' and others'}; choose an empty folder, or --overwrite to "
        "replace what this command writes in it"
    )


def refuse_parent(output: str) -> None:
    """Check that a folder without a record is not one in which outputs lie.

    Raises:
        OutputError: it is; names the outputs.
    """
    if any(exists(join(output, record)) for record in _RECORDS):
        return
    if is_local(output):
        with os.scandir(output) as entries:
            folders = sorted(each.name for each in entries if each.is_dir())
        paths = ((name, os.path.join(output, name, each)) for name in folders for each in _RECORDS)
        found = sorted({name for name, path in paths if os.path.isfile(path)})
    else:
        records = (each for name in _RECORDS for each in match_remote(_below(output, f"*/{name}")))
        start = len(output.rstrip("/")) + 1
        found = sorted({item.path[start:].split("/")[0] for item in records})
    if found:
        raise OutputError(
            f"--output {output}: is no output itself, but holds some: {_named(found)}; name one of "
            f"them, or a new folder, such as {output.rstrip('/')}/NAME"
        )


def _named(names: Sequence[str]) -> str:
    """The first names, for a message."""
    shown = ", ".join(one_line(name) for name in names[:_SHOWN])
    return f"{shown} and others" if len(names) > _SHOWN else shown


def _below(output: str, pattern: str) -> str:
    """A pattern below a folder of another file system."""
    return f"{escape(output.rstrip('/'))}/{pattern}"


def _list_foreign(output: str) -> tuple[list[str], bool]:
    """Names of files that no killed run left, sorted, and whether all were looked at."""
    if is_local(output):
        return _list_foreign_local(output)
    start = len(output.rstrip("/")) + 1
    found = match_remote(_below(output, "**"), limit=_MOST_LISTED)
    names = (item.path[start:] for item in found)
    return sorted(name for name in names if not _is_left(name)), len(found) < _MOST_LISTED


def _list_foreign_local(output: str) -> tuple[list[str], bool]:
    foreign: list[str] = []
    folders, seen = [""], 0
    while folders:
        folder = folders.pop(0)
        with os.scandir(os.path.join(output, folder)) as entries:
            for entry in entries:
                name = os.path.join(folder, entry.name)
                seen += 1
                if seen > _MOST_LISTED:
                    return sorted(foreign), not foreign
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif not _is_left(name):
                    foreign.append(name)
    return sorted(foreign), True


def _is_left(name: str) -> bool:
    """Whether a file of that name is what a killed run leaves: a lock, a probe, temporary files."""
    folder, _, last = name.rpartition("/")
    in_temporary = folder.rpartition("/")[2] == TEMPORARY
    if in_temporary or (not folder and last.startswith("_probe.")):
        return is_temporary_name(last)
    return name == LOCK_NAME


def delete_rejects(
    directory: str, kept: frozenset[int] = frozenset(), folder: str = REJECTS_FOLDER
) -> int:
    """Delete the lists of rejected rows, but for the units to be kept; returns how many."""
    folder = join(directory, folder)
    found = {name: REJECTS_FILE.fullmatch(name) for name in list_files(folder)}
    stale = [name for name, match in found.items() if match and int(match[1]) not in kept]
    delete_files(folder, stale)
    return len(stale)
