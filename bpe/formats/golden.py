"""golden.jsonl: texts with the ids that a tokenizer gives them, kept beside it and checked on load.

Each line is a JSON object: `text` (a string) or `base64` (any bytes), and `ids`, the ids of that
document with special tokens taken as ordinary text.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bpe.errors import ModelFileError, SettingsError
from bpe.formats.file_access import parse_json, read_text, shown
from bpe.pretokenizing.schemes import Scheme

__all__ = [
    "GoldenText",
    "check_golden",
    "default_texts",
    "parse_golden",
    "read_golden_texts",
    "render_golden",
]

PathLike = str | os.PathLike[str]

_COMMON_TEXTS = (
    "",
    " ",
    "Hello, world! It's a fine day; they'll say we've seen it, and I'd agree.",
    "IT'S THEY'LL WE'RE i'M he'D don't DON'T 'tis ' s",
    "camelCase HTTPServer snake_case kebab-case __init__ a.b/c\\d user@example.org",
    "0 12 123 1234 12345 3.14159 1,000,000 0x1F 2nd x2 ½ ٣٤٥ Ⅷ",
    "two  spaces, three   spaces\tand\t\ttabs \n\n  indented\r\n\r\n   \n trailing   ",
    "a\n  ",
    "aaaa aaaaaaaaaaaaaaaa ==== ---------------- hahahaha",
    "naïve café, e\u0301 composed of two, Straße, ŒUVRE, ſ long s: it'ſ",
    "Привет, мир. Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया. வணக்கம்",
    "床前明月光，疑是地上霜。こんにちは世界。안녕하세요 세계",
    "👍🏽 👩‍👩‍👧‍👦 🇩🇪 ✈️ \U0001f600",
    "no\u00a0break\u2003em\u3000ideographic\u2028line\u200bzero\ufeffmark",
    "nul\x00inside\x00\x00 bell\x07 escape\x1b[0m del\x7f",
)
_INVALID_UTF8 = (
    b"\xffit's 1234",
    b"cut \xe2\x82",
    b"\xc0\x80 \xed\xa0\x80 \xf5",
    b"a\x80b \xfe\xff",
)


@dataclass(frozen=True)
class GoldenText:
    """One document and its ids.

    data: any bytes. ids: what the tokenizer must give; None where they are still to be found.
    place: where it was read, `golden.jsonl, line 3`, for messages.
    """

    data: bytes
    ids: list[int] | None
    place: str = ""


def default_texts(scheme: Scheme, special_tokens: Iterable[str]) -> list[bytes]:
    """Texts that every model directory starts with.

    They hold what schemes treat differently, many scripts, emoji, NUL, invalid UTF-8, and the
    texts of special tokens, which stay ordinary text here.
    """
    texts = [text.encode() for text in _COMMON_TEXTS]
    texts += _INVALID_UTF8
    texts += [f"before{text}after {text}".encode() for text in list(special_tokens)[:16]]
    if not scheme.is_named:
        texts += [step.pattern.encode() for step in scheme.steps]
    return texts


def render_golden(texts: Iterable[GoldenText]) -> bytes:
    """golden.jsonl of texts that have their ids."""
    lines: list[str] = []
    for golden in texts:
        entry: dict[str, Any] = {"ids": golden.ids}
        try:
            entry = {"text": golden.data.decode(), **entry}
        except UnicodeDecodeError:
            entry = {"base64": base64.b64encode(golden.data).decode(), **entry}
        lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
    return "".join(lines).encode()


def parse_golden(text: str, path: PathLike, *, ids_required: bool = True) -> list[GoldenText]:
    """Texts of a golden.jsonl; `ModelFileError` names the line that is not one."""
    found: list[GoldenText] = []
    # Not splitlines(): a JSON string may hold U+2028 and the like as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            found.append(_parse_line(line, f"{path}, line {number}", ids_required=ids_required))
    return found


def read_golden_texts(path: PathLike) -> list[GoldenText]:
    """Texts that a user adds to a golden set.

    A file named *.jsonl is read as golden.jsonl is, `ids` being optional there; of any other file
    each line (without its line end) is one text.
    """
    text = read_text(path)
    if str(path).endswith(".jsonl"):
        return parse_golden(text, path, ids_required=False)
    lines = text.removesuffix("\n").split("\n") if text else []
    return [
        GoldenText(line.removesuffix("\r").encode(), None, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
    ]


def check_golden(
    texts: Iterable[GoldenText], encode: Callable[[bytes], Iterable[int]]
) -> list[GoldenText]:
    """Encode texts and compare; gives them back with the ids they have.

    Raises `ModelFileError` that names the line where ids differ, and both lists; or the line that
    cannot be encoded.
    """
    checked: list[GoldenText] = []
    for golden in texts:
        try:
            found = [int(token_id) for token_id in encode(golden.data)]
        except SettingsError as error:
            raise ModelFileError(f"{golden.place or 'golden texts'}: {error}") from error
        if golden.ids is not None and found != golden.ids:
            raise ModelFileError(
                f"{golden.place}: {golden.data[:80]!r} must have the ids "
                f"{_shorten(golden.ids)}, but has {_shorten(found)}: the tokenizer is not the one "
                "that these were written with, or the file was changed"
            )
        checked.append(GoldenText(golden.data, found, golden.place))
    return checked


def _parse_line(line: str, place: str, *, ids_required: bool) -> GoldenText:
    entry = parse_json(line, place)
    if not isinstance(entry, dict) or ("text" in entry) == ("base64" in entry):
        raise ModelFileError(f"{place}: {line[:80]!r} needs either a 'text' or a 'base64'")
    ids = entry.get("ids")
    if ids is None and not ids_required:
        return GoldenText(_data_of(entry, place), None, place)
    if not isinstance(ids, list) or not all(type(token_id) is int for token_id in ids):
        raise ModelFileError(f"{place}: 'ids' is {_shorten(ids)}, not a list of integers")
    return GoldenText(_data_of(entry, place), ids, place)


def _data_of(entry: dict[str, Any], place: str) -> bytes:
    try:
        if "text" in entry:
            return _string_of(entry, "text", place).encode()
        return base64.b64decode(_string_of(entry, "base64", place), validate=True)
    except ValueError as error:
        raise ModelFileError(f"{place}: 'base64' cannot be decoded: {error}") from error


def _string_of(entry: dict[str, Any], name: str, place: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise ModelFileError(f"{place}: {name!r} is {shown(value)}, not a string")
    return value


def _shorten(ids: Any) -> str:
    text = repr(ids)
    return text if len(text) <= 120 else f"{text[:120]}..."
