"""Sets of code points, and those that patterns call by name.

A set is a tuple of ascending, disjoint ranges (first, last), both ends included, that do not touch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache

from bpe.pretokenizing.category_tables import CATEGORY_RANGES
from bpe.pretokenizing.unicode_tables import CLASS_RANGES

__all__ = ["ALL", "CodePoints", "complement", "intersect", "named_set", "single", "union"]

CodePoints = tuple[tuple[int, int], ...]

ALL: CodePoints = ((0, sys.maxunicode),)

_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo")


def single(code_point: int) -> CodePoints:
    """The set of one code point."""
    return ((code_point, code_point),)


def union(sets: Iterable[CodePoints]) -> CodePoints:
    """What is in one of the sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(span for spans in sets for span in spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(spans: CodePoints) -> CodePoints:
    """All other code points, surrogates among them."""
    starts = [0, *(last + 1 for _, last in spans)]
    ends = [*(first - 1 for first, _ in spans), sys.maxunicode]
    return tuple((a, b) for a, b in zip(starts, ends, strict=True) if a <= b)


def intersect(one: CodePoints, other: CodePoints) -> CodePoints:
    """What is in both sets."""
    return complement(union((complement(one), complement(other))))


@lru_cache(maxsize=128)
def named_set(name: str) -> CodePoints | None:
    """The set of a general category (`Lu`), of a group of them (`L`), or of another property.

    The others are `White_Space`, `Join_Control` and `Han`. Of the Unicode version of
    `unicode_tables`. None for a name that has no table.
    """
    if name == "White_Space":
        return _parse(CLASS_RANGES["S"])
    if name == "Join_Control":
        return ((0x200C, 0x200D),)
    if name in _LETTERS:
        return _parse(CLASS_RANGES[name])
    if name in CATEGORY_RANGES:
        return _parse(CATEGORY_RANGES[name])
    if name == "Cn":
        known = [*_LETTERS, *(key for key in CATEGORY_RANGES if key != "Han")]
        return complement(union(_named(key) for key in known))
    if name in {"L", "M", "N", "P", "S", "Z", "C"}:
        members = [key for key in (*_LETTERS, *CATEGORY_RANGES) if key[0] == name and key != "Han"]
        return union(map(_named, [*members, "Cn"] if name == "C" else members))
    return None


def _named(name: str) -> CodePoints:
    return named_set(name) or ()


def _parse(text: str) -> CodePoints:
    spans = (span.partition("-") for span in text.split())
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in spans)
