"""JSON files that describe an output, decoded into their classes and checked, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from bpe.errors import BpeError, OutputError
from pipelines.storage.record_checks import check_record, shown_value

__all__ = ["decode_record", "read_record"]

_Record = TypeVar("_Record")


class _Versioned(msgspec.Struct):
    """What every record has."""

    version: int


def read_record(
    path: str,
    kind: type[_Record],
    *,
    version: int,
    remedy: str,
    error: type[BpeError] = OutputError,
    expected: Mapping[str, Any] | None = None,
) -> _Record:
    """Read a record and check that it is one of this kind, whole, and of the version we write.

    Args:
        path: of the file, which must exist.
        kind: a class of `schemas`; a missing field or a value of another type is an error.
        version: that `kind` describes.
        remedy: what the user can do about a damaged file, to end the message with.
        error: class of the error.
        expected: fields whose values the file's own name decides.

    Raises:
        BpeError: of the class `error`; names the file, what is wrong with it, and the remedy.
    """
    # Brings Beam, which those do without who read files themselves.
    from pipelines.storage.output_files import read_bytes  # noqa: PLC0415

    try:
        data = read_bytes(path)
    except OSError as cause:
        if isinstance(cause, BpeError):
            raise
        raise error(f"{path}: cannot be read: {cause}") from cause
    record = decode_record(data, path, kind, version=version, remedy=remedy, error=error)
    for name, value in (expected or {}).items():
        found = getattr(record, name)
        if found != value:
            raise error(
                f"{path}: {name} is {shown_value(found)}, and the file's name says "
                f"{shown_value(value)}; {remedy}"
            )
    return record


def decode_record(
    data: bytes,
    path: str,
    kind: type[_Record],
    *,
    version: int,
    remedy: str,
    error: type[BpeError] = OutputError,
) -> _Record:
    """The record that a file holds; see `read_record`.

    Args:
        data: content of the file.
        path: its name, for messages.
        kind: as for `read_record`, like the rest.
        version: as there.
        remedy: as there.
        error: as there.

    Raises:
        BpeError: as there.
    """
    try:
        found = msgspec.json.decode(data, type=_Versioned).version
        if found != version:
            raise error(
                f"{path}: is of version {found}, and this program reads version {version}; "
                f"use the program that wrote it, or {remedy}"
            )
        record = msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        raise error(f"{path}: is damaged ({cause}); {remedy}") from cause
    check_record(record, path, remedy=remedy, error=error)
    return record
