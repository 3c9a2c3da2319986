"""GPT-2's spelling of bytes as printable characters, used by vocab.json and tokenizer.json.

Bytes 21-7E, A1-AC and AE-FF are the Latin-1 characters of the same number; the other 68 (control
characters, space, 7F-A0, AD) are U+0100 and up, in byte order: space is `Ġ`, newline is `Ċ`.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate, pairwise

__all__ = ["PRINTABLE_ORDER", "from_printable", "from_printables", "to_printable"]


def _make_table() -> tuple[str, ...]:
    kept = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    replacements = (chr(code_point) for code_point in range(0x100, 0x200))
    return tuple(chr(byte) if byte in kept else next(replacements) for byte in range(256))


_CHARACTERS = _make_table()
_BYTES = {character: byte for byte, character in enumerate(_CHARACTERS)}
_TRANSLATION = dict(enumerate(_CHARACTERS))

PRINTABLE_ORDER = bytes(sorted(range(256), key=_CHARACTERS.__getitem__))
"""All byte values in the order of their characters: GPT-2's base ids (`!` is 0, space is 220)."""


def to_printable(data: bytes) -> str:
    """Spelling of any bytes; one character per byte, never white space."""
    return data.decode("latin-1").translate(_TRANSLATION)


def from_printable(text: str) -> bytes | None:
    """Bytes that `to_printable` spells as `text`; None if a character is not of the table."""
    try:
        return bytes(map(_BYTES.__getitem__, text))
    except KeyError:
        return None


def from_printables(texts: Collection[str]) -> list[bytes | None]:
    """What `from_printable` makes of each text; one go for all of them where that goes well."""
    joined = from_printable("".join(texts))
    if joined is None:
        return list(map(from_printable, texts))
    ends = accumulate(map(len, texts), initial=0)
    return [joined[start:end] for start, end in pairwise(ends)]
