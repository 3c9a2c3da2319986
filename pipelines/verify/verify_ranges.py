"""Check that the units of an output read all of its input files."""

from __future__ import annotations

import re
from typing import Any

from bpe.errors import OutputError
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import MANIFEST
from schemas.run_record import InputRecord
from schemas.sidecars import Manifest

__all__ = ["NO_END", "check_ranges", "ranges_of_units", "size_of"]

NO_END = 2**63 - 1
"""The end of a range that goes to the end of its file."""

_SIZE = re.compile(r"(\d{1,18}) bytes, modified .+")


def check_ranges(output: str, manifest: Manifest) -> None:
    """The ranges that units read tile each input file, in the order of the files.

    With `--limit` the last file may be read up to the place where the limit was reached.

    Raises:
        OutputError: a part of a file is read by no unit, or by two; names file and place.
    """
    ranges = [each for unit in ranges_of_units(output, manifest).values() for each in unit]
    position = 0
    has_limit = manifest.settings.get("limit") is not None
    for number, file in enumerate(manifest.inputs):
        size, end, stop = size_of(file), 0, NO_END
        start = position
        while position < len(ranges) and ranges[position]["path"] == file["path"]:
            each = ranges[position]
            if each["start"] != end:
                raise _failure(
                    output,
                    f"{file['path']}: is read from byte {each['start']}, and the range before ends "
                    f"at {end}: a unit is lost or repeated",
                )
            end = NO_END if each["end"] is None else each["end"]
            if has_limit and number == len(manifest.inputs) - 1:
                stop = each.get("stop", NO_END)
            position += 1
        if position == start or (size is not None and end not in {NO_END, size} and end < stop):
            raise _failure(
                output,
                f"{file['path']}: is read up to byte {end}, and has "
                f"{'more' if size is None else size}: units are lost",
            )
    if position < len(ranges):
        raise _failure(
            output,
            f"{ranges[position]['path']}: is read by a unit that does not follow the order of the "
            "inputs: a unit is lost or repeated",
        )


def ranges_of_units(output: str, manifest: Manifest) -> dict[int, list[dict[str, Any]]]:
    """What each unit reads, in order.

    Raises:
        OutputError: the shards of a unit say different things.
    """
    if manifest.units:
        return {unit.unit: unit.inputs for unit in manifest.units}
    found: dict[int, list[dict[str, Any]]] = {}
    for shard in manifest.shards:
        if found.setdefault(shard.unit, shard.inputs) != shard.inputs:
            what = f"{shard.file}: has other inputs than the shards of its unit before"
            raise _failure(output, what)
    return found


def _failure(output: str, what: str) -> OutputError:
    return OutputError(f"{join(output, MANIFEST)}: {what}")


def size_of(file: InputRecord) -> int | None:
    """Size of a file by its identity; None where the file system says no size."""
    match = _SIZE.fullmatch(file["identity"])
    return None if match is None else int(match[1])
