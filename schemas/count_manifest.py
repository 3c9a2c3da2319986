"""Manifest of a count table: a JSON file, written after the buckets."""

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
        documents, bytes: number of counted documents, and of their bytes of text.
        words, occurrences: number of distinct pre-tokens, and of all; occurrences may pass int64.
        rejects: skipped rows, by reason; skipped files under `bad_file`, rows of damaged parts of
            files under `bad_part`.
        accepted: unusual text that was read, by name: `invalid_utf8`, `nul`, `cr` and `crlf` count
            document parts, `streamed` ranges that were encoded as streams, `bom` files, all others
            documents.
        special_text: how often the text of each special token occurs in the documents, 0 included;
            the settings define its meaning.
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
        settings: options that decide the counts, besides the input.
        inputs: every file.
        listing: numbers of `duplicate_files`, `hidden_files` and `empty_files` among the inputs.
        totals: see `CountTotals`.
        files: the buckets.
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
