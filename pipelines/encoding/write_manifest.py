"""Writes the manifest of an encoded folder, last of all its files.

Everything in it is read back from storage: never from runner counters.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bpe.errors import OutputError
from pipelines.corpus.plan import Plan
from pipelines.corpus.rejects import check_rejects
from pipelines.encoding.shuffle_buckets import plan_buckets
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import (
    add_up,
    check_balance,
    input_record,
    read_unit_record,
    sidecars_of,
)
from pipelines.shards.shard_files import list_shards
from pipelines.storage.output_files import (
    join,
    list_files,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.output_layout import MANIFEST, REJECTS, UNIT_FOLDER
from pipelines.storage.output_names import sidecar_name, unit_record_name
from schemas.sidecars import EngineRecord, Manifest, ShardSidecar, UnitRecord

__all__ = ["read_sidecars", "read_unit_records", "write_manifest"]


def write_manifest(
    output: str,
    settings: EncodeSettings,
    plan: Plan,
    *,
    code_version: str,
    backend: str,
    listing: Mapping[str, int] | None = None,
    engine: EngineRecord | None = None,
) -> Manifest:
    """Check the balance of documents and write the manifest, last of all files.

    Args:
        output: the folder of shards.
        settings: of the run.
        plan: of the run.
        code_version: of beam-bpe.
        backend: name of the compute backend; does not decide the shards.
        listing: `InputList.counts`, for the record.
        engine: the library that made the ids, if one did.

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
        engine=engine,
    )
    write_atomically(output, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    remove_temporary_files(output)
    return manifest


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
