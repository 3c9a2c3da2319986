"""Cuts the input files into ranges and groups consecutive ranges into units of work.

The plan depends on the files (path, size, identity) and the settings alone, never on workers:
two machines that see the same files make the same plan, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam

from bpe.errors import SettingsError
from pipelines.corpus.listing.file_formats import TABLE_FORMATS
from pipelines.corpus.listing.inputs import InputFile, InputList, is_local
from pipelines.corpus.read_options import ReadOptions

__all__ = [
    "FileRange",
    "Plan",
    "Unit",
    "can_be_cut",
    "check_name",
    "create_units",
    "make_plan",
    "unpacked_guess",
]

# What a file weighs beyond its bytes, shared out over them: opening it costs about as much as
# reading this much.
FILE_COST_BYTES = 4096
# Text usually shrinks to a third or a quarter.
COMPRESSION_GUESS = 3
# Enough units for a dozen workers to share even a small input.
UNITS_WANTED = 16

_NAMED_FILES = 3


@dataclass(frozen=True)
class FileRange:
    """Consecutive ranges of one file: from one multiple of `range_bytes` to another.

    Attributes:
        file: the file.
        start: first byte, in the file as stored; 0 for compressed files.
        end: byte after the last, the file's size for its last range; None for files that cannot
            be entered in the middle and are read to their end; see `can_be_cut`.
    """

    file: InputFile
    start: int
    end: int | None

    @property
    def is_whole(self) -> bool:
        """Whether this is all of the file, so that no other unit reads any of it."""
        return self.start == 0 and self.end in (None, self.file.size)

    @property
    def stored_bytes(self) -> int:
        """Bytes on storage."""
        return (self.file.size if self.end is None else self.end) - self.start


@dataclass(frozen=True)
class Unit:
    """What one worker does in one go; its outputs are named after `index`."""

    index: int
    ranges: tuple[FileRange, ...]

    @property
    def stored_bytes(self) -> int:
        """Bytes on storage."""
        return sum(range_.stored_bytes for range_ in self.ranges)

    def describe(self) -> str:
        """Name the unit and its first files, for messages: `unit 0 (a.txt, b.txt)`."""
        files = sorted({part.file.path for part in self.ranges})
        return f"unit {self.index} ({', '.join(files[:_NAMED_FILES])})"

    def to_json(self) -> str:
        """The unit as one line of JSON; `from_json` restores it."""
        ranges = [
            {"file": asdict(range_.file), "start": range_.start, "end": range_.end}
            for range_ in self.ranges
        ]
        return json.dumps({"index": self.index, "ranges": ranges}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Unit:
        """The unit that `to_json` wrote."""
        record: dict[str, Any] = json.loads(text)
        ranges = tuple(
            FileRange(InputFile(**entry["file"]), entry["start"], entry["end"])
            for entry in record["ranges"]
        )
        return cls(record["index"], ranges)


@dataclass(frozen=True)
class Plan:
    """All units of a run, in the order of files and offsets.

    Attributes:
        units: numbered from 0.
        files: the files that they cover.
        digest: sha256 (hex) over files, identities and the settings that the plan and the
            documents depend on.
    """

    units: tuple[Unit, ...]
    files: tuple[InputFile, ...]
    digest: str

    @property
    def total_bytes(self) -> int:
        """Size of all files on storage."""
        return sum(file.size for file in self.files)


def make_plan(
    files: InputList | Sequence[InputFile],
    options: ReadOptions,
    *,
    unit_bytes: int = 64 << 20,
    fewest_units: int = UNITS_WANTED,
) -> Plan:
    """Plan the reading of some files.

    Args:
        files: as `list_inputs` gives them.
        options: `range_bytes` sets where files may be cut.
        unit_bytes: the most that a unit should hold, bytes; a range is never cut, so that units
            may hold up to a range more. Small inputs get smaller units.
        fewest_units: how many units to have, if ranges are small enough for it.

    Raises:
        SettingsError: `unit_bytes` is below 1, or a file's name is not UTF-8.
    """
    if unit_bytes < 1:
        raise SettingsError(f"the size of a unit must be at least 1 byte, not {unit_bytes}")
    listed = files.files if isinstance(files, InputList) else tuple(files)
    for file in listed:
        check_name(file.path)
    total = sum(_file_cost(file) for file in listed)
    target = min(unit_bytes, max(options.range_bytes, total // fewest_units))
    units = tuple(
        Unit(index, _join_ranges(ranges))
        for index, ranges in enumerate(_group(_cut(listed, options.range_bytes), target))
    )
    settings = {
        "files": [asdict(file) for file in listed],
        "options": options.to_settings(),
        "unit_bytes": unit_bytes,
    }
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return Plan(units, listed, hashlib.sha256(text.encode("ascii")).hexdigest())


def check_name(path: str) -> None:
    """Refuse a name that outputs, which are UTF-8 throughout, could not repeat.

    Raises:
        SettingsError: the name holds bytes that are not UTF-8.
    """
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise SettingsError(
            f"{shown}: the file's name is not UTF-8, so that no manifest or shard could name it; "
            f"rename it, or leave it out of --input"
        ) from error


def can_be_cut(file: InputFile) -> bool:
    """Whether several units may read a file, each a range of it.

    Compressed files have to be unpacked from their start. Whether a line feed of a CSV file is
    quoted depends on everything before it. To number the rows of an Arrow file, all batches before
    a range are looked up, which is quick on this machine's own storage alone. Where reading stops
    at a row, no byte tells which ranges are read.
    """
    if file.refusal is not None or (file.stop is not None and file.format in TABLE_FORMATS):
        return False
    if file.format == "arrow":
        return is_local(file.path)
    return file.compression == "none" and file.format not in {"csv", "tsv"}


def unpacked_guess(file: InputFile) -> int:
    """About how many bytes of text a file holds."""
    if file.refusal is not None:
        return 0
    if file.text_bytes is not None:
        return file.text_bytes
    is_packed = file.compression != "none" or file.format == "parquet"
    return file.size * (COMPRESSION_GUESS if is_packed else 1)


def _cut(files: Iterable[InputFile], range_bytes: int) -> Iterator[FileRange]:
    for file in files:
        if not can_be_cut(file):
            yield FileRange(file, 0, None)
            continue
        # An empty file still has one range: it may be an empty document.
        end = file.size if file.stop is None else min(file.size, file.stop)
        for start in range(0, max(end, 1), range_bytes):
            yield FileRange(file, start, min(start + range_bytes, file.size))


def _group(ranges: Iterable[FileRange], target: int) -> Iterator[list[FileRange]]:
    """Consecutive ranges together until a group costs `target`."""
    group: list[FileRange] = []
    cost = 0
    for range_ in ranges:
        group.append(range_)
        cost += _range_cost(range_)
        if cost >= target:
            yield group
            group, cost = [], 0
    if group:
        yield group


def _file_cost(file: InputFile) -> int:
    return FILE_COST_BYTES + unpacked_guess(file)


def _range_cost(range_: FileRange) -> int:
    """Its share of the file's cost by size; the shares of all ranges add up to the whole."""
    whole, size = _file_cost(range_.file), range_.file.size
    if range_.end is None or not size:
        return whole
    return whole * range_.end // size - whole * range_.start // size


def _join_ranges(ranges: Iterable[FileRange]) -> tuple[FileRange, ...]:
    """Neighbours within a file as one: a plan of terabytes has to stay small."""
    joined: list[FileRange] = []
    for range_ in ranges:
        if joined and joined[-1].file == range_.file:
            joined[-1] = FileRange(range_.file, joined[-1].start, range_.end)
        else:
            joined.append(range_)
    return tuple(joined)


def create_units(units: list[Unit]) -> beam.PTransform:
    """The first step of a job: its units as JSON, spread over the workers."""
    # Create reshuffles by default; without that all units would run on one worker.
    return "Units" >> beam.Create([unit.to_json().encode() for unit in units])
