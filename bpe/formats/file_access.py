"""Reading and writing of small files whole, with errors that name the file."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
import uuid
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

from bpe.errors import ModelFileError, OutputError

__all__ = [
    "BOM",
    "MOST_BYTES",
    "decode_text",
    "parse_json",
    "parse_json_object",
    "read_file",
    "read_text",
    "shown",
    "write_file",
]

BOM = "\ufeff"
"""Byte order mark, which some editors put before UTF-8 text."""

MOST_BYTES = 1 << 30
"""Largest file that is read; the largest published tokenizers have some 40 MB."""

_DEEPEST = 100
_SHOWN_CHARACTERS = 200
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_INTEGER = re.compile(r"\d{4300,}")


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Content of a file; `ModelFileError` if it is not there, cannot be read, or is too large."""
    try:
        # Without waiting: a pipe that nobody writes to would never open.
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(
                    f"{path} is a pipe, a socket or a device; write its content to a file, and "
                    "name that"
                )
            size = status.st_size
            # Of a file that says no size, such as those in /proc, up to the limit.
            data = file.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
        if max(size, len(data)) > MOST_BYTES:
            raise ModelFileError(
                f"{path} has {max(size, len(data)):,} bytes or more, and a tokenizer's file has at "
                f"most {MOST_BYTES:,}; is this a tokenizer?"
            )
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise ModelFileError(f"{path} is a directory; name a file in it") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    return data


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


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
    """JSON object in `text`; errors as of `parse_json`, and for other JSON."""
    value = parse_json(text, path)
    if not isinstance(value, dict):
        raise ModelFileError(f"{path} holds a JSON {type(value).__name__}, not an object")
    return value


def parse_json(text: str, path: str | os.PathLike[str]) -> Any:
    """Value of a JSON text, in time linear in its length.

    `ModelFileError` for bad JSON, a key given twice, a number that is not finite or has too many
    digits, a string that UTF-8 cannot write, and values nested more than 100 deep.
    """

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key in counts if counts[key] > 1)
            raise ModelFileError(f"{path}: the key {shown(twice)} is there twice; keep one of them")
        return members

    def number_of(digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise ModelFileError(f"{path}: {digits[:40]} is no finite number; mend the file")
        return value

    text = text.removeprefix(BOM)
    try:
        value = json.loads(
            text, object_pairs_hook=object_of, parse_float=number_of, parse_constant=number_of
        )
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{path}, {_place(text, error.pos)}: not JSON: {error.msg}") from error
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:
        if isinstance(error, ModelFileError):
            raise
        found = _LONG_INTEGER.search(text)
        raise ModelFileError(
            f"{path}, {_place(text, found.start() if found else 0)}: a number has too many digits; "
            "mend the file"
        ) from None
    _check_depth(value, path)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            _name_bad_string(value, path, "")
    return value


def shown(value: object) -> str:
    """A value from a file for a message, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    cut = "..." if len(text) > _SHOWN_CHARACTERS else ""
    text = text[:_SHOWN_CHARACTERS]
    return (repr(text) if isinstance(value, str) else text) + cut


def _place(text: str, position: int) -> str:
    """Line and column; of a text of one line, the column."""
    line = f"line {text.count(chr(10), 0, position) + 1}, " if "\n" in text else ""
    return f"{line}column {position - text.rfind(chr(10), 0, position)}"


def _too_deep(path: str | os.PathLike[str]) -> ModelFileError:
    return ModelFileError(
        f"{path}: lists and objects are nested more than {_DEEPEST} deep; no tokenizer needs that"
    )


def _check_depth(value: Any, path: str | os.PathLike[str]) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        members = chain.from_iterable(
            each.values() if isinstance(each, dict) else each
            for each in level
            if isinstance(each, (dict, list))
        )
        level = [member for member in members if isinstance(member, (dict, list))]
        if not level:
            return
    raise _too_deep(path)


def _name_bad_string(value: Any, path: str | os.PathLike[str], place: str) -> None:
    """Raise for a string that holds a lone surrogate, with its place: `added_tokens[3].content`."""
    if isinstance(value, dict):
        for key, member in value.items():
            _name_bad_string(key, path, f"{place} (a key)")
            _name_bad_string(member, path, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _name_bad_string(member, path, f"{place}[{index}]")
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ModelFileError(
                f"{path}: {place[:_SHOWN_CHARACTERS]} is {shown(value)}, which holds a lone "
                f"surrogate at index {error.start}, and UTF-8 cannot write that; mend the file"
            ) from None


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
