"""Unicode classes of code points, as tables for `str.translate`.

Every named scheme asks only which class a character belongs to, so a text can be replaced by a
text of class representatives of the same length. The tables are of one Unicode version
(`UNICODE_VERSION`), whatever the versions of Python and of the `regex` module.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from bpe.pretokenizing.unicode_tables import CLASS_RANGES, UNICODE_VERSION

__all__ = ["OTHER", "UNICODE_VERSION", "ClassTranslation", "class_of"]

OTHER = "other"
"""Class of what is neither letter, mark, number nor white space; surrogates belong to it."""


def _parse_ranges() -> list[tuple[int, int, str]]:
    rows: list[tuple[int, int, str]] = []
    for name, text in CLASS_RANGES.items():
        for span in text.split():
            first, _, last = span.partition("-")
            rows.append((int(first, 16), int(last or first, 16), name))
    return sorted(rows)


_RANGES = _parse_ranges()
_STARTS = [first for first, _, _ in _RANGES]


def class_of(code_point: int) -> str:
    """Class of a code point: Lu, Ll, Lt, Lm, Lo, M, N, S (white space) or `OTHER`."""
    index = bisect_right(_STARTS, code_point) - 1
    if index >= 0 and code_point <= _RANGES[index][1]:
        return _RANGES[index][2]
    return OTHER


class ClassTranslation(dict[int, str]):
    """A table for `str.translate` that replaces code points by what stands for their class.

    by_class: class name (as `class_of` gives it) to one character.
    exceptions: code point to one character, before any class is asked.

    Entries are made when first asked for: a text uses few of the 1.1 million code points.
    """

    def __init__(self, by_class: Mapping[str, str], exceptions: Mapping[int, str]) -> None:
        super().__init__(exceptions)
        self._by_class = dict(by_class)

    def __missing__(self, code_point: int) -> str:
        found = self._by_class[class_of(code_point)]
        self[code_point] = found
        return found
