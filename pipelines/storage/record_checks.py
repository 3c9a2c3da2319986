"""Checks of what was read back from a file: names are ours, and numbers are counts.

Every record of an output goes through `check_record` before anybody uses it. A name in it must be
the one that `pipelines.storage.output_names` makes of the numbers beside it, or a plain file name
of the kind that the record lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Annotated, Any

import msgspec

from bpe.errors import BpeError, OutputError, SettingsError
from pipelines.storage.output_layout import REJECTS
from pipelines.storage.output_names import (
    BUCKET_FILE,
    check_splits,
    is_split_name,
    rejects_name,
    shard_name,
)
from schemas.count_manifest import CountManifest
from schemas.export_record import ExportRecord
from schemas.round_records import CountRecord, InitialRecord, SegmentsRecord
from schemas.round_state import StateFile
from schemas.run_record import RunRecord
from schemas.sidecars import Manifest, ShardSidecar, UnitRecord

__all__ = ["CheckedSettings", "check_record", "shown_value"]

_COMMANDS = ("train", "encode", "export")
_STATE = re.compile(r"r(\d{3,})-(unit-\d{5,}-\d{3,}|shard-\d{5,})\.arrow")
# Column sums and row positions are int64.
_LARGEST = 2**63 - 1
# Sums of counts that each fit int64.
_LARGER = frozenset({"occurrences"})
# Settings may hold anything; what readers use of them is checked as `CheckedSettings`.
_UNCHECKED = frozenset({"settings"})
_DIGESTS = ("digest", "sha256")
_DIGEST = re.compile(r"[0-9a-f]{0,64}")
_LEAVES = frozenset({str, float, bool, type(None)})
_LONGEST_VALUE = 100
_LONGEST_NAME = 255

_Id = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class CheckedSettings(msgspec.Struct):
    """The settings of an encode run that readers of its output use; absent ones have no effect."""

    splits: list[tuple[str, str]] = []
    pack: Annotated[int, msgspec.Meta(ge=1, le=2**26)] | None = None
    pack_mode: str | None = None
    pack_tail: str | None = None
    shuffle: str = "none"
    special_text: str = "text"
    bos: _Id | None = None
    eos: _Id | None = None
    pad: _Id | None = None


class _FaultError(ValueError):
    """What is wrong with a record; the places from the inside out."""

    def __init__(self, value: Any, what: str, place: str = "") -> None:
        super().__init__(what)
        self.value = value
        self.what = what
        self.places = [place] if place else []


def check_record(
    record: Any, path: str, *, remedy: str, error: type[BpeError] = OutputError
) -> None:
    """Refuse a record whose names are not ours, or whose numbers are not counts.

    Args:
        record: as decoded from a file; its types are right.
        path: of the file, for the message.
        remedy: what the user can do, to end the message with.
        error: class of the error.

    Raises:
        BpeError: of the class `error`; names the file, the field and its value.
    """
    try:
        _check(record)
    except _FaultError as fault:
        place = "".join(reversed(fault.places)).removeprefix(".")
        raise error(
            f"{path}: {place} is {shown_value(fault.value)}, {fault.what}; {remedy}"
        ) from fault


def shown_value(value: Any) -> str:
    """A value of a file, spelled in ASCII on one line, and cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 8 * _LONGEST_VALUE:
        return f"an integer of {value.bit_length()} bits"
    text = ascii(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _check(value: Any) -> None:
    """Check a value and all that it holds.

    An output has a hundred thousand shards: places are spelled when something is wrong.
    """
    kind = type(value)
    if kind is int:
        _check_number(value)
    elif kind is list:
        for index, each in enumerate(value):
            try:
                _check(each)
            except _FaultError as fault:
                fault.places.append(f"[{index}]")
                raise
    elif kind is dict:
        for name, each in value.items():
            try:
                _check(each)
            except _FaultError as fault:
                fault.places.append(f"[{shown_value(name)}]")
                raise
    elif kind not in _LEAVES:
        _check_fields(value)


def _check_fields(record: Any) -> None:
    """Check the fields of a record, and its names."""
    kind: Any = type(record)
    for name, is_digest in _fields_of(kind):
        value = getattr(record, name)
        try:
            if is_digest:
                _check_digest(value)
            elif type(value) not in _LEAVES:
                _check(value)
        except _FaultError as fault:
            fault.places.append(f".{name}")
            raise
    check_names = _NAMES.get(kind)
    if check_names is not None:
        check_names(record)


@cache
def _fields_of(kind: Any) -> list[tuple[str, bool]]:
    """Names of the fields to check of a class, and whether they are digests."""
    if issubclass(kind, msgspec.Struct):
        names = list(kind.__struct_fields__)
    else:
        names = [field.name for field in fields(kind)]
    unchecked = _UNCHECKED | _LARGER
    return [(name, name.endswith(_DIGESTS)) for name in names if name not in unchecked]


def _at(place: str, check: Callable[[Any], None], value: Any) -> None:
    try:
        check(value)
    except _FaultError as fault:
        fault.places.append(place)
        raise


def _check_number(value: int) -> None:
    if not 0 <= value <= _LARGEST:
        raise _FaultError(value, f"and must be from 0 to {_LARGEST}")


def _check_digest(value: str | None) -> None:
    if value is not None and not _DIGEST.fullmatch(value):
        raise _FaultError(value, "and must be a SHA-256 in hexadecimal digits")


def _expect(found: Any, expected: Any, place: str) -> None:
    if found != expected:
        raise _FaultError(found, f"and must be {shown_value(expected)}", place)


def _check_plain(name: str) -> None:
    """A file name alone: no path, nothing that is not printable."""
    is_plain = (
        0 < len(name.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME
        and name.isprintable()
        and not name.startswith(".")
        and not set(name) & {"/", "\\"}
    )
    if not is_plain:
        raise _FaultError(name, "and must be the name of a file in this folder")


def _check_run(record: RunRecord) -> None:
    if record.command not in _COMMANDS:
        raise _FaultError(record.command, f"and must be one of {', '.join(_COMMANDS)}", ".command")
    if record.command == "encode":
        _at(".settings", _check_settings, record.settings)
    elif record.command == "export" and len(record.inputs) != 1:
        raise _FaultError(record.inputs, "and must name one folder", ".inputs")


def _check_settings(settings: Mapping[str, Any]) -> None:
    known = {name: settings[name] for name in CheckedSettings.__struct_fields__ if name in settings}
    try:
        checked = msgspec.convert(known, CheckedSettings)
    except msgspec.ValidationError as error:
        name = str(error).rpartition("`$.")[2].rstrip("`").partition("[")[0]
        raise _FaultError(known.get(name), f"which is damaged ({error})", f".{name}") from error
    for index, (name, _) in enumerate(checked.splits):
        if not is_split_name(name):
            raise _FaultError(name, "which is no name of a split", f".splits[{index}][0]")
    try:
        check_splits(checked.splits)
    except SettingsError as error:
        what = "where names must differ, and shares be decimal numbers that add up to 1"
        raise _FaultError(settings["splits"], what, ".splits") from error


def _check_sidecar(record: ShardSidecar) -> None:
    if record.split and not is_split_name(record.split):
        raise _FaultError(record.split, "which is no name of a split", ".split")
    _expect(record.file, shard_name(record.unit, record.part, record.split), ".file")
    _at(".inputs", _check_inputs, record.inputs)
    totals = record.unit_totals
    if totals is not None and totals.rejects_file is not None:
        _expect(
            totals.rejects_file, rejects_name(record.unit, REJECTS), ".unit_totals.rejects_file"
        )


def _check_unit(record: UnitRecord) -> None:
    _at(".inputs", _check_inputs, record.inputs)
    if record.totals.rejects_file is not None:
        _expect(
            record.totals.rejects_file, rejects_name(record.unit, REJECTS), ".totals.rejects_file"
        )


def _check_inputs(inputs: Sequence[Mapping[str, Any]]) -> None:
    kinds = {"path": str, "identity": str, "start": int, "end": int | None}
    for index, each in enumerate(inputs):
        if each.keys() - {"stop"} != kinds.keys():
            raise _FaultError(list(each), f"and must have {', '.join(kinds)}", f"[{index}]")
        for name, kind in [*kinds.items(), *([("stop", int)] if "stop" in each else [])]:
            if not isinstance(each[name], kind):
                raise _FaultError(each[name], "which is of another type", f"[{index}].{name}")


def _check_manifest(record: Manifest) -> None:
    _at(".settings", _check_settings, record.settings)
    names = [split[0] for split in record.settings.get("splits") or ()] or [""]
    if not record.shards:
        raise _FaultError([], "and every output has a shard", ".shards")
    for index, shard in enumerate(record.shards):
        if shard.split not in names:
            known = f"and the settings have the splits {', '.join(names)}"
            raise _FaultError(shard.split, known, f".shards[{index}].split")
    width = record.settings.get("pack") or 1
    for name, factor in (("rows", width), ("documents", 1), ("tokens", 1)):
        total = sum(getattr(shard, name) for shard in record.shards)
        if total * factor > _LARGEST:
            raise _FaultError(total, "which is more than can be", f".shards: the sum of {name}")


def _check_export(record: ExportRecord) -> None:
    for index, file in enumerate(record.files):
        _at(f".files[{index}].name", _check_plain, file.name)
    for name in ("to", "dtype"):
        if not isinstance(record.settings.get(name), str):
            raise _FaultError(record.settings.get(name), "and must be a text", f".settings.{name}")


def _check_counts(record: CountManifest) -> None:
    if record.totals.occurrences < 0:
        raise _FaultError(record.totals.occurrences, "and must not be negative", ".occurrences")
    before = ""
    for index, file in enumerate(record.files):
        if not BUCKET_FILE.fullmatch(file.name) or file.name <= before:
            what = "and must be a name such as bucket-00000.arrow, after those before it"
            raise _FaultError(file.name, what, f".files[{index}].name")
        before = file.name


def _check_state(record: StateFile) -> None:
    if not _STATE.fullmatch(record.file):
        raise _FaultError(record.file, "and must be a name such as r000-unit-00000-000.arrow")


def _check_initial(record: InitialRecord) -> None:
    if not record.state_files:
        raise _FaultError([], "and every state has a file", ".state_files")
    _check_round(record.state_files, 0)


def _check_counted(record: CountRecord) -> None:
    _check_round(record.state_files, record.round)
    _at(".files", _check_keys, record.files)


def _check_segments(record: SegmentsRecord) -> None:
    _at(".files", _check_keys, record.files)


def _check_keys(files: Mapping[str, str]) -> None:
    for name in files:
        _at(f"[{shown_value(name)}]", _check_plain, name)


def _check_round(files: Sequence[StateFile], round_: int) -> None:
    """All files are of one round, each once."""
    seen: set[str] = set()
    for index, each in enumerate(files):
        match = _STATE.fullmatch(each.file)
        if match is None or int(match[1]) != round_ or each.file in seen:
            what = f"and must be another file of round {round_}"
            raise _FaultError(each.file, what, f".state_files[{index}].file")
        seen.add(each.file)


_NAMES: Mapping[type, Callable[[Any], None]] = {
    RunRecord: _check_run,
    ShardSidecar: _check_sidecar,
    UnitRecord: _check_unit,
    Manifest: _check_manifest,
    ExportRecord: _check_export,
    CountManifest: _check_counts,
    StateFile: _check_state,
    InitialRecord: _check_initial,
    CountRecord: _check_counted,
    SegmentsRecord: _check_segments,
}
