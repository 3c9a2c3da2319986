"""An export from beginning to end: whose the output folder is, what is in it, the record."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import msgspec

from bpe.errors import BpeError, OutputError
from pipelines.exports.export_folder import ExportFolder
from pipelines.exports.protocol import Export, Written
from pipelines.exports.shard_source import ShardSource
from pipelines.shards.artifact_kind import recognize
from pipelines.storage.output_files import (
    delete_files,
    exists,
    is_local,
    join,
    list_files,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.output_layout import ENCODE_RUN, MANIFEST, OLD_MANIFEST, RUN
from pipelines.storage.records import read_record
from pipelines.storage.run_folder import Claim, Run, refuse_changes
from pipelines.storage.wording import describe_differences
from schemas.export_record import EXPORT_VERSION, ExportRecord
from schemas.run_record import InputRecord, RunRecord

__all__ = [
    "EXPORT_RECORD",
    "ExportRun",
    "describe_export",
    "refuse_inside",
    "run_export",
]

EXPORT_RECORD = "export.json"
# One of them is in each output of encode, of earlier versions too.
_RECORDS = (ENCODE_RUN, MANIFEST, RUN, OLD_MANIFEST)


def describe_export(target: str, export: Export, source: ShardSource) -> RunRecord:
    """What decides an export: the format, its options, and the shards."""
    settings = {
        "to": target,
        "bos": source.bos,
        "eos": source.eos,
        **vars(export.options),
        "dtype": export.dtype(source).name,
    }
    made_of: InputRecord = {"path": source.directory, "identity": source.digest}
    return RunRecord(command="export", settings=settings, inputs=[made_of])


class ExportRun(Run[ExportRecord]):
    """An export in its output folder; see `Run` for the arguments.

    `made` has the names that exports of any format give. Such files are removed before work.
    """

    def compare(self, earlier: RunRecord) -> Claim[ExportRecord]:
        """An export of which a file is missing is made anew."""
        wanted = self.wanted
        changes = describe_differences(earlier.settings, wanted.settings)
        if earlier.inputs != wanted.inputs:
            before, now = earlier.inputs[0]["path"], wanted.inputs[0]["path"]
            other = f"was {before}, now {now}" if before != now else f"{now} holds other shards now"
            changes.append(f"source: {other}")
        refuse_changes(
            f"--output {self.output}: holds an export with other settings",
            changes,
            "choose another folder, or --overwrite to replace it",
        )
        found = _find_finished(self.output)
        return Claim() if found is None else Claim("finished", record=found)

    def clear(self) -> None:
        """Remove the files of an export; the record goes first."""
        delete_files(self.output, [EXPORT_RECORD])
        names = list_files(self.output)
        ours = [name for name in names if any(pattern.fullmatch(name) for pattern in self.made)]
        delete_files(self.output, ours)
        remove_temporary_files(self.output)


def refuse_inside(output: str) -> None:
    """Check that the export does not lie within the output of a command, where it might be lost.

    Raises:
        OutputError: it does; names that output.
    """
    if not is_local(output):
        return
    for folder in map(str, Path(os.path.realpath(output)).parents):
        is_output = any(os.path.exists(os.path.join(folder, each)) for each in _RECORDS)
        place = recognize(folder) if is_output else None
        if place is not None and place.kind in {"shards", "unfinished"}:
            raise OutputError(
                f"--output {output}: lies in {folder}, which {place.what}; choose a folder outside"
            )


def run_export(
    export: Export, source: ShardSource, output: str, settings: RunRecord, *, code_version: str
) -> ExportRecord:
    """Write all files, give them their names, and write the record.

    Raises:
        OutputError: a shard cannot be read, or a file cannot be written.
    """
    with ExportFolder(output) as folder:
        written = _write(export, source, folder, output)
        record = ExportRecord(
            code_version=code_version,
            settings={**settings.settings, "source": settings.inputs[0]["identity"]},
            documents=written.documents,
            tokens=written.tokens,
            left_out={name: count for name, count in written.left_out.items() if count},
            files=[],
            sides=written.sides,
        )
        record = replace(record, files=folder.publish())
    write_atomically(output, EXPORT_RECORD, msgspec.json.format(msgspec.json.encode(record)))
    remove_temporary_files(output)
    return record


def _write(export: Export, source: ShardSource, folder: ExportFolder, output: str) -> Written:
    try:
        return export.write(source, folder)
    except OSError as error:
        if isinstance(error, BpeError):
            raise
        # What is set aside has no name of its own.
        raise OutputError(
            f"{output}: cannot be written: {error}; make room, or choose another --output, and run "
            "the same command again"
        ) from error


def _find_finished(output: str) -> ExportRecord | None:
    """The record of a finished export; None if there is none, or a file of it is not there whole.

    Sizes of files stand for their content.
    """
    path = join(output, EXPORT_RECORD)
    if not exists(path):
        return None
    try:
        record = read_record(path, ExportRecord, version=EXPORT_VERSION, remedy="--overwrite")
    except OutputError:
        return None
    sizes = list_files(output)
    if any(sizes.get(file.name) != file.bytes for file in record.files):
        return None
    return record
