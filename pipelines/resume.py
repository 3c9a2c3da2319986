"""What an encode run finds in its output folder, and what of it is kept.

A unit is kept only if its sidecars match the settings digest, the identity of its input and the
hash of each shard's file; everything else of an unfinished run is made again. A finished output
that has lost a file is an unfinished one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bpe.errors import BpeError, OutputError
from pipelines.encode_documents import EncodeSettings
from pipelines.manifest import MANIFEST, file_sha256, input_record, read_manifest, read_sidecar
from pipelines.output_files import (
    delete_files,
    exists,
    join,
    list_files,
    remove_temporary_files,
)
from pipelines.output_folder import (
    REJECTS_FOLDER,
    delete_rejects,
    read_run,
    refuse_foreign_files,
    refuse_other_command,
    write_run,
)
from pipelines.plan import Plan, Unit
from pipelines.settings import describe_differences, refused_rejects
from pipelines.tokenizer_files import TOKENIZER_FOLDER, load_copy
from pipelines.write_shards import input_identity, sidecar_name
from schemas.run_record import InputRecord, RunRecord
from schemas.sidecars import Manifest

__all__ = ["SHARD_FILE", "Found", "begin_run", "find_finished_units", "remove_stale_files"]

SHARD_FILE = re.compile(r"shard-(\d{5,})-\d{3,}\.arrow(\.json)?")
"""Names of shards and of their sidecars."""

_COMMAND = "encode"
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
    wanted = RunRecord(command=_COMMAND, settings=settings.to_dict(), inputs=input_record(plan))
    if overwrite:
        refuse_other_command(output, _COMMAND)
        _remove_everything(output)
    earlier = None if overwrite else read_run(output, _COMMAND)
    if earlier is None:
        if not overwrite:
            refuse_foreign_files(output, (TOKENIZER_FOLDER, REJECTS_FOLDER))
        write_run(output, wanted)
        return Found()
    _refuse_other_settings(output, earlier, wanted)
    changed = _changed_files(earlier.inputs, wanted.inputs)
    notes = [f"{len(changed)} input file(s) changed since, such as {changed[0]}"] if changed else []
    if exists(join(output, MANIFEST)) and not changed:
        fault = _find_fault(output, settings)
        if fault is None:
            return Found(finished=True)
        notes.append(f"{fault}; making it again")
    delete_files(output, [MANIFEST])
    write_run(output, wanted)
    return Found(resumed=True, notes=tuple(notes))


def _find_fault(output: str, settings: EncodeSettings) -> str | None:
    """What a folder with a manifest lacks, in a phrase; None if it is finished.

    Sizes of files stand for their content here; `beam-bpe verify` looks into them.
    """
    try:
        manifest = read_manifest(output)
    except OutputError:
        return f"{join(output, MANIFEST)} is damaged, or of another version"
    if manifest.settings_digest != settings.digest:
        return f"{join(output, MANIFEST)} is of other settings"
    _refuse_rejects(output, manifest, settings)
    sizes = list_files(output)
    for shard in manifest.shards:
        if sizes.get(shard.file) != shard.file_bytes:
            return f"{join(output, shard.file)} is missing or of another size"
        if f"{shard.file}.json" not in sizes:
            return f"{join(output, shard.file)}.json is missing"
        rejects = shard.unit_totals.rejects_file if shard.unit_totals else None
        if rejects is not None and not exists(join(output, rejects)):
            return f"{join(output, rejects)} is missing"
    folder = join(output, TOKENIZER_FOLDER)
    try:
        same = load_copy(folder).digest == settings.tokenizer_digest
    except BpeError:
        same = False
    return None if same else f"{folder} is not the tokenizer of the shards"


def _changed_files(old: list[InputRecord], new: list[InputRecord]) -> list[str]:
    before = {entry["path"]: entry["identity"] for entry in old}
    return [entry["path"] for entry in new if before.get(entry["path"]) != entry["identity"]]


def _refuse_other_settings(output: str, earlier: RunRecord, wanted: RunRecord) -> None:
    differences = describe_differences(earlier.settings, wanted.settings)
    old_paths = [entry["path"] for entry in earlier.inputs]
    new_paths = [entry["path"] for entry in wanted.inputs]
    if old_paths != new_paths:
        other = min(set(old_paths) ^ set(new_paths), default="their order")
        differences.append(
            f"inputs: was {len(old_paths)} file(s), now {len(new_paths)}, which differ in {other}"
        )
    if differences:
        raise OutputError(
            f"--output {output}: holds shards made with other settings ({'; '.join(differences)}); "
            "give the same settings to go on, another folder, or --overwrite to start again"
        )


def _refuse_rejects(output: str, manifest: Manifest, settings: EncodeSettings) -> None:
    rejects = manifest.totals.rejects
    if refused_rejects(rejects, settings.read):
        raise OutputError(
            f"--output {output}: is finished, but left out bad rows or files ({rejects}); give "
            "--on-bad-record=skip or --on-bad-file=skip to accept that, or --overwrite"
        )


def _remove_everything(output: str) -> None:
    """Remove what this command makes; other files of the folder are the user's."""
    # The manifest goes first: without it nobody takes the rest for finished.
    delete_files(output, [MANIFEST])
    delete_files(output, [name for name in list_files(output) if SHARD_FILE.fullmatch(name)])
    delete_rejects(output)
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
    found = {name: SHARD_FILE.fullmatch(name) for name in list_files(output)}
    stale = [name for name, match in found.items() if match and int(match[1]) not in kept]
    delete_files(output, stale)
    rejects = delete_rejects(output, frozenset(kept))
    remove_temporary_files(output)
    return len(stale) + rejects
