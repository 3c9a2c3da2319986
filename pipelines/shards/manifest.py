"""Reading the manifest of an encoded folder, and the sidecars that it is made of."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from bpe.errors import OutputError
from pipelines.corpus import unit_reports
from pipelines.corpus.plan import Plan
from pipelines.corpus.rejects import rejected_rows
from pipelines.shards.artifact_kind import recognize, what_to_give
from pipelines.storage.output_files import (
    exists,
    join,
    open_bytes,
)
from pipelines.storage.output_layout import MANIFEST, OLD_MANIFEST, SIDECARS
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
    "add_packing",
    "add_up",
    "check_balance",
    "each_unit_totals",
    "file_sha256",
    "input_record",
    "read_manifest",
    "read_sidecar",
    "read_unit_record",
    "sidecars_of",
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


def add_packing(left: PackingTotals, right: PackingTotals) -> PackingTotals:
    """The sum of two counts."""
    return PackingTotals(
        padding=left.padding + right.padding,
        dropped_tokens=left.dropped_tokens + right.dropped_tokens,
        dropped_documents=left.dropped_documents + right.dropped_documents,
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
    cut = totals.packing.dropped_documents
    unit_reports.check_balance(
        output, totals, went="are in the shards", result="this output", cut=cut
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
