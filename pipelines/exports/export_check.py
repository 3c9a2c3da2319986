"""Checks that the files of an export are as its record says."""

from __future__ import annotations

from bpe.errors import OutputError
from pipelines.exports.export_run import EXPORT_RECORD
from pipelines.shards.manifest import file_sha256
from pipelines.storage.output_files import exists, join, list_files
from pipelines.storage.records import read_record
from schemas.export_record import EXPORT_VERSION, ExportRecord

__all__ = ["check_export"]

_AGAIN = "run the same export command again, with --overwrite if it finds nothing to do"


def check_export(directory: str) -> ExportRecord:
    """Compare each file's size and SHA-256 with the record; returns the record.

    Args:
        directory: an output of `beam-bpe export`.

    Raises:
        OutputError: the export is not finished, or a file is missing or changed; names it.
    """
    path = join(directory, EXPORT_RECORD)
    if not exists(path):
        raise OutputError(
            f"{directory}: is an output of beam-bpe export that is not finished; run the same "
            "export command again, which finishes it"
        )
    record = read_record(path, ExportRecord, version=EXPORT_VERSION, remedy=_AGAIN)
    sizes = list_files(directory)
    for file in record.files:
        place = join(directory, file.name)
        size = sizes.get(file.name)
        if size is None:
            raise OutputError(f"{place}: is missing; {_AGAIN}")
        if size != file.bytes:
            raise OutputError(f"{place}: has {size} bytes, the record {file.bytes}; {_AGAIN}")
        found = file_sha256(place)
        if found != file.sha256:
            raise OutputError(
                f"{place}: its sha256 is {found}, that of the record {file.sha256}; {_AGAIN}"
            )
    return record
