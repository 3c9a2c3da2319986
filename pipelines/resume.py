"""What an encode run finds in its output folder, and what of it is kept.

    run.json        written before work: settings and inputs, so that a later run can compare

A unit is kept only if its sidecars match the settings digest, the identity of its input and the
hash of each shard's file; everything else of an unfinished run is made again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bpe.errors import OutputError
from pipelines.encode_documents import EncodeSettings
from pipelines.manifest import MANIFEST, file_sha256, input_record, read_manifest, read_sidecar
from pipelines.output_files import (
    delete_files,
    exists,
    join,
    list_files,
    read_bytes,
    remove_temporary_files,
    write_atomically,
)
from pipelines.plan import Plan, Unit
from pipelines.settings import describe_differences, refused_rejects
from pipelines.write_shards import input_identity, sidecar_name

__all__ = ["Found", "begin_run", "find_finished_units", "remove_stale_files"]

RUN = "run.json"
_OURS = re.compile(r"shard-\d{5,}-\d{3,}\.arrow(\.json)?|manifest\.json|run\.json")
_REJECTS = re.compile(r"unit-\d{5,}\.jsonl")
_HASHING_THREADS = 4


@dataclass(frozen=True)
class Found:
    """What a run found in its output folder.

    Attributes:
        finished: a manifest with equal settings and inputs is there: nothing to do.
        resumed: an unfinished run with equal settings is there.
        notes: sentences for the user.
    """

    finished: bool = False
    resumed: bool = False
    notes: tuple[str, ...] = ()


def begin_run(output: str, settings: EncodeSettings, plan: Plan, *, overwrite: bool) -> Found:
    """Compare the output folder with this run, and mark it as this run's.

    Args:
        output: a folder that can be written (`output_files.prepare_output`).
        settings: of this run.
        plan: of this run.
        overwrite: remove what an earlier run made, whatever its settings.

    Raises:
        OutputError: the folder holds the shards of other settings or inputs, or files that are not
            ours; the text names what differs.
    """
    if overwrite:
        _remove_everything(output)
    inputs = input_record(plan)
    wanted: dict[str, Any] = {"settings": settings.to_dict(), "inputs": inputs}
    path = join(output, RUN)
    if not exists(path):
        if not overwrite:
            _refuse_foreign_files(output)
        write_atomically(output, RUN, _to_json(wanted))
        return Found()
    try:
        earlier = json.loads(read_bytes(path))
    except ValueError as error:
        raise OutputError(f"{path}: is damaged ({error}); --overwrite starts again") from error
    _refuse_other_settings(output, earlier, wanted)
    changed = _changed_files(earlier["inputs"], inputs)
    notes = [f"{len(changed)} input file(s) changed since, such as {changed[0]}"] if changed else []
    finished = exists(join(output, MANIFEST)) and not changed
    if finished:
        _refuse_rejects(output, settings)
    if not finished:
        delete_files(output, [MANIFEST])
        write_atomically(output, RUN, _to_json(wanted))
    return Found(finished, not finished, tuple(notes))


def _to_json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def _changed_files(old: list[dict[str, str]], new: list[dict[str, str]]) -> list[str]:
    before = {entry["path"]: entry["identity"] for entry in old}
    return [entry["path"] for entry in new if before.get(entry["path"]) != entry["identity"]]


def _refuse_other_settings(
    output: str, earlier: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    differences = describe_differences(earlier["settings"], wanted["settings"])
    old_paths = [entry["path"] for entry in earlier["inputs"]]
    new_paths = [entry["path"] for entry in wanted["inputs"]]
    if old_paths != new_paths:
        other = min(set(old_paths) ^ set(new_paths))
        differences.append(
            f"inputs: was {len(old_paths)} file(s), now {len(new_paths)}, which differ in {other}"
        )
    if differences:
        raise OutputError(
            f"--output {output}: holds shards made with other settings ({'; '.join(differences)}); "
            "give the same settings to go on, another folder, or --overwrite to start again"
        )


def _refuse_rejects(output: str, settings: EncodeSettings) -> None:
    rejects = read_manifest(output).totals["rejects"]
    if refused_rejects(rejects, settings.read):
        raise OutputError(
            f"--output {output}: is finished, but left out bad rows or files ({rejects}); give "
            "--on-bad-record=skip or --on-bad-file=skip to accept that, or --overwrite"
        )


def _refuse_foreign_files(output: str) -> None:
    names = sorted(list_files(output))
    if names:
        raise OutputError(
            f"--output {output}: the folder holds {names[0]} and was not begun by this command; "
            "choose an empty folder, or --overwrite to replace shards in it"
        )


def _remove_everything(output: str) -> None:
    """Remove what this command makes; other files of the folder are the user's."""
    # The manifest goes first: without it nobody takes the rest for finished.
    delete_files(output, [MANIFEST])
    delete_files(output, [name for name in list_files(output) if _OURS.fullmatch(name)])
    folder = join(output, "rejects")
    delete_files(folder, [name for name in list_files(folder) if _REJECTS.fullmatch(name)])
    remove_temporary_files(output)


def find_finished_units(output: str, settings: EncodeSettings, plan: Plan) -> set[int]:
    """Units whose shards are all there, whole, of these settings and of the same input."""
    names = list_files(output)

    def is_finished(unit: Unit) -> bool:
        return _is_finished(output, names, settings, unit)

    with ThreadPoolExecutor(_HASHING_THREADS) as threads:
        kept = threads.map(is_finished, plan.units)
        return {unit.index for unit, keep in zip(plan.units, kept, strict=True) if keep}


def _is_finished(
    output: str, names: Mapping[str, int], settings: EncodeSettings, unit: Unit
) -> bool:
    identity = input_identity(unit)
    part = 0
    while sidecar_name(unit.index, part) in names:
        try:
            sidecar = read_sidecar(output, sidecar_name(unit.index, part))
        except OutputError:
            return False
        same = sidecar.settings_digest == settings.digest and sidecar.inputs == identity
        if not same or names.get(sidecar.file) != sidecar.file_bytes:
            return False
        if file_sha256(join(output, sidecar.file)) != sidecar.sha256:
            return False
        if sidecar.unit_totals is not None:
            totals = sidecar.unit_totals
            if refused_rejects(totals.rejects, settings.read):
                return False
            return totals.rejects_file is None or exists(join(output, totals.rejects_file))
        part += 1
    return False


def remove_stale_files(output: str, kept: set[int]) -> int:
    """Remove shards, sidecars and rejects of units that are not kept; returns how many files.

    Such files are left by a killed run, or belong to a plan that the input has outgrown.
    """
    stale = [
        name
        for name in list_files(output)
        if name.startswith("shard-") and _OURS.fullmatch(name) and _unit_of(name) not in kept
    ]
    delete_files(output, stale)
    folder = join(output, "rejects")
    rejects = [
        name
        for name in list_files(folder)
        if _REJECTS.fullmatch(name) and int(name[5:].split(".")[0]) not in kept
    ]
    delete_files(folder, rejects)
    remove_temporary_files(output)
    return len(stale) + len(rejects)


def _unit_of(name: str) -> int:
    return int(name.split("-")[1])
