"""Check a finished output folder against what it says of itself.

Nothing is believed that can be found out: records are compared with each other and with the files,
totals are added up again, and facts of a shard are taken from its rows
(`pipelines.verify.verify_shard`). What the input holds is not looked at; see
`pipelines.verify.verify_again`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields

from bpe.errors import OutputError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.settings import digest_of
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import (
    add_up,
    check_balance,
    each_unit_totals,
    file_sha256,
    read_manifest,
    read_sidecar,
    read_unit_record,
)
from pipelines.shards.shard_files import list_shards
from pipelines.shards.tokenizer_files import load_copy
from pipelines.storage.output_files import exists, join, list_files, read_bytes
from pipelines.storage.output_folder import read_run
from pipelines.storage.output_layout import (
    ENCODE_RUN,
    MANIFEST,
    REJECTS,
    TOKENIZER_FOLDER,
    UNIT_FOLDER,
    sidecar_of,
)
from pipelines.storage.output_names import (
    REJECTS_FILE,
    UNIT_RECORD_FILE,
    shard_name,
    unit_record_name,
)
from pipelines.storage.wording import counted
from pipelines.verify.verify_order import RowOrder
from pipelines.verify.verify_packed import PackedCheck
from pipelines.verify.verify_places import InputPlaces, has_tables
from pipelines.verify.verify_ranges import check_ranges
from pipelines.verify.verify_shard import ShardCheck
from schemas.sidecars import Manifest, ShardSidecar, UnitTotals

__all__ = ["Verified", "verify_output"]


@dataclass
class Verified:
    """What was checked.

    Attributes:
        shards: files whose hash and content agree with the manifest.
        rows, tokens: in all shards.
        reencodes: whether ids can be made again from what they decode to.
        encoded_again: rows whose ids were made again and agree; of packed rows, documents.
        passed_ids: ids of documents that are divided among rows, which get other ids alone.
        rejects_files: lists of rejected rows that agree with the counts.
        packed, split, shuffled: what the output is, besides encoded.
        left_out: what no check looked at, in phrases.
        text_bytes: whether the bytes of text were compared with what the ids decode to; a
            tokenizer that normalizes does not allow that.
    """

    shards: int = 0
    rows: int = 0
    tokens: int = 0
    reencodes: bool = True
    encoded_again: int = 0
    passed_ids: int = 0
    rejects_files: int = 0
    packed: bool = False
    split: bool = False
    shuffled: bool = False
    left_out: tuple[str, ...] = ()
    text_bytes: bool = True


def verify_output(
    output: str, *, full: bool = False, progress: Callable[[int], None] = lambda _: None
) -> Verified:
    """Check a finished output of `beam-bpe encode`.

    Args:
        output: the folder.
        full: encode the text of every row again that stands alone, not a sample of each shard.
        progress: called with the number of shards checked so far.

    Raises:
        OutputError: something does not agree; names the file, the row and the values.
        ModelFileError: the tokenizer's copy is damaged or fails its golden set.
    """
    manifest = read_manifest(output)
    settings = _check_settings(output, manifest)
    _check_sidecars(output, manifest, settings)
    _check_units(output, manifest, settings)
    check_ranges(output, manifest)
    _check_totals(output, manifest)
    _check_no_others(output, manifest, settings)
    tokenizer = _load_tokenizer(output, manifest)
    done = Verified(
        rejects_files=_check_rejects(output, manifest),
        packed=settings.pack is not None,
        split=bool(settings.splits),
        shuffled=settings.shuffle != "none",
        left_out=_not_compared(manifest, settings),
        text_bytes=not tokenizer.is_lossy(settings.special_text),
        reencodes=tokenizer.reencodes,
    )
    check = ShardCheck if settings.pack is None else PackedCheck
    streamed = _streamed_units(manifest, settings)
    order = RowOrder(settings, InputPlaces(manifest, settings))
    for sidecar in manifest.shards:
        checked = check(
            output,
            sidecar,
            tokenizer,
            settings,
            order=order,
            is_streamed=sidecar.unit in streamed,
        )
        done.encoded_again += checked.run(full=full)
        done.passed_ids += checked.passed_ids
        done.shards += 1
        done.rows += sidecar.rows
        done.tokens += sidecar.tokens
        progress(done.shards)
    order.close()
    return done


def _not_compared(manifest: Manifest, settings: EncodeSettings) -> tuple[str, ...]:
    """What no check looks at in an output of this kind, in phrases."""
    phrases = []
    if settings.packs_best_fit:
        phrases.append("the order of best-fit's rows")
        if settings.shuffle == "shard":
            phrases.append("that best-fit left nothing of divided documents out")
    if settings.read.id_field is not None:
        phrases.append("ids that come from the input")
    if settings.shuffle != "global" and has_tables(manifest, settings.read.input_format):
        phrases.append("to which unit rows of Parquet and Arrow files belong")
    return tuple(phrases)


def _streamed_units(manifest: Manifest, settings: EncodeSettings) -> set[int]:
    """Units or buckets that may have rows which end within a pre-token."""
    units = {each.unit: each.unit_totals for each in manifest.shards if each.unit_totals}
    if settings.shuffle == "global":
        # Any bucket may have documents of any unit.
        return set(units) if "streamed" in manifest.totals.accepted else set()
    return {unit for unit, totals in units.items() if "streamed" in totals.accepted}


def _failure(output: str, name: str, what: str) -> OutputError:
    return OutputError(f"{join(output, name)}: {what}")


def _check_settings(output: str, manifest: Manifest) -> EncodeSettings:
    """The settings agree with their digest, with the tokenizer's, and with run.json."""
    found = digest_of(manifest.settings)
    if found != manifest.settings_digest:
        raise _failure(
            output,
            MANIFEST,
            f"settings_digest is {manifest.settings_digest}, but its settings give {found}",
        )
    try:
        read = ReadOptions.from_settings(manifest.settings)
        settings = EncodeSettings.from_dict(manifest.settings, read)
    except SettingsError as error:
        raise _failure(output, MANIFEST, str(error)) from error
    if settings.tokenizer_digest != manifest.tokenizer_digest:
        raise _failure(
            output,
            MANIFEST,
            f"tokenizer_digest is {manifest.tokenizer_digest}, but {settings.tokenizer_digest} in "
            "its settings",
        )
    run = read_run(output, "encode")
    if run is None:
        raise _failure(output, ENCODE_RUN, "is missing")
    for name in ("settings", "inputs"):
        if getattr(run, name) != getattr(manifest, name):
            raise _failure(output, ENCODE_RUN, f"its {name} are not those of {MANIFEST}")
    return settings


def _check_sidecars(output: str, manifest: Manifest, settings: EncodeSettings) -> None:
    """The manifest holds every part of every unit once, as the sidecars beside the shards say."""
    unit = part = split = shards = 0
    names = settings.split_names
    known = {(entry["path"], entry["identity"]) for entry in manifest.inputs}
    for shard in manifest.shards:
        # Splits come in order, and any of them may have no shards of the unit.
        if shard.split in names[split + 1 :]:
            split, part = names.index(shard.split), 0
        expected = shard_name(unit, part, names[split])
        found = (shard.unit, shard.part, shard.split, shard.file)
        if found != (unit, part, names[split], expected):
            raise _failure(
                output, MANIFEST, f"lists {shard.file} where {expected} should be: a shard is lost"
            )
        _check_sidecar(output, manifest, shard, known)
        part, shards = part + 1, shards + 1
        if shard.unit_totals is not None:
            if shard.unit_totals.parts != shards:
                raise _failure(
                    output,
                    sidecar_of(shard.file),
                    f"says {counted(shard.unit_totals.parts, 'part')}, and there are {shards}",
                )
            unit, part, split, shards = unit + 1, 0, 0, 0
    if shards:
        raise _failure(output, MANIFEST, f"the last part of unit {unit} is lost")


def _check_sidecar(
    output: str, manifest: Manifest, shard: ShardSidecar, known: set[tuple[str, str]]
) -> None:
    name = sidecar_of(shard.file)
    if not exists(join(output, name)):
        raise _failure(output, name, "is missing")
    if read_sidecar(output, name) != shard:
        raise _failure(output, name, f"says other things of the shard than {MANIFEST}")
    if shard.settings_digest != manifest.settings_digest:
        raise _failure(output, name, "is of other settings than the manifest")
    if any((each["path"], each["identity"]) not in known for each in shard.inputs):
        raise _failure(output, name, "names an input that the manifest does not list")
    if manifest.units and shard.input_digest != _read_by(manifest):
        raise _failure(output, name, "is of another input than the units that were read")


def _read_by(manifest: Manifest) -> str:
    return digest_of([unit.inputs for unit in manifest.units])


def _check_units(output: str, manifest: Manifest, settings: EncodeSettings) -> None:
    """After a global shuffle, the manifest says of each unit what its record says."""
    if bool(manifest.units) != (settings.shuffle == "global"):
        raise _failure(
            output, MANIFEST, f"has {counted(len(manifest.units), 'unit')} of a global shuffle"
        )
    for index, unit in enumerate(manifest.units):
        name = unit_record_name(index)
        if not exists(join(output, name)):
            raise _failure(output, name, "is missing")
        if unit.unit != index or read_unit_record(output, index) != unit:
            raise _failure(output, name, f"says other things of the unit than {MANIFEST}")
        if unit.settings_digest != manifest.settings_digest:
            raise _failure(output, name, "is of other settings than the manifest")
    listed = {unit_record_name(unit.unit) for unit in manifest.units}
    for name in list_files(join(output, UNIT_FOLDER)):
        if f"{UNIT_FOLDER}/{name}" not in listed and UNIT_RECORD_FILE.fullmatch(name):
            raise _failure(output, f"{UNIT_FOLDER}/{name}", f"is not in {MANIFEST}")


def _check_totals(output: str, manifest: Manifest) -> None:
    found = add_up(manifest.shards, manifest.units)
    for field in fields(found):
        written, added = getattr(manifest.totals, field.name), getattr(found, field.name)
        if written != added:
            raise _failure(
                output, MANIFEST, f"totals: {field.name} is {written}, the shards give {added}"
            )
    check_balance(output, found)


def _check_no_others(output: str, manifest: Manifest, settings: EncodeSettings) -> None:
    """No shard and no list of rejects that the manifest does not know: readers would take it."""
    known = {name for each in manifest.shards for name in (each.file, sidecar_of(each.file))}
    for name in list_shards(output, ("", *settings.split_names)):
        if name not in known:
            raise _failure(output, name, f"is not in {MANIFEST}")
    listed = {totals.rejects_file for totals in _unit_totals(manifest)}
    for name in list_files(join(output, REJECTS)):
        path = f"{REJECTS}/{name}"
        if REJECTS_FILE.fullmatch(name) and path not in listed:
            raise _failure(output, path, f"is not in {MANIFEST}")


def _unit_totals(manifest: Manifest) -> list[UnitTotals]:
    """Counts of all units, in order."""
    return [unit.totals for unit in manifest.units] or each_unit_totals(manifest.shards)


def _check_rejects(output: str, manifest: Manifest) -> int:
    """Each list of rejects holds the rows that were counted; returns how many lists there are."""
    count = 0
    for totals in _unit_totals(manifest):
        name = totals.rejects_file
        if name is None:
            if totals.rejects:
                raise _failure(output, MANIFEST, f"counts {totals.rejects}, listed in no file")
            continue
        if not exists(join(output, name)):
            raise _failure(output, name, "is missing")
        reasons = _reasons(output, name)
        if reasons != totals.rejects:
            raise _failure(
                output, name, f"lists {reasons}, but {totals.rejects} were counted: it was changed"
            )
        sha256 = file_sha256(join(output, name))
        if sha256 != totals.rejects_sha256:
            raise _failure(
                output,
                name,
                f"its sha256 is {sha256}, the manifest says {totals.rejects_sha256}",
            )
        count += 1
    return count


def _reasons(output: str, name: str) -> dict[str, int]:
    try:
        rows = read_bytes(join(output, name)).splitlines()
        counts: Counter[str] = Counter()
        for row in map(json.loads, rows):
            # An entry stands for a row or a file, or for the rows of a part.
            counts[str(row["reason"])] += int(row.get("rows", 1))
        return dict(counts)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _failure(output, name, f"is damaged: {error!r}") from error


def _load_tokenizer(output: str, manifest: Manifest) -> Tokenizer:
    # Loading checks the hash of each file, the digest and the golden set.
    tokenizer = load_copy(join(output, TOKENIZER_FOLDER), checks_files=True)
    if tokenizer.digest != manifest.tokenizer_digest:
        raise _failure(
            output,
            TOKENIZER_FOLDER,
            f"is the tokenizer {tokenizer.digest}, the manifest names {manifest.tokenizer_digest}",
        )
    return tokenizer
