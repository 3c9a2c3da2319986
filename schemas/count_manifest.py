"""What is known of a count table on storage; written last of its files, as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schemas.run_record import InputRecord

__all__ = ["COUNTS_FORMAT", "COUNTS_VERSION", "BucketFile", "CountManifest", "CountTotals"]

COUNTS_FORMAT = "beam_bpe.count_table"
COUNTS_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class BucketFile:
    """One bucket: its file's name, how many words it holds, and its sha256 (hex)."""

    name: str
    words: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CountTotals:
    """Sums over all units and buckets.

    Attributes:
        documents, bytes: that were counted; bytes are of text.
        words, occurrences: distinct pre-tokens, and all of them; occurrences may pass int64.
        rejects: rows set aside, by reason; files under `bad_file`, rows of damaged
            parts of files under `bad_part`.
        accepted: anomalies that were read all the same, by name: `invalid_utf8`, `nul`, `cr` and
            `crlf` count pieces of documents (whole ones, or what long ones are cut into),
            `streamed` the stretches that were encoded as streams, `bom` files, others documents.
        special_text: how often each special token of the training is spelled out in the documents'
            text, 0 included; the settings say what became of them.
    """

    documents: int
    bytes: int
    words: int
    occurrences: int
    rejects: dict[str, int]
    accepted: dict[str, int]
    special_text: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class CountManifest:
    """A complete count table.

    Attributes:
        settings: what decided the counts besides the input.
        inputs: every file.
        listing: what listing the inputs brought up: `duplicate_files`, `hidden_files`,
            `empty_files`.
        totals: see `CountTotals`.
        files: the buckets, by name.
        digest: sha256 (hex) over the table's metadata and `files`.
        format, version: of this description.
    """

    settings: dict[str, Any]
    inputs: list[InputRecord]
    listing: dict[str, int]
    totals: CountTotals
    files: list[BucketFile]
    digest: str
    format: str = COUNTS_FORMAT
    version: int = COUNTS_VERSION
