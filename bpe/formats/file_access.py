"""Reading and writing of small files whole, with errors that name the file."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

from bpe.errors import ModelFileError, OutputError

__all__ = ["BOM", "decode_text", "parse_json_object", "read_file", "read_text", "write_file"]

BOM = "\ufeff"
"""Byte order mark, which some editors put before UTF-8 text."""


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Content of a file; `ModelFileError` if it is not there or cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path} is a directory; name a file in it") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error


def read_text(path: str | os.PathLike[str]) -> str:
    """Content of a UTF-8 file; `ModelFileError` names the first byte that is not UTF-8."""
    return decode_text(read_file(path), path)


def decode_text(data: bytes, path: str | os.PathLike[str]) -> str:
    """UTF-8 text that was read from a file; errors as of `read_text`."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"{path}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8; "
            "this is no file of this format, or a damaged one"
        ) from error


def parse_json_object(text: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    """JSON object in `text`; `ModelFileError` for other JSON, bad JSON, or a key given twice."""

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for index, key in enumerate(keys) if key in keys[:index])
            raise ModelFileError(f"{path}: the key {twice!r} is there twice; keep one of them")
        return members

    try:
        value = json.loads(text.removeprefix(BOM), object_pairs_hook=object_of)
    except json.JSONDecodeError as error:
        raise ModelFileError(
            f"{path}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{path} holds a JSON {type(value).__name__}, not an object")
    return value


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that it is seen whole or not at all; `OutputError` if that fails."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        # The first failure is the one to report, also where there is nothing to clean up.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
