"""How input files are read: the options, checked once, before any work starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from bpe.errors import SettingsError

__all__ = ["INPUT_FORMATS", "NULL_TEXT", "ReadOptions", "parse_separator"]

INPUT_FORMATS = ("auto", "text", "lines", "jsonl", "csv", "tsv", "parquet", "arrow")
POLICIES = ("fail", "skip")
EMPTY_RULES = ("keep", "drop")
NULL_RULES = ("fail", "skip", "empty")

NULL_TEXT = "null_text"
"""The name under which rows are counted whose text is null."""

# More than this would not fit the 32-bit lengths that JSON decoders and NumPy views assume.
LARGEST_ROW_BYTES = 2**31 - 1

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


@dataclass(frozen=True)
class ReadOptions:
    """Options of every reader; equal options on equal files give equal documents.

    Args:
        input_format: `auto` (by file name), `text` (a file is a document), `lines` (a line is a
            document), `jsonl` (a JSON object a line), `csv` or `tsv` (with a row of names),
            `parquet`, or `arrow` (IPC files and streams).
        document_separator: with `text`, the bytes that end a document inside a file.
        text_field: where rows have fields, the name of the text's; dots step into nested objects.
        id_field: the field of the document's id (string or integer), dots as above; None names
            documents by file index and place, see `schemas.documents`.
        range_bytes: distance of the marks at which files are cut into ranges, and long documents
            into pieces; bytes, uncompressed.
        max_row_bytes: the longest row, and the longest range of a document that has to be held
            in memory because nothing in it can be cut; bytes, uncompressed.
        on_bad_record: `fail` stops at the first unusable row, `skip` sets it aside.
        on_bad_file: the same for files that are unusable as a whole.
        max_bad_records: with `skip`, how many rows, a bad file being one more, a run may set
            aside before it fails; None for any number.
            Nulls are not among them if `nulls` says `skip`.
        empty: `keep` gives an empty document a row of its own, `drop` counts it and leaves it out.
        nulls: what becomes of rows whose text is null: `fail`, `skip`, or `empty`, which takes them
            as empty documents; None for what `on_bad_record` says. A field that is missing is no
            null, and an id that is null is a bad record.

        include: of the files that the inputs name, take only those that match one of these
            patterns; none for all. See `pipelines.corpus.listing.name_filters`.
        exclude: leave out those that match one of these.
        limit: read so many documents, the first in the order of files and places, bad rows and
            dropped documents among them; None for all. `list_inputs` finds them.

    Raises:
        SettingsError: a value that cannot be honoured; names the option.
    """

    input_format: str = "auto"
    document_separator: bytes | None = None
    text_field: str = "text"
    id_field: str | None = None
    range_bytes: int = 4 << 20
    max_row_bytes: int = 256 << 20
    on_bad_record: str = "fail"
    on_bad_file: str = "fail"
    max_bad_records: int | None = None
    empty: str = "keep"
    nulls: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        _check_choice("input-format", self.input_format, INPUT_FORMATS)
        _check_choice("on-bad-record", self.on_bad_record, POLICIES)
        _check_choice("on-bad-file", self.on_bad_file, POLICIES)
        _check_choice("empty", self.empty, EMPTY_RULES)
        if self.nulls is not None:
            _check_choice("nulls", self.nulls, NULL_RULES)
        _check_field("text-field", self.text_field)
        if self.id_field is not None:
            _check_field("id-field", self.id_field)
        if self.range_bytes < 1:
            raise SettingsError(f"--range-bytes must be at least 1, not {self.range_bytes}")
        if not 1 <= self.max_row_bytes <= LARGEST_ROW_BYTES:
            raise SettingsError(
                f"--max-row-bytes must be between 1 and {LARGEST_ROW_BYTES}, "
                f"not {self.max_row_bytes}"
            )
        if self.max_bad_records is not None and self.max_bad_records < 0:
            raise SettingsError(
                f"--max-bad-records must not be negative, but is {self.max_bad_records}"
            )

        if self.limit is not None and self.limit < 1:
            raise SettingsError(f"--limit must be at least 1, not {self.limit}")
        for option, patterns in (("include", self.include), ("exclude", self.exclude)):
            if not isinstance(patterns, tuple) or not all(patterns):
                raise SettingsError(
                    f"--{option} takes patterns of file names that are not empty, not {patterns!r}"
                )
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.document_separator is not None:
            if not self.document_separator:
                raise SettingsError("--document-separator must not be empty")
            if self.input_format not in {"auto", "text"}:
                raise SettingsError(
                    f"--document-separator belongs to --input-format=text, not to "
                    f"{self.input_format}, where every row is a document; leave one of them out"
                )
        if self.id_field is not None and self.input_format in {"text", "lines"}:
            raise SettingsError(
                f"--id-field needs rows with fields, which {self.input_format} input does not have"
            )
        if self.id_field is not None and self.id_field != self.text_field:
            fields = sorted((f"{self.id_field}.", f"{self.text_field}."))
            if fields[1].startswith(fields[0]):
                raise SettingsError(
                    f"--text-field {self.text_field} and --id-field {self.id_field}: a field "
                    f"cannot be both a value and an object that holds the other"
                )
        if self.id_field == self.text_field and self.nulls == "empty":
            raise SettingsError(
                f"--nulls=empty: {self.id_field!r} is the --id-field too, and a document needs an "
                "id; name another --id-field, or leave it out"
            )
        if self.max_bad_records is not None and self.on_bad_record != "skip":
            raise SettingsError("--max-bad-records needs --on-bad-record=skip")

    @property
    def null_policy(self) -> str:
        """What becomes of rows whose text is null: `fail`, `skip` or `empty`."""
        return self.nulls or self.on_bad_record

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], **others: Any) -> ReadOptions:
        """The options that `to_settings` gave, of which some may be missing.

        Args:
            settings: as JSON values; what is no option is passed over.
            others: options that are not there.

        Raises:
            SettingsError: a value that is none.
        """
        names = [field.name for field in fields(cls)]
        values = {name: settings[name] for name in names if name in settings} | others
        try:
            if values.get("document_separator") is not None:
                values["document_separator"] = bytes.fromhex(values["document_separator"])
            return msgspec.convert(values, cls)
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise SettingsError(f"settings for reading are damaged: {error}") from error

    def to_settings(self) -> dict[str, object]:
        """Every option as JSON values, for digests and manifests; the separator as hex digits."""
        separator = self.document_separator
        return {
            "input_format": self.input_format,
            "document_separator": None if separator is None else separator.hex(),
            "text_field": self.text_field,
            "id_field": self.id_field,
            "range_bytes": self.range_bytes,
            "max_row_bytes": self.max_row_bytes,
            "on_bad_record": self.on_bad_record,
            "on_bad_file": self.on_bad_file,
            "max_bad_records": self.max_bad_records,
            "empty": self.empty,
            "nulls": self.nulls,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "limit": self.limit,
        }


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"--{option} must be one of {', '.join(choices)}, not {value!r}")


def _check_field(option: str, path: str) -> None:
    if not all(path.split(".")):
        raise SettingsError(
            f"--{option} must be a field name, or names joined by dots; {path!r} has an empty one"
        )


def parse_separator(text: str) -> bytes:
    r"""Bytes of a separator as people type it: `\n`, `\r`, `\t`, `\0`, `\\` and `\xNN` are escapes.

    Raises:
        SettingsError: the text is empty, or a backslash starts none of these escapes.

    >>> parse_separator(r"\n\n")
    b'\n\n'
    """

    def unescape(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape.startswith("x") and len(escape) == 3:
            return bytes([int(escape[1:], 16)]).decode("utf-8", "surrogateescape")
        if escape in _ESCAPES:
            return _ESCAPES[escape].decode("ascii")
        raise SettingsError(
            rf"--document-separator {text!r}: \{escape} is no escape; "
            r"use \n, \r, \t, \0, \xNN, or \\ for a backslash"
        )

    if not text:
        raise SettingsError("--document-separator must not be empty")
    unescaped = re.sub(r"\\(x[0-9a-fA-F]{2}|.|$)", unescape, text, flags=re.DOTALL)
    return unescaped.encode("utf-8", "surrogateescape")
