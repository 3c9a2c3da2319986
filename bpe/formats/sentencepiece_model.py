"""A SentencePiece `.model` file: a Protocol Buffers message, read as far as its fields count.

The fields are those of `sentencepiece_model.proto` in the library's sources. The library's own
module for the message needs a newer protobuf than Apache Beam allows.
"""

from __future__ import annotations

import enum
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bpe.errors import ModelFileError

__all__ = [
    "BPE",
    "MODEL_KINDS",
    "Kind",
    "Piece",
    "SentencePieceModel",
    "drop_paths",
    "parse_sentencepiece",
]

BPE = 2
MODEL_KINDS = {1: "Unigram", BPE: "BPE", 3: "words", 4: "characters"}
"""Values of `trainer_spec.model_type`."""


class Kind(enum.IntEnum):
    """What a piece is."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PIECES, _TRAINER_SPEC, _NORMALIZER_SPEC = 1, 2, 3
_PATHS = (1, 54)  # of `trainer_spec`: input, seed_sentencepieces_file


@dataclass(frozen=True)
class Piece:
    """One entry of the vocabulary; its place is its id."""

    text: str
    score: float = 0.0
    kind: int = Kind.NORMAL


@dataclass(frozen=True)
class SentencePieceModel:
    """What a file says; defaults are those of the message.

    Attributes:
        pieces: by id.
        model_type: key of `MODEL_KINDS`.
        byte_fallback: unknown characters become byte pieces.
        whitespace_as_suffix: the sign for a blank ends words.
        charsmap: compiled rules of the normalizer; empty for identity.
        add_dummy_prefix: a blank comes before each text.
        remove_extra_whitespaces: runs of blanks become one, and those at the ends go.
        escape_whitespaces: blanks become U+2581.
    """

    pieces: list[Piece]
    model_type: int = 1
    byte_fallback: bool = False
    whitespace_as_suffix: bool = False
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


def parse_sentencepiece(data: bytes, path: str | os.PathLike[str]) -> SentencePieceModel:
    """Content of a file; `ModelFileError` names the file that is no such message.

    path: for messages.
    """
    pieces: list[Piece] = []
    values: dict[str, Any] = {}
    try:
        for number, value in _fields(data):
            if number == _PIECES:
                pieces.append(_parse_piece(value))
            elif number == _TRAINER_SPEC:
                spec = dict(_fields(value))
                values["model_type"] = spec.get(3, 1)
                values["whitespace_as_suffix"] = bool(spec.get(24, 0))
                values["byte_fallback"] = bool(spec.get(35, 0))
            elif number == _NORMALIZER_SPEC:
                spec = dict(_fields(value))
                values["charsmap"] = bytes(spec.get(2, b""))
                values["add_dummy_prefix"] = bool(spec.get(3, 1))
                values["remove_extra_whitespaces"] = bool(spec.get(4, 1))
                values["escape_whitespaces"] = bool(spec.get(5, 1))
    except (IndexError, ValueError, TypeError, struct.error) as error:
        raise ModelFileError(
            f"{path}: is no SentencePiece model, or a damaged one ({error}); get the file again"
        ) from None
    if not pieces:
        raise ModelFileError(f"{path}: this SentencePiece model has no pieces; get the file again")
    return SentencePieceModel(pieces, **values)


def _parse_piece(data: memoryview) -> Piece:
    fields = dict(_fields(data))
    (score,) = struct.unpack("<f", fields.get(2, b"\0\0\0\0"))
    return Piece(bytes(fields.get(1, b"")).decode(), score, int(fields.get(3, Kind.NORMAL)))


def drop_paths(data: bytes) -> bytes:
    """A model without the paths that it was trained from, which decide no ids."""
    kept = bytearray()
    for number, value, raw in _spans(data):
        if number == _TRAINER_SPEC:
            parts = [bytes(part) for each, _, part in _spans(value) if each not in _PATHS]
            spec = b"".join(parts)
            kept += _written(number << 3 | _BYTES) + _written(len(spec)) + spec
        else:
            kept += raw
    return bytes(kept)


def _written(value: int) -> bytes:
    """A number as `_varint` reads it."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _fields(data: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    """Field numbers of a message with their values: an int, or bytes."""
    return ((number, value) for number, value, _ in _spans(data))


def _spans(data: bytes | memoryview) -> Iterator[tuple[int, Any, memoryview]]:
    """As `_fields`, and all bytes of each field."""
    view, position = memoryview(data), 0
    while position < len(view):
        begin = position
        key, position = _varint(view, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(view, position)
            yield number, value, view[begin:position]
            continue
        if wire == _BYTES:
            size, position = _varint(view, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {position}")
        if position + size > len(view):
            raise ValueError(f"field {number} at byte {position} is cut")
        content = view[position : position + size]
        position += size
        yield number, content, view[begin:position]


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError(f"a number at byte {position} has more than 64 bits")
