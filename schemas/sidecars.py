"""Records of token shards and of whole outputs: JSON files for people and programs.

Readers decode the files into these classes, so that a missing field or a value of another type is
an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from schemas.run_record import InputRecord

__all__ = [
    "MANIFEST_VERSION",
    "SIDECAR_VERSION",
    "UNIT_RECORD_VERSION",
    "EncodeValues",
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


if TYPE_CHECKING:

    class EncodeValues(TypedDict, total=False):
        """The settings of an encode run; see `pipelines.shards.encode_settings`.

        Those from `input_format` on say how the input is read; see `pipelines.corpus.read_options`.
        """

        tokenizer_digest: str
        bos: int | None
        eos: int | None
        special_text: str
        shard_bytes: int
        max_row_tokens: int | None
        compression: str
        splits: list[list[str]]
        pack: int | None
        pack_mode: str | None
        pack_tail: str | None
        pad: int | None
        pack_window: int | None
        shuffle: str
        seed: int | None
        input_format: str
        document_separator: str | None
        text_field: str
        id_field: str | None
        range_bytes: int
        max_row_bytes: int
        empty: str
        nulls: str
        limit: int
else:
    # Decoding keeps settings of another version, which are in the digest too; whoever reads a
    # manifest checks the values (`pipelines.storage.record_checks`).
    EncodeValues = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PackingTotals:
    """Ids that packing (`schemas.packed_shards`) added or left out.

    Attributes:
        padding: number of padding ids.
        dropped_tokens: ids in incomplete last rows that were left out.
        dropped_documents: documents that end in those rows.
    """

    padding: int = 0
    dropped_tokens: int = 0
    dropped_documents: int = 0


@dataclass(frozen=True, kw_only=True)
class UnitTotals:
    """Counts of a whole unit, in the sidecar of its last shard.

    With a global shuffle, each bucket has totals too. Its `documents_in`, `rejects`, `accepted` and
    `special_text` are empty, because the units count what is read.

    Attributes:
        parts: number of the unit's shards, in all splits.
        documents_in: documents that were read: those in the shards, skipped rows, and dropped empty
            ones (`accepted["dropped_empty"]`).
        rejects: skipped rows, by reason; skipped files under `bad_file`, rows of damaged parts of
            files under `bad_part`.
        accepted: unusual text that was read, by name: `invalid_utf8`, `nul`, `cr` and `crlf` count
            document parts, `streamed` ranges that were encoded as streams, `unknown_tokens` ids of
            what a library's tokenizer does not know, `bom` files, all others documents.
        special_text: how often the text of a special token occurs in the documents, by token; the
            settings define its meaning.
        rejects_file: name below the output folder; None if nothing was skipped.
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
        spill_bytes, spill_sha256: size and hash (hex) of the file with its rows; the file is
            removed after all buckets are written.
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
        unit, part: number of the unit in the plan, and of the shard among those of the unit and
            split, from 0. With a global shuffle, `unit` is the number of the bucket.
        rows, documents, tokens: number of rows, of documents that end in the shard, and of tokens
            with BOS and EOS but without padding.
        bytes: size of the text that was read; for packed rows, of the text that the ids decode to.
        file_bytes, sha256: size and hash (hex) of the shard's file.
        min_id, max_id: smallest and largest token id; None if there is none.
        first_document, last_document: document ids of the first and last row; None without rows.
        settings_digest: sha256 (hex) of the settings; a resumed run keeps only shards of the same
            settings.
        inputs: ranges that the unit reads: path, identity, first byte, and the byte after the last
            (None: to the end of a compressed file); with `--limit`, also stop, the place after
            which documents are left out. Empty for a bucket, because its rows come from all units.
        input_digest: for a bucket, sha256 (hex) over the ranges of all units; otherwise None.
        unit_totals: in the last shard of a unit or bucket; otherwise None.
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
    """Smallest and largest value of a figure over all shards."""

    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class OutputTotals:
    """Sums over all shards and units.

    Attributes:
        shards: number of shards.
        rows, documents, tokens, bytes, file_bytes: as in `ShardSidecar`.
        documents_in: documents that were read: the sum of those in the shards, `rejected`,
            `dropped` and `packing.dropped_documents`.
        rejected: number of skipped rows.
        dropped: number of empty documents that were left out.
        rejects: skipped rows, by reason; skipped files under `bad_file`, rows of damaged parts of
            files under `bad_part`.
        accepted: unusual text that was read, by name: `invalid_utf8`, `nul`, `cr` and `crlf` count
            document parts, `streamed` ranges that were encoded as streams, `unknown_tokens` ids of
            what a library's tokenizer does not know, `bom` files, all others documents.
        special_text: how often the text of a special token occurs in the documents, by token.
        packing: ids that packing added or left out; zeros without packing.
        splits: sums by split; empty without splits.
        bytes_per_token: spread over the shards; None without tokens.
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
class EngineRecord:
    """The library that made the ids, for a tokenizer of another kind than byte-level BPE.

    Attributes:
        name, version: of the library.
        kind: what the tokenizer's file is.
        file_sha256: sha256 (hex) of that file.
        lossy: whether decoding may give other bytes than were encoded.
    """

    name: str
    version: str
    kind: str
    file_sha256: str
    lossy: bool


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Manifest of a finished output; written after all other files.

    Attributes:
        code_version: version of the program that wrote it.
        backend: `python` or `native`; both write the same bytes.
        tokenizer_digest: digest of the tokenizer that made the ids.
        settings, settings_digest: options that decide the shards besides the input, and their
            sha256 (hex).
        plan_digest: sha256 (hex) of the input files and of how they were divided.
        inputs: every file.
        listing: numbers of `duplicate_files`, `hidden_files` and `empty_files` among the inputs.
        totals: sums over all shards and units.
        shards: the sidecars, in order of unit, split and part.
        units: records of units for a global shuffle; otherwise empty.
        engine: None where the program itself encoded.
        version: of this description.
    """

    code_version: str
    backend: str
    tokenizer_digest: str
    settings: EncodeValues
    settings_digest: str
    plan_digest: str
    inputs: list[InputRecord]
    listing: dict[str, int]
    totals: OutputTotals
    shards: list[ShardSidecar]
    units: list[UnitRecord] = field(default_factory=list)
    engine: EngineRecord | None = None
    version: int = MANIFEST_VERSION
