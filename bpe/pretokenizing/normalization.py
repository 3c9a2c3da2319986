"""Unicode normal forms and lower case of bytes, of one Unicode version under every Python.

The functions in Python are the specification of those in the core
(`bpe/native/scan/normalization.h`). Bytes that are not valid UTF-8 stay as they are: nothing
composes with them or moves across them.

    >>> normalize("NFC", "e\u0301".encode()).decode()
    'é'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from bpe.backends.choice import get_backend, native_core
from bpe.errors import SettingsError
from bpe.pretokenizing.normalization_tables import (
    COMBINING,
    DECOMPOSITIONS,
    EXCLUSIONS,
    LATER,
    LOWER,
)
from bpe.pretokenizing.unicode_tables import UNICODE_VERSION

__all__ = ["FORMS", "UNICODE_VERSIONS", "normalize", "normalize_array"]

FORMS = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase")
"""Names of the forms, as `tokenizers` has them. Lowercase maps each character by itself, as that
library does: a sigma at the end of a word becomes the same letter as any other."""

UNICODE_VERSIONS = (UNICODE_VERSION, "9.0.0")
"""Versions of the normal forms. Releases 0.22 and 0.23 of `tokenizers` normalize by Unicode 9.0:
marks and composites that were assigned later are ordinary characters to them."""

# Hangul syllables are composed by arithmetic: Unicode Standard, section 3.12.
_SYLLABLES, _LEADS, _VOWELS, _TAILS = 0xAC00, 0x1100, 0x1161, 0x11A7
_LEAD_COUNT, _VOWEL_COUNT, _TAIL_COUNT = 19, 21, 28


def normalize(form: str, data: bytes, unicode_version: str = UNICODE_VERSION) -> bytes:
    """Normal form of a text; memory is linear in its length, and time but for sorting marks.

    Args:
        form: one of `FORMS`.
        data: any bytes.
        unicode_version: one of `UNICODE_VERSIONS`; `Lowercase` is of the first always.
    """
    _check(form, unicode_version)
    if get_backend().name == "native":
        normalized: bytes = native_core().normalize(data, form, _is_latest(unicode_version))
        return normalized
    if data.isascii():
        return data.lower() if form == "Lowercase" else data
    text = data.decode("utf-8", "surrogateescape")
    normalized_text = _normalize_text(form, text, unicode_version)
    return normalized_text.encode("utf-8", "surrogateescape")


def normalize_array(
    form: str, texts: pa.LargeBinaryArray, unicode_version: str = UNICODE_VERSION
) -> pa.LargeBinaryArray:
    """The same for each text, without nulls; the array itself where nothing changes."""
    _check(form, unicode_version)
    if get_backend().name == "native":
        column = native_core().normalize_documents(texts, form, _is_latest(unicode_version))
        return texts if column is None else pa.array(column)
    normalized = [normalize(form, text, unicode_version) for text in texts.to_pylist()]
    return pa.array(normalized, type=pa.large_binary())


def _check(form: str, unicode_version: str) -> None:
    if form not in FORMS:
        raise SettingsError(f"normalizer {form!r} is not known: use one of {', '.join(FORMS)}")
    if unicode_version not in UNICODE_VERSIONS:
        raise SettingsError(
            f"Unicode version {unicode_version!r} has no tables here: use one of "
            f"{', '.join(UNICODE_VERSIONS)}"
        )


def _is_latest(unicode_version: str) -> bool:
    return unicode_version == UNICODE_VERSION


@dataclass(frozen=True)
class _Tables:
    """Properties of characters in one Unicode version; what is missing has none."""

    combining: dict[str, int]
    canonical: dict[str, str]
    compatibility: dict[str, str]
    composed: dict[tuple[str, str], str]


def _normalize_text(form: str, text: str, unicode_version: str) -> str:
    if form == "Lowercase":
        return text.translate(_lower_table())
    tables = _tables(unicode_version)
    steps = tables.canonical | (tables.compatibility if "K" in form else {})
    decomposed = [part for character in text for part in _decompose(character, steps)]
    ordered = _order(decomposed, tables.combining)
    return "".join(_compose(ordered, tables) if form.endswith("C") else ordered)


def _decompose(character: str, steps: dict[str, str]) -> str:
    if character in steps:
        return "".join(_decompose(part, steps) for part in steps[character])
    index = ord(character) - _SYLLABLES
    if not 0 <= index < _LEAD_COUNT * _VOWEL_COUNT * _TAIL_COUNT:
        return character
    lead, rest = divmod(index, _VOWEL_COUNT * _TAIL_COUNT)
    vowel, tail = divmod(rest, _TAIL_COUNT)
    parts = chr(_LEADS + lead) + chr(_VOWELS + vowel)
    return parts + chr(_TAILS + tail) if tail else parts


def _order(characters: list[str], combining: dict[str, int]) -> list[str]:
    """Sort each run of marks by combining class, marks of one class in their order."""
    ordered: list[str] = []
    marks: list[str] = []
    for character in characters:
        if character in combining:
            marks.append(character)
            continue
        ordered += [*sorted(marks, key=combining.__getitem__), character]
        marks = []
    return ordered + sorted(marks, key=combining.__getitem__)


def _compose(characters: list[str], tables: _Tables) -> list[str]:
    """Compose each character with the last starter, unless one between them blocks it."""
    composed: list[str] = []
    starter = -1  # index of the last starter, or none yet
    last_class = -1  # of the last character after it that stayed
    for character in characters:
        this_class = tables.combining.get(character, 0)
        if starter >= 0 and last_class < this_class:
            pair = _pair(composed[starter], character, tables.composed)
            if pair is not None:
                composed[starter] = pair
                continue
        last_class = this_class
        if this_class == 0:
            starter, last_class = len(composed), -1
        composed.append(character)
    return composed


def _pair(first: str, second: str, composed: dict[tuple[str, str], str]) -> str | None:
    lead, vowel = ord(first) - _LEADS, ord(second) - _VOWELS
    if 0 <= lead < _LEAD_COUNT and 0 <= vowel < _VOWEL_COUNT:
        return chr(_SYLLABLES + (lead * _VOWEL_COUNT + vowel) * _TAIL_COUNT)
    index, tail = ord(first) - _SYLLABLES, ord(second) - _TAILS
    is_syllable = 0 <= index < _LEAD_COUNT * _VOWEL_COUNT * _TAIL_COUNT
    if is_syllable and index % _TAIL_COUNT == 0 and 0 < tail < _TAIL_COUNT:
        return chr(ord(first) + tail)
    return composed.get((first, second))


@lru_cache(maxsize=2)
def _tables(unicode_version: str) -> _Tables:
    left_out = set() if _is_latest(unicode_version) else set(_code_points(LATER))
    combining = {
        chr(code_point): combining_class
        for combining_class, ranges in COMBINING.items()
        for code_point in _code_points(ranges)
        if code_point not in left_out
    }
    steps: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for row in DECOMPOSITIONS.split():
        source, _, targets = row.partition("=")
        parts = [int(part, 16) for part in targets.lstrip("~").split("+")]
        for index, code_point in enumerate(_code_points(source)):
            if code_point not in left_out:
                target = "".join(map(chr, [*parts[:-1], parts[-1] + index]))
                steps[targets[0] == "~"][chr(code_point)] = target
    canonical, compatibility = steps
    excluded = {chr(code_point) for code_point in _code_points(EXCLUSIONS)}
    composed = {
        (target[0], target[1]): character
        for character, target in canonical.items()
        if len(target) == 2 and character not in excluded
    }
    return _Tables(combining, canonical, compatibility, composed)


@lru_cache(maxsize=1)
def _lower_table() -> dict[int, str]:
    table = {
        code_point: chr(code_point + distance)
        for distance, ranges in LOWER.items()
        for code_point in _code_points(ranges)
    }
    return table | {0x130: "i\u0307"}


def _code_points(ranges: str) -> list[int]:
    found: list[int] = []
    for word in ranges.split():
        first, _, last = word.partition("-")
        found += range(int(first, 16), int(last or first, 16) + 1)
    return found
