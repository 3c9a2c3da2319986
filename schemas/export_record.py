"""Record of a finished export: a JSON file, written after all others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["EXPORT_VERSION", "ExportRecord", "ExportedFile", "ExportedSide"]

EXPORT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ExportedFile:
    """One file of an export: its name, size in bytes, and hash (hex)."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ExportedSide:
    """Documents and tokens of one side, for training or for validation."""

    documents: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class ExportRecord:
    """A finished export.

    Attributes:
        code_version: of the program that wrote it.
        settings: the format and its options, and what it was made of: the sha256 (hex) of the
            source's manifest, its tokenizer's digest, its documents and tokens.
        documents: in the export.
        tokens: in the export, with the marks that it added.
        left_out: what of the source is not in the export, counted by name.
        files: all others, in the order in which they got their names.
        sides: by name, where documents are held out; else empty.
        version: of this description.
    """

    code_version: str
    settings: dict[str, Any]
    documents: int
    tokens: int
    left_out: dict[str, int]
    files: list[ExportedFile]
    sides: dict[str, ExportedSide] = field(default_factory=dict)
    version: int = EXPORT_VERSION
