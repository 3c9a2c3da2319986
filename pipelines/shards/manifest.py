"""The manifest of an encoded folder, written last, and the sidecars that it is made of.

Everything in it is read back from storage: never from runner counters.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from bpe.errors import OutputError
from pipelines.corpus.plan import Plan
from pipelines.corpus.rejects import check_rejects, rejected_rows
from pipelines.encoding.shuffle_buckets import plan_buckets
from pipelines.encoding.write_output import add_packing
from pipelines.shards.artifact_kind import recognize, what_to_give
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.shard_files import list_shards
from pipelines.storage.output_files import (
    exists,
    join,
    list_files,
    open_bytes,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.output_layout import MANIFEST, OLD_MANIFEST, REJECTS, SIDECARS, UNIT_FOLDER
from pipelines.storage.output_names import sidecar_name, unit_record_name
from pipelines.storage.records import read_record
from schemas.run_record import InputRecord
from schemas.sidecars import (
    MANIFEST_VERSION,
    SIDECAR_VERSION,
    UNIT_RECORD_VERSION,
    Manifest,
    OutputTotals,
    PackingTotals,
    ShardSidecar,
    SplitTotals,
    Spread,
    UnitRecord,
    UnitTotals,
)

__all__ = [
    "MANIFEST",
    "add_up",
    "check_balance",
    "each_unit_totals",
    "file_sha256",
    "input_record",
    "read_manifest",
    "read_sidecar",
    "read_sidecars",
    "read_unit_record",
    "read_unit_records",
    "sidecars_of",
    "write_manifest",
]

_BLOCK = 1 << 20
_AGAIN = "run the encode command again, which repairs it, or start again with --overwrite"
_ANEW = "encode again into another folder, or with --overwrite"


def input_record(plan: Plan) -> list[InputRecord]:
    """Path and identity of each file of a plan, as manifests list them."""
    return [{"path": file.path, "identity": file.identity} for file in plan.files]


def read_sidecar(output: str, name: str) -> ShardSidecar:
    """One sidecar.

    Raises:
        OutputError: it is damaged or cannot be read.
    """
    path = join(output, name)
    return read_record(
        path,
        ShardSidecar,
        version=SIDECAR_VERSION,
        remedy=_AGAIN,
        expected={"file": name.removeprefix(f"{SIDECARS}/").removesuffix(".json")},
    )


def read_unit_record(output: str, unit: int) -> UnitRecord:
    """What a unit left that was read for a global shuffle.

    Raises:
        OutputError: it is damaged or cannot be read.
    """
    path = join(output, unit_record_name(unit))
    return read_record(
        path,
        UnitRecord,
        version=UNIT_RECORD_VERSION,
        remedy=_AGAIN,
        expected={"unit": unit},
    )


def sidecars_of(
    output: str, split_names: tuple[str, ...], names: Mapping[str, int], index: int
) -> list[ShardSidecar] | None:
    """The sidecars of a unit or bucket, in order of split and part; None if one is missing.

    Args:
        output: the folder.
        split_names: of the run.
        names: of all sidecars (`pipelines.shards.shard_files.list_shards`).
        index: of the unit or bucket.

    Raises:
        OutputError: one is damaged.
    """
    sidecars: list[ShardSidecar] = []
    for split in split_names:
        part = 0
        while (name := sidecar_name(index, part, split)) in names:
            sidecars.append(read_sidecar(output, name))
            part += 1
    last = sidecars[-1].unit_totals if sidecars else None
    return sidecars if last is not None and last.parts == len(sidecars) else None


def read_sidecars(output: str, settings: EncodeSettings, plan: Plan) -> list[ShardSidecar]:
    """The sidecars of all units or buckets, read back from storage.

    Raises:
        OutputError: one is missing: the runner said that it was done, and it was not.
    """
    names = list_shards(output, settings.split_names)
    is_global = settings.shuffle == "global"
    count = len(plan_buckets(plan, settings)) if is_global else len(plan.units)
    found: list[ShardSidecar] = []
    for index in range(count):
        sidecars = sidecars_of(output, settings.split_names, names, index)
        if sidecars is None:
            name = sidecar_name(index, 0, settings.split_names[0])
            raise OutputError(
                f"{join(output, name)}: this sidecar, or one of the shards of the same number, is "
                "missing although the job ended; run it again"
            )
        found += sidecars
    return found


def read_unit_records(output: str, plan: Plan) -> list[UnitRecord]:
    """The records of all units that were read for a global shuffle, read back from storage.

    Raises:
        OutputError: one is missing or damaged.
    """
    names = list_files(join(output, UNIT_FOLDER))
    for unit in plan.units:
        name = unit_record_name(unit.index)
        if name.removeprefix(f"{UNIT_FOLDER}/") not in names:
            raise OutputError(
                f"{join(output, name)}: is missing although the job ended; run it again"
            )
    return [read_unit_record(output, unit.index) for unit in plan.units]


def write_manifest(
    output: str,
    settings: EncodeSettings,
    plan: Plan,
    *,
    code_version: str,
    backend: str,
    listing: Mapping[str, int] | None = None,
) -> Manifest:
    """Check the balance of documents and write the manifest, last of all files.

    Args:
        output: the folder of shards.
        settings: of the run.
        plan: of the run.
        code_version: of beam-bpe.
        backend: name of the compute backend; does not decide the shards.
        listing: `InputList.counts`, for the record.

    Raises:
        OutputError: a sidecar is missing, or documents in differ from documents out and rejects.
        BadRecordError: all units together set aside more rows than `max_bad_records`.
        BadFileError: they set aside all of the input.
    """
    sidecars = read_sidecars(output, settings, plan)
    units = read_unit_records(output, plan) if settings.shuffle == "global" else []
    totals = add_up(sidecars, units)
    check_balance(output, totals)
    left = totals.documents_in - totals.rejected - totals.dropped
    check_rejects(
        totals.rejects, settings.read, output, left=left, purpose="encode", folder=REJECTS
    )
    manifest = Manifest(
        code_version=code_version,
        backend=backend,
        tokenizer_digest=settings.tokenizer_digest,
        settings=settings.to_dict(),
        settings_digest=settings.digest,
        plan_digest=plan.digest,
        inputs=input_record(plan),
        listing=dict(listing or {}),
        totals=totals,
        shards=sidecars,
        units=units,
    )
    write_atomically(output, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    remove_temporary_files(output)
    return manifest


def add_up(sidecars: Sequence[ShardSidecar], units: Sequence[UnitRecord] = ()) -> OutputTotals:
    """The totals that sidecars give together; all parts of each unit must be among them.

    Args:
        sidecars: of all shards.
        units: for a global shuffle, the records of all units.
    """
    rejects: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    special_text: Counter[str] = Counter()
    packing = PackingTotals()
    documents_in = 0
    for totals in [*each_unit_totals(sidecars), *(unit.totals for unit in units)]:
        rejects.update(totals.rejects)
        accepted.update(totals.accepted)
        special_text.update(totals.special_text)
        packing = add_packing(packing, totals.packing)
        documents_in += totals.documents_in
    return OutputTotals(
        shards=len(sidecars),
        rows=sum(each.rows for each in sidecars),
        documents=sum(each.documents for each in sidecars),
        tokens=sum(each.tokens for each in sidecars),
        bytes=sum(each.bytes for each in sidecars),
        file_bytes=sum(each.file_bytes for each in sidecars),
        documents_in=documents_in,
        rejected=rejected_rows(rejects),
        dropped=accepted["dropped_empty"],
        rejects=dict(sorted(rejects.items())),
        accepted=dict(sorted(accepted.items())),
        special_text=dict(sorted(special_text.items())),
        packing=packing,
        splits=_by_split(sidecars),
        bytes_per_token=_ratios(sidecars),
    )


def each_unit_totals(sidecars: Sequence[ShardSidecar]) -> list[UnitTotals]:
    """The totals of all units or buckets that have their last shards among these."""
    return [each.unit_totals for each in sidecars if each.unit_totals is not None]


def _ratios(sidecars: Sequence[ShardSidecar]) -> Spread | None:
    """Bytes per token of the shards with the least and the most."""
    ratios = [each.bytes / each.tokens for each in sidecars if each.tokens]
    return Spread(least=min(ratios), most=max(ratios)) if ratios else None


def _by_split(sidecars: Sequence[ShardSidecar]) -> dict[str, SplitTotals]:
    names = sorted({each.split for each in sidecars if each.split})
    shards = {name: [each for each in sidecars if each.split == name] for name in names}
    return {
        name: SplitTotals(
            shards=len(of_split),
            rows=sum(each.rows for each in of_split),
            documents=sum(each.documents for each in of_split),
            tokens=sum(each.tokens for each in of_split),
            bytes=sum(each.bytes for each in of_split),
        )
        for name, of_split in shards.items()
    }


def check_balance(output: str, totals: OutputTotals) -> None:
    """Check that every document read is in the shards, among the rejects, or left out and counted.

    Raises:
        OutputError: documents were lost or made up.
    """
    read, written, cut = totals.documents_in, totals.documents, totals.packing.dropped_documents
    if read != written + totals.rejected + totals.dropped + cut:
        tail = f", {cut} cut off with incomplete rows" if cut else ""
        raise OutputError(
            f"{output}: {read} documents were read, but {written} are in the shards, "
            f"{totals.rejected} among the rejects and {totals.dropped} dropped as empty{tail}; "
            "this is a fault of beam-bpe: do not use this output"
        )


def read_manifest(output: str, *, split_option: str = "") -> Manifest:
    """The manifest of a finished folder.

    Args:
        output: the folder.
        split_option: as for `folder_kinds.what_to_give`.

    Raises:
        OutputError: there is none, or it is damaged; says what the folder is, and what to give.
    """
    path, remedy = join(output, MANIFEST), _AGAIN
    if not exists(path) and exists(join(output, OLD_MANIFEST)):
        path, remedy = join(output, OLD_MANIFEST), _ANEW
    try:
        return read_record(path, Manifest, version=MANIFEST_VERSION, remedy=remedy)
    except OutputError as error:
        # Looked at only now: a manifest may be large, and is read once where it is good.
        place = recognize(output)
        if place.kind == "shards":
            raise
        raise OutputError(
            f"{output}: {place.what}; {what_to_give(place, split_option=split_option)}"
        ) from error


def file_sha256(path: str) -> str:
    """SHA-256 (hexadecimal) of a file, read in blocks."""
    hashed = hashlib.sha256()
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()
