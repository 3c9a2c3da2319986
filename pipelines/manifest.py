"""The manifest of an encoded folder, written last, and the sidecars that it is made of.

Everything in it is read back from storage: never from runner counters.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import msgspec
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bpe.errors import OutputError
from pipelines.encode_documents import EncodeSettings
from pipelines.output_files import (
    exists,
    join,
    list_files,
    remove_temporary_files,
    write_atomically,
)
from pipelines.plan import Plan
from pipelines.records import read_record
from pipelines.rejects import check_limit, rejected_rows
from pipelines.write_shards import sidecar_name
from schemas.run_record import InputRecord
from schemas.sidecars import (
    MANIFEST_VERSION,
    SIDECAR_VERSION,
    Manifest,
    OutputTotals,
    ShardSidecar,
)

__all__ = [
    "MANIFEST",
    "add_up",
    "check_balance",
    "file_sha256",
    "input_record",
    "read_manifest",
    "read_sidecar",
    "read_sidecars",
    "write_manifest",
]

MANIFEST = "manifest.json"
_BLOCK = 1 << 20
_AGAIN = "run the encode command again, which repairs it, or start again with --overwrite"


def input_record(plan: Plan) -> list[InputRecord]:
    """Path and identity of each file of a plan, as manifests list them."""
    return [{"path": file.path, "identity": file.identity} for file in plan.files]


def read_sidecar(output: str, name: str) -> ShardSidecar:
    """One sidecar.

    Raises:
        OutputError: it is damaged or cannot be read.
    """
    return read_record(join(output, name), ShardSidecar, version=SIDECAR_VERSION, remedy=_AGAIN)


def read_sidecars(output: str, plan: Plan) -> list[ShardSidecar]:
    """The sidecars of all units, in order of unit and part, read back from storage.

    Raises:
        OutputError: one is missing: the runner said that it was done, and it was not.
    """
    names = list_files(output)
    sidecars: list[ShardSidecar] = []
    for unit in plan.units:
        part = 0
        while True:
            name = sidecar_name(unit.index, part)
            if name not in names:
                raise OutputError(
                    f"{join(output, name)}: is missing although the job ended; run it again"
                )
            sidecars.append(read_sidecar(output, name))
            if sidecars[-1].unit_totals is not None:
                break
            part += 1
    return sidecars


def write_manifest(
    output: str,
    settings: EncodeSettings,
    plan: Plan,
    *,
    code_version: str,
    backend: str,
    listing: Mapping[str, int] | None = None,
) -> Manifest:
    """Check the balance of documents and write `manifest.json`, last of all files.

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
    """
    sidecars = read_sidecars(output, plan)
    totals = add_up(sidecars)
    check_balance(output, totals)
    check_limit(totals.rejects, settings.read.max_bad_records, output)
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
    )
    write_atomically(output, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    remove_temporary_files(output)
    return manifest


def add_up(sidecars: list[ShardSidecar]) -> OutputTotals:
    """The totals that sidecars give together; all parts of each unit must be among them."""
    rejects: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    special_text: Counter[str] = Counter()
    documents_in = 0
    for sidecar in sidecars:
        if sidecar.unit_totals is not None:
            rejects.update(sidecar.unit_totals.rejects)
            accepted.update(sidecar.unit_totals.accepted)
            special_text.update(sidecar.unit_totals.special_text)
            documents_in += sidecar.unit_totals.documents_in
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
    )


def check_balance(output: str, totals: OutputTotals) -> None:
    """Check that every document read is in the shards, among the rejects, or dropped as empty.

    Raises:
        OutputError: documents were lost or made up.
    """
    read, written = totals.documents_in, totals.documents
    if read != written + totals.rejected + totals.dropped:
        raise OutputError(
            f"{output}: {read} documents were read, but {written} are in the shards, "
            f"{totals.rejected} among the rejects and {totals.dropped} dropped as empty; "
            "this is a fault of beam-bpe: do not use this output"
        )


def read_manifest(output: str) -> Manifest:
    """The manifest of a finished folder.

    Raises:
        OutputError: there is none, or it is damaged.
    """
    path = join(output, MANIFEST)
    if not exists(path):
        raise OutputError(
            f"{path}: is missing: the folder is no finished output of beam-bpe encode"
        )
    return read_record(path, Manifest, version=MANIFEST_VERSION, remedy=_AGAIN)


def file_sha256(path: str) -> str:
    """SHA-256 (hexadecimal) of a file, read in blocks."""
    hashed = hashlib.sha256()
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()
