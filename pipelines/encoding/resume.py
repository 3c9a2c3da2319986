"""What an encode run finds in its output folder, and what of it is kept.

A unit is kept only if its sidecars match the settings digest, the identity of its input and the
hash of each shard's file; everything else of an unfinished run is made again. A finished output
that has lost a file is an unfinished one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bpe.errors import BpeError, OutputError
from pipelines.corpus.plan import Plan, Unit
from pipelines.corpus.settings import refuse_rejects, refused_rejects
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import (
    file_sha256,
    read_manifest,
    read_unit_record,
    sidecars_of,
)
from pipelines.shards.shard_files import list_shards
from pipelines.shards.tokenizer_files import clear_model, load_copy
from pipelines.shards.write_shards import ShardGroup, input_identity
from pipelines.storage.output_files import (
    delete_files,
    exists,
    is_local,
    join,
    list_files,
    remove_empty_folder,
    remove_temporary_files,
)
from pipelines.storage.output_folder import delete_rejects, find_run, has_old_layout
from pipelines.storage.output_layout import (
    MANIFEST,
    OLD_FILES,
    OLD_MANIFEST,
    OLD_TOKENIZER,
    REJECTS,
    RUN,
    SPILL_FOLDER,
    TOKENIZER_FOLDER,
    UNIT_FOLDER,
)
from pipelines.storage.output_names import SHARD_FILE, sidecar_name, spill_name, unit_record_name
from pipelines.storage.run_folder import Claim, Run, refuse_changes
from pipelines.storage.wording import counted, describe_differences
from schemas.run_record import RunRecord
from schemas.sidecars import Manifest, UnitTotals

__all__ = [
    "EncodeFolder",
    "find_finished_groups",
    "find_read_units",
    "remove_spills",
    "remove_stale_files",
]

# Spills and records of units, in folders of their own.
_UNIT_FILE = re.compile(r"unit-(\d{5,})\.(?:arrow|json)")
_HASHING_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class EncodeFolder(Run[Manifest]):
    """The output folder of an encode run; `settings` are those of this run."""

    settings: EncodeSettings

    def compare(self, earlier: RunRecord) -> Claim[Manifest]:
        """What an earlier run left; a damaged output is an unfinished one."""
        if earlier != self.wanted and _holds_nothing(self.output):
            # A run that failed at once, say by a wrong setting, is not in the way of the right one.
            return Claim()
        _refuse_other_settings(self.output, earlier, self.wanted)
        before = {each["path"]: each["identity"] for each in earlier.inputs}
        now = {each["path"]: each["identity"] for each in self.wanted.inputs}
        if changed := [path for path in now if before.get(path) != now[path]]:
            files = counted(len(changed), "input file")
            return Claim("resumed", (f"{files} changed since, such as {changed[0]}",))
        if not exists(join(self.output, MANIFEST)):
            return Claim("resumed")
        found = _find_manifest(self.output, self.settings)
        if isinstance(found, str):
            return Claim("resumed", (f"{found}; making it again",))
        return Claim("finished", record=found)

    def clear(self) -> None:
        """Remove what this command makes; other files of the folder are the user's."""
        output, split_names = self.output, _splits_before(self.output)
        if self.overwrite:
            split_names |= set(self.settings.split_names)
        # The manifest goes first: without it nobody takes the rest for finished.
        delete_files(output, [MANIFEST])
        delete_files(output, list(list_shards(output, tuple(split_names))))
        delete_rejects(output, folder=REJECTS)
        remove_spills(output)
        _remove_unit_files(output, UNIT_FOLDER, frozenset())
        if has_old_layout(output):
            _remove_old_files(output, split_names)
        remove_temporary_files(output)

    def begin(self) -> None:
        """Write the record of the run, in a folder that is not finished."""
        delete_files(self.output, [MANIFEST])
        super().begin()


def _find_manifest(output: str, settings: EncodeSettings) -> Manifest | str:
    """The manifest of a finished folder; of another one, what it lacks, in a phrase.

    Sizes of files stand for their content here; `beam-bpe verify` looks into them.
    """
    try:
        manifest = read_manifest(output)
    except OutputError:
        return f"{join(output, MANIFEST)} is damaged, or of another version"
    if manifest.settings_digest != settings.digest:
        return f"{join(output, MANIFEST)} is of other settings"
    left_out = manifest.totals.rejects
    refuse_rejects(f"--output {output}: is finished, but", left_out, settings.read)
    sizes = list_shards(output, settings.split_names)
    for shard in manifest.shards:
        if sizes.get(shard.file) != shard.file_bytes:
            return f"{join(output, shard.file)} is missing or of another size"
        sidecar = sidecar_name(shard.unit, shard.part, shard.split)
        if sidecar not in sizes:
            return f"{join(output, sidecar)} is missing"
        rejects = shard.unit_totals.rejects_file if shard.unit_totals else None
        if rejects is not None and not exists(join(output, rejects)):
            return f"{join(output, rejects)} is missing"
    for unit in manifest.units:
        for name in (unit_record_name(unit.unit), unit.totals.rejects_file):
            if name is not None and not exists(join(output, name)):
                return f"{join(output, name)} is missing"
    folder = join(output, TOKENIZER_FOLDER)
    try:
        same = load_copy(folder).digest == settings.tokenizer_digest
    except BpeError:
        same = False
    return manifest if same else f"{folder} is not the tokenizer of the shards"


def _refuse_other_settings(output: str, earlier: RunRecord, wanted: RunRecord) -> None:
    refuse_changes(
        f"--output {output}: holds shards made with other settings",
        describe_differences(earlier.settings, wanted.settings),
        "give the same settings to go on, another folder, or --overwrite to start again",
    )
    old_paths = [entry["path"] for entry in earlier.inputs]
    new_paths = [entry["path"] for entry in wanted.inputs]
    if old_paths != new_paths:
        other = min(set(old_paths) ^ set(new_paths), default=None)
        what = "their order changed" if other is None else other
        if other is not None:
            what += " is new" if other in new_paths else " is gone"
        raise OutputError(
            f"--output {output}: holds shards of another input: was "
            f"{counted(len(old_paths), 'file')}, now "
            f"{len(new_paths)}; {what}; give the same input to go on, another folder, or "
            "--overwrite to start again"
        )


def _holds_nothing(output: str) -> bool:
    """Whether no unit of the earlier run has left a result."""
    if exists(join(output, MANIFEST)) or exists(join(output, SPILL_FOLDER)):
        return False
    shards = list_shards(output, tuple(_splits_before(output)))
    return not shards and not list_files(join(output, UNIT_FOLDER))


def _splits_before(output: str) -> set[str]:
    """Folders of the shards of the run that is overwritten; of a damaged record, none are known."""
    with suppress(OutputError):
        if (earlier := find_run(output)) is not None:
            return {"", *(str(split[0]) for split in earlier.settings.get("splits") or [])}
    return {""}


def _remove_old_files(output: str, split_names: set[str]) -> None:
    """Remove what is not a shard of an output of an earlier version; its record goes last."""
    delete_files(output, [OLD_MANIFEST])
    folders = dict.fromkeys(split_names, OLD_FILES[""]) | OLD_FILES
    for folder, pattern in folders.items():
        path = join(output, folder) if folder else output
        delete_files(path, [name for name in list_files(path) if re.fullmatch(pattern, name)])
        if folder and folder not in split_names:
            remove_empty_folder(path)
    clear_model(join(output, OLD_TOKENIZER))
    remove_empty_folder(join(output, OLD_TOKENIZER))
    delete_files(output, [RUN])


def find_read_units(
    output: str, settings: EncodeSettings, plan: Plan, *, with_spills: bool
) -> set[int]:
    """Units that were read for a global shuffle, of these settings and of the same input.

    Their rows must be there too, whole, where they are needed: `with_spills`.
    """
    records = list_files(join(output, UNIT_FOLDER))
    spills = list_files(join(output, SPILL_FOLDER))

    def is_kept(unit: Unit) -> bool:
        if unit_record_name(unit.index).removeprefix(f"{UNIT_FOLDER}/") not in records:
            return False
        try:
            record = read_unit_record(output, unit.index)
        except OutputError:
            return False
        if record.settings_digest != settings.digest or record.inputs != input_identity(unit):
            return False
        if not _has_rejects(output, record.totals, settings):
            return False
        name = spill_name(unit.index)
        if with_spills and spills.get(name.removeprefix(f"{SPILL_FOLDER}/")) != record.spill_bytes:
            return False
        return not with_spills or file_sha256(join(output, name)) == record.spill_sha256

    return _which(is_kept, {unit.index: unit for unit in plan.units})


def find_finished_groups(
    output: str, settings: EncodeSettings, groups: Sequence[ShardGroup]
) -> set[int]:
    """Units or buckets whose shards are all there, whole, of these settings and the same input."""
    names = list_shards(output, settings.split_names)

    def is_finished(group: ShardGroup) -> bool:
        return _is_finished(output, names, settings, group)

    return _which(is_finished, {group.index: group for group in groups})


def _which(holds: Callable[[Any], bool], items: Mapping[int, Any]) -> set[int]:
    """The numbers of the items for which something holds that takes hashing of files."""
    with ThreadPoolExecutor(_HASHING_THREADS) as threads:
        kept = threads.map(holds, items.values())
        return {index for index, keep in zip(items, kept, strict=True) if keep}


def _is_finished(
    output: str, names: Mapping[str, int], settings: EncodeSettings, group: ShardGroup
) -> bool:
    try:
        sidecars = sidecars_of(output, settings.split_names, names, group.index)
    except OutputError:
        return False
    for sidecar in sidecars or []:
        same = sidecar.settings_digest == settings.digest
        same &= sidecar.inputs == group.inputs and sidecar.input_digest == group.input_digest
        if not same or names.get(sidecar.file) != sidecar.file_bytes:
            return False
        if file_sha256(join(output, sidecar.file)) != sidecar.sha256:
            return False
    totals = sidecars[-1].unit_totals if sidecars else None
    return totals is not None and _has_rejects(output, totals, settings)


def _has_rejects(output: str, totals: UnitTotals, settings: EncodeSettings) -> bool:
    """Whether rejects, if there are any, are there and allowed."""
    if refused_rejects(totals.rejects, settings.read):
        return False
    return totals.rejects_file is None or exists(join(output, totals.rejects_file))


def remove_stale_files(
    output: str, split_names: tuple[str, ...], groups: set[int], units: set[int]
) -> int:
    """Remove what a killed run left, or a plan that the input has outgrown; returns how many files.

    Args:
        output: the folder.
        split_names: folders of the shards.
        groups: units, or buckets, whose shards and sidecars are kept.
        units: whose lists of rejects, records and spills are kept.
    """
    found = {
        name: SHARD_FILE.fullmatch(name.rsplit("/", 1)[-1])
        for name in list_shards(output, split_names)
    }
    stale = [name for name, match in found.items() if match and int(match[1]) not in groups]
    delete_files(output, stale)
    kept = frozenset(units)
    count = sum(_remove_unit_files(output, each, kept) for each in (SPILL_FOLDER, UNIT_FOLDER))
    remove_temporary_files(output)
    return len(stale) + count + delete_rejects(output, kept, REJECTS)


def remove_spills(output: str) -> None:
    """Remove the spills of a global shuffle, and their folder where it is local and empty."""
    _remove_unit_files(output, SPILL_FOLDER, frozenset())
    folder = join(output, SPILL_FOLDER)
    if is_local(folder):
        with suppress(OSError):
            os.rmdir(folder)


def _remove_unit_files(output: str, folder: str, kept: frozenset[int]) -> int:
    found = {name: _UNIT_FILE.fullmatch(name) for name in list_files(join(output, folder))}
    stale = [name for name, match in found.items() if match and int(match[1]) not in kept]
    delete_files(join(output, folder), stale)
    return len(stale)
