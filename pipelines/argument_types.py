"""What options take: sizes, numbers, paths, as `argparse` types."""

from __future__ import annotations

import argparse
import re

from bpe.errors import SettingsError
from pipelines.read_options import parse_separator
from pipelines.rounds.options import FIRST_BYTES_NAMES, SegmentBudget

__all__ = [
    "parse_budget",
    "parse_document_separator",
    "parse_folder",
    "parse_fraction",
    "parse_positive",
    "parse_sample",
    "parse_size",
    "parse_vocab_sizes",
]

_UNITS = {
    "": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")


def parse_size(text: str) -> int:
    """A number of bytes with an optional unit: '64MB' is 64,000,000; '64MiB' is 67,108,864.

    Raises:
        argparse.ArgumentTypeError: not a number, an unknown unit, or less than one byte.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or found[2].lower().removesuffix("b") + "b" not in _UNITS | {"b": 1}:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500000, 64MB or 1GiB")
    unit = found[2].lower()
    factor = _UNITS.get(unit) or _UNITS.get(f"{unit}b") or 1
    size = int(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is at least one byte")
    return size


def parse_vocab_sizes(text: str) -> list[int]:
    """One vocabulary size or several with commas, in ascending order: '512,1024' -> [512, 1024].

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor numbers with commas between them"
        ) from None


def parse_document_separator(text: str) -> bytes:
    """The bytes that end a document, escapes as in Python.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        return parse_separator(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_positive(text: str) -> int:
    """A whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def parse_fraction(text: str) -> float:
    """A number between 0 and 1, neither of them.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1, such as 0.01")
    return fraction


def parse_folder(text: str) -> str:
    """A path or address as the file layer takes it: `file:///a/b` is the local /a/b."""
    return text.removeprefix("file://")


def parse_budget(text: str) -> SegmentBudget:
    """A size, or a share of the state: '200kB', '0.5%'.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    if not text.strip().endswith("%"):
        return SegmentBudget(bytes=parse_size(text))
    try:
        share = float(text.strip()[:-1]) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share such as 1% or 0.2%, up to 100%")
    return SegmentBudget(share=share, least=0)


def parse_sample(text: str) -> int | str:
    """A size, 'all', or the name of a sample.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    if text == "all" or text in FIRST_BYTES_NAMES:
        return text
    try:
        return parse_size(text)
    except argparse.ArgumentTypeError:
        names = ", ".join(FIRST_BYTES_NAMES)
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size such as 500MB, nor 'all', nor one of {names}"
        ) from None
