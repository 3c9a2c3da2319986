"""What is known of each token shard, and of a whole output folder.

Both are JSON files for people and programs; the classes say what is in them, and readers decode
into them, so that a missing field or a value of another type is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from schemas.run_record import InputRecord

__all__ = [
    "MANIFEST_VERSION",
    "SIDECAR_VERSION",
    "UNIT_RECORD_VERSION",
    "Manifest",
    "OutputTotals",
    "PackingTotals",
    "ShardSidecar",
    "SplitTotals",
    "Spread",
    "UnitRecord",
    "UnitTotals",
]

SIDECAR_VERSION = 4
MANIFEST_VERSION = 4
UNIT_RECORD_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class PackingTotals:
    """What packing into rows of equal length (`schemas.packed_shards`) added or left out.

    Attributes:
        padding: ids that fill rows up.
        dropped_tokens: ids of last, incomplete rows that were left out.
        dropped_documents: documents that end among them.
    """

    padding: int = 0
    dropped_tokens: int = 0
    dropped_documents: int = 0


@dataclass(frozen=True, kw_only=True)
class UnitTotals:
    """Counts of a whole unit, in the sidecar of its last shard.

    The shards of a global shuffle come from buckets, which have totals too: nothing is read for
    them, so that `documents_in`, `rejects`, `accepted` and `special_text` are empty.

    Attributes:
        parts: how many shards the unit has, in all splits.
        documents_in: documents met: those in the shards, rejected rows, and those left out as
            empty (`accepted["dropped_empty"]`).
        rejects: rows set aside, by reason; files under `bad_file`, rows of damaged
            parts of files under `bad_part`.
        accepted: anomalies that were read all the same, by name: `invalid_utf8`, `nul`, `cr` and
            `crlf` count pieces of documents (whole ones, or what long ones are cut into),
            `streamed` the stretches that were encoded as streams, `bom` files, others documents.
        special_text: how often special tokens are spelled out in the documents' text, by token, if
            at all; the settings say what became of them.
        rejects_file: name below the output folder; None if nothing was set aside.
        rejects_sha256: hash (hex) of that file; None without one.
        packing: what packing added or left out; zeros without packing.
    """

    parts: int
    documents_in: int
    rejects: dict[str, int]
    accepted: dict[str, int]
    special_text: dict[str, int]
    rejects_file: str | None
    rejects_sha256: str | None
    packing: PackingTotals = field(default_factory=PackingTotals)


@dataclass(frozen=True, kw_only=True)
class UnitRecord:
    """A unit that was read for a global shuffle; `units/unit-UUUUU.json`.

    Attributes:
        unit: number in the plan.
        settings_digest, inputs: as in `ShardSidecar`.
        totals: counts of the unit; `parts` is 0.
        spill_bytes, spill_sha256: size and hash (hex) of the file with its rows, which is removed
            once all buckets are written.
        version: of this description.
    """

    unit: int
    settings_digest: str
    inputs: list[dict[str, str | int | None]]
    totals: UnitTotals
    spill_bytes: int
    spill_sha256: str
    version: int = UNIT_RECORD_VERSION


@dataclass(frozen=True, kw_only=True)
class ShardSidecar:
    """One shard; written after the shard has its final name.

    Attributes:
        file: name in the output folder, with the split's folder if there are splits.
        split: name of the split; empty without splits.
        unit, part: numbers of the unit in the plan and of the shard among those of the unit and
            split, from 0. For a global shuffle, the number of the bucket stands for the unit's.
        rows, documents, tokens: in the shard; documents that end in it, tokens with BOS and EOS
            but without padding.
        bytes: of text, as read; of packed rows, as the ids decode.
        file_bytes, sha256: size and hash (hex) of the shard's file.
        min_id, max_id: smallest and largest token id; None if there is none.
        first_document, last_document: ids of the first and last row; None without rows.
        settings_digest: sha256 (hex) of the settings; on resuming, a shard of others is not kept.
        inputs: what the unit reads: path, identity, first byte, and the byte after the last (None:
            to the end of a compressed file); and stop, the place from which on `--limit` leaves
            documents out, if it does. Empty for a bucket, whose rows come from all units.
        input_digest: for a bucket, sha256 (hex) over what all units read; else None.
        unit_totals: for the last shard of a unit or bucket, None otherwise.
        version: of this description.
    """

    file: str
    split: str
    unit: int
    part: int
    rows: int
    documents: int
    tokens: int
    bytes: int
    file_bytes: int
    sha256: str
    min_id: int | None
    max_id: int | None
    first_document: str | None
    last_document: str | None
    settings_digest: str
    inputs: list[dict[str, str | int | None]]
    input_digest: str | None = None
    unit_totals: UnitTotals | None = None
    version: int = SIDECAR_VERSION


@dataclass(frozen=True, kw_only=True)
class SplitTotals:
    """Sums over the shards of one split; attributes as in `OutputTotals`."""

    shards: int
    rows: int
    documents: int
    tokens: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Least and most of a figure over all shards that have it."""

    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class OutputTotals:
    """Sums over all shards and units.

    Attributes:
        shards: how many.
        rows, documents, tokens, bytes, file_bytes: as in `ShardSidecar`.
        documents_in: documents met; those in the shards, `rejected`, `dropped` and
            `packing.dropped_documents` together.
        rejected: rows set aside.
        dropped: documents left out as empty.
        rejects: rows set aside, by reason; files under `bad_file`, rows of damaged
            parts of files under `bad_part`.
        accepted: anomalies that were read all the same, by name: `invalid_utf8`, `nul`, `cr` and
            `crlf` count pieces of documents (whole ones, or what long ones are cut into),
            `streamed` the stretches that were encoded as streams, `bom` files, others documents.
        special_text: how often special tokens are spelled out in the documents' text, by token.
        packing: what packing added or left out; zeros without packing.
        splits: sums by split; empty without splits.
        bytes_per_token: of the shards; None if there are no tokens.
    """

    shards: int
    rows: int
    documents: int
    tokens: int
    bytes: int
    file_bytes: int
    documents_in: int
    rejected: int
    dropped: int
    rejects: dict[str, int]
    accepted: dict[str, int]
    special_text: dict[str, int]
    packing: PackingTotals = field(default_factory=PackingTotals)
    splits: dict[str, SplitTotals] = field(default_factory=dict)
    bytes_per_token: Spread | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A finished output folder; written last of all files.

    Attributes:
        code_version: of the program that wrote it.
        backend: `python` or `native`; the shards are the same bytes for both.
        tokenizer_digest: of the tokenizer that made the ids.
        settings, settings_digest: what decides the shards besides the input, and its sha256 (hex).
        plan_digest: sha256 (hex) of the input files and of how they were cut.
        inputs: every file.
        listing: what listing the inputs brought up: `duplicate_files`, `hidden_files`,
            `empty_files`.
        totals: sums over all shards and units.
        shards: the sidecars, in order of unit, split and part.
        units: for a global shuffle, what was read; else empty, as the shards' sidecars say it.
        version: of this description.
    """

    code_version: str
    backend: str
    tokenizer_digest: str
    settings: dict[str, Any]
    settings_digest: str
    plan_digest: str
    inputs: list[InputRecord]
    listing: dict[str, int]
    totals: OutputTotals
    shards: list[ShardSidecar]
    units: list[UnitRecord] = field(default_factory=list)
    version: int = MANIFEST_VERSION
