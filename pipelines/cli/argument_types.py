"""Types of options for `argparse`: sizes, numbers, paths."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from bpe.errors import SettingsError
from pipelines.corpus.read_options import parse_separator
from pipelines.storage.output_names import Split, parse_splits
from pipelines.storage.wording import (
    LARGEST_NUMBER,
    LONGEST_NUMBER,
    parse_whole_number,
    shown_value,
)
from pipelines.training.rounds.options import FIRST_BYTES_NAMES, SegmentBudget

__all__ = [
    "LEAST_CUT_SIZE",
    "parse_budget",
    "parse_cut_size",
    "parse_document_separator",
    "parse_folder",
    "parse_fraction",
    "parse_pattern",
    "parse_sample",
    "parse_size",
    "parse_split",
    "parse_text",
    "parse_vocab_sizes",
    "whole_number",
]

LEAST_CUT_SIZE = 1 << 10
"""Each range costs a row in the plan, and each shard two files. The library allows any size."""

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
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", re.ASCII)
_VOCAB_SIZE = re.compile(r"(-?\d+)(k|Ki|)", re.ASCII)
_THOUSANDS = {"": 1, "k": 1000, "Ki": 1024}
# Ids are 32-bit.
_LARGEST_VOCABULARY = 2**32


def whole_number(least: int = 1, most: int = LARGEST_NUMBER) -> Callable[[str], int]:
    """A function that parses a whole number from `least` to `most`, for `type=` of an option."""

    def parse(text: str) -> int:
        try:
            return parse_whole_number(text, least, most)
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def parse_size(text: str) -> int:
    """A number of bytes with an optional unit: '64MB' is 64,000,000; '64MiB' is 67,108,864.

    Raises:
        argparse.ArgumentTypeError: not a number, an unknown unit, or less than one byte, or more
            than 2^63 - 1.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or found[2].lower().removesuffix("b") + "b" not in _UNITS | {"b": 1}:
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)} is not a size such as 500000, 64MB or 1GiB"
        )
    if len(found[1]) > LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)}: a size is at most {LARGEST_NUMBER} bytes"
        )
    unit = found[2].lower()
    factor = _UNITS.get(unit) or _UNITS.get(f"{unit}b") or 1
    size = int(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is at least one byte")
    if size > LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is at most {LARGEST_NUMBER} bytes")
    return size


def parse_cut_size(text: str) -> int:
    """A size of ranges or shards, at least `LEAST_CUT_SIZE`.

    Raises:
        argparse.ArgumentTypeError: as `parse_size`, or the size is less than `LEAST_CUT_SIZE`.
    """
    size = parse_size(text)
    if size < LEAST_CUT_SIZE:
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)} is too small; give at least {LEAST_CUT_SIZE} bytes"
        )
    return size


def parse_vocab_sizes(text: str) -> list[int]:
    """One vocabulary size or several with commas, in ascending order: '512,1024' -> [512, 1024].

    `k` stands for 1,000 and `Ki` for 1,024: '32k,32Ki' -> [32000, 32768].

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    parse = whole_number(1, _LARGEST_VOCABULARY)
    parts = [_VOCAB_SIZE.fullmatch(part.strip()) for part in text.split(",")]
    found = [part for part in parts if part]
    if len(found) < len(parts):
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)} is neither a number nor numbers with commas between them; "
            "32k is 32,000 and 32Ki is 32,768"
        )
    return sorted({parse(str(parse(part[1]) * _THOUSANDS[part[2]])) for part in found})


def parse_document_separator(text: str) -> bytes:
    """The bytes that end a document, escapes as in Python.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        return parse_separator(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse_split(text: str) -> tuple[Split, ...]:
    """Splits with their shares: 'train=0.99,validation=0.01'.

    Raises:
        argparse.ArgumentTypeError: something else, or the shares do not add up to 1.
    """
    try:
        return parse_splits(text)
    except SettingsError as error:
        reason = str(error).removeprefix("--split").lstrip(": ")
        raise argparse.ArgumentTypeError(f"{shown_value(text)}: {reason}") from None


def parse_fraction(text: str) -> float:
    """A number between 0 and 1, both excluded.

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)} is not a number between 0 and 1, such as 0.01"
        )
    return fraction


def parse_folder(text: str) -> str:
    """A path or URL: `file:///a/b` is the local /a/b.

    Raises:
        argparse.ArgumentTypeError: there is none.
    """
    return parse_pattern(text).removeprefix("file://")


def parse_pattern(text: str) -> str:
    """A path, URL or pattern, unchanged.

    Raises:
        argparse.ArgumentTypeError: it is empty, for example from an unset shell variable.
    """
    if not text.removeprefix("file://").strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty; give a path")
    return text


def parse_text(text: str) -> str:
    """A text to look for, unchanged.

    Raises:
        argparse.ArgumentTypeError: it is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError(f"{text!r} is empty; give a text")
    return text


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
        raise argparse.ArgumentTypeError(
            f"{shown_value(text)} is no share such as 1% or 0.2%, up to 100%"
        )
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
    except argparse.ArgumentTypeError as error:
        names = ", ".join(FIRST_BYTES_NAMES)
        raise argparse.ArgumentTypeError(
            f"{error}; it may also be all, or one of {names}"
        ) from None
