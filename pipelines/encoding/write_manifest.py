"""Makes the manifest of an encoded folder, and writes it last of all files.

Everything in it is read back from storage: never from runner counters.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bpe.errors import OutputError
from bpe.version import __version__
from pipelines.corpus.plan import Plan
from pipelines.corpus.rejects import check_rejects
from pipelines.shards.encode_settings import EncodeSettings, RunTarget
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

__all__ = ["make_manifest", "write_manifest"]


def make_manifest(
    run: RunTarget,
    *,
    backend: str,
    listing: Mapping[str, int] | None = None,
    engine: EngineRecord | None = None,
) -> Manifest:
    """Read what all units left, and check the balance of documents.

    Args:
        run: the `EncodeRun` that holds the output folder.
        backend: name of the compute backend; does not decide the shards.
        listing: `InputList.counts`, for the record.
        engine: the library that made the ids, if one did.

    Raises:
        OutputError: a sidecar is missing, or documents in differ from documents out and rejects.
        BadRecordError: all units together set aside more rows than `max_bad_records`.
        BadFileError: they set aside all of the input.
    """
    output, settings, plan = run.output, run.settings, run.plan
    sidecars = _read_sidecars(output, settings, run.bucket_count or len(plan.units))
    units = _read_unit_records(output, plan) if run.bucket_count else []
    totals = add_up(sidecars, units)
    check_balance(output, totals)
    left = totals.documents_in - totals.rejected - totals.dropped
    check_rejects(
        totals.rejects, settings.read, output, left=left, purpose="encode", folder=REJECTS
    )
    return Manifest(
        code_version=__version__,
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


def write_manifest(output: str, manifest: Manifest) -> None:
    """Write the manifest, last of all files."""
    write_atomically(output, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    remove_temporary_files(output)


def _read_sidecars(output: str, settings: EncodeSettings, groups: int) -> list[ShardSidecar]:
    """The sidecars of all units or buckets, read back from storage.

    Raises:
        OutputError: one is missing: the runner said that it was done, and it was not.
    """
    names = list_shards(output, settings.split_names)
    found: list[ShardSidecar] = []
    for index in range(groups):
        sidecars = sidecars_of(output, settings.split_names, names, index)
        if sidecars is None:
            name = sidecar_name(index, 0, settings.split_names[0])
            raise OutputError(
                f"{join(output, name)}: this sidecar, or one of the shards of the same number, is "
                "missing although the job ended; run it again"
            )
        found += sidecars
    return found


def _read_unit_records(output: str, plan: Plan) -> list[UnitRecord]:
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
