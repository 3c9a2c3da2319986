"""Builds the tables of `normalization` and of its native twin from the package `unicodedata2`.

`python -m bpe.pretokenizing.generate_unicode_tables` writes them, with the tables of the Unicode
classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import unicodedata2

__all__ = ["NormalizationData", "collect", "render_header", "render_module"]

# What has a combining class or a decomposition and was assigned after Unicode 9.0, from
# DerivedAge.txt. The package knows no ages; what was assigned before keeps its normal form.
_ASSIGNED_AFTER_9 = """
7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA 32FF A7F2-A7F4 A82C AB69 105C9
105E4 10781-10785 10787-107B0 107B2-107BA 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFD-10EFF
10F46-10F50 10F82-10F85 11070 1133B 11383 11385 1138E 11391 113C5 113C7-113C8 113CE-113D0 1145E
11839-1183A 11938 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42
16121-16128 1612F 16D68-16D6A 16FF0-16FF1 1CCD6-1CCF9 1E030-1E06D 1E08F 1E130-1E136 1E2AE
1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1F16C 1FBF0-1FBF9
"""
_HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
_SPECIAL_LOWER = 0x130  # the one character whose lower case is two
_LINE_WIDTH = 96

Range = tuple[int, int]


@dataclass(frozen=True)
class NormalizationData:
    """Properties of code points as ascending (first, last) ranges, both ends included.

    combining: ranges of each canonical combining class but 0.
    decompositions: (first, last, targets, is_compatibility): one step of decomposition, Hangul
        left out. A range of several has one target, which grows with the code point.
    exclusions: what decomposes into two and is never composed again.
    later: what was assigned after Unicode 9.0.
    lower: ranges of each distance to the lower case.
    """

    combining: dict[int, list[Range]]
    decompositions: list[tuple[int, int, tuple[int, ...], bool]]
    exclusions: list[Range]
    later: list[Range]
    lower: dict[int, list[Range]]


def collect() -> NormalizationData:
    """Ask the package for the properties of every code point."""
    combining: dict[int, list[int]] = {}
    lower: dict[int, list[int]] = {}
    exclusions: list[int] = []
    for code_point in range(0x110000):
        character = chr(code_point)
        combining_class = unicodedata2.combining(character)
        if combining_class:
            combining.setdefault(combining_class, []).append(code_point)
        steps = unicodedata2.decomposition(character).split()
        if len(steps) == 2 and steps[0][0] != "<":
            composed = unicodedata2.normalize("NFC", character)
            exclusions += [code_point] if composed != character else []
        distance = _lower_of(character) - code_point
        if distance:
            lower.setdefault(distance, []).append(code_point)
    return NormalizationData(
        combining={key: _ranges(combining[key]) for key in sorted(combining)},
        decompositions=_decompositions(),
        exclusions=_ranges(exclusions),
        later=[_parse_range(word) for word in _ASSIGNED_AFTER_9.split()],
        lower={key: _ranges(lower[key]) for key in sorted(lower)},
    )


def _lower_of(character: str) -> int:
    """Code point of the lower case.

    The package knows no cases. Python's own are those of its Unicode version: case pairs never
    change, and the letters that came since are paired by their names.
    """
    category = unicodedata2.category(character)
    if category == "Cn" or ord(character) == _SPECIAL_LOWER:
        return ord(character)
    lower = character.lower()
    if lower == character and category == "Lu":
        name = unicodedata2.name(character).replace("CAPITAL LETTER", "SMALL LETTER")
        try:
            lower = unicodedata2.lookup(name)
        except KeyError:
            return ord(character)
    return ord(lower)


def _decompositions() -> list[tuple[int, int, tuple[int, ...], bool]]:
    found: list[tuple[int, int, tuple[int, ...], bool]] = []
    for code_point in range(0x110000):
        steps = unicodedata2.decomposition(chr(code_point)).split()
        if not steps or code_point in _HANGUL_SYLLABLES:
            continue
        is_compatibility = steps[0][0] == "<"
        targets = tuple(int(step, 16) for step in steps[is_compatibility:])
        if found and len(targets) == 1:
            first, last, before, kind = found[-1]
            grown = (before[0] + code_point - first,)
            if (last, len(before), grown, kind) == (code_point - 1, 1, targets, is_compatibility):
                found[-1] = (first, code_point, before, kind)
                continue
        found.append((code_point, code_point, targets, is_compatibility))
    return found


def _ranges(code_points: Iterable[int]) -> list[Range]:
    ranges: list[Range] = []
    for code_point in code_points:
        if ranges and ranges[-1][1] == code_point - 1:
            ranges[-1] = (ranges[-1][0], code_point)
        else:
            ranges.append((code_point, code_point))
    return ranges


def _parse_range(word: str) -> Range:
    first, _, last = word.partition("-")
    return int(first, 16), int(last or first, 16)


def _range_words(ranges: Iterable[Range]) -> list[str]:
    return [f"{first:X}" if first == last else f"{first:X}-{last:X}" for first, last in ranges]


def _wrapped(words: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= _LINE_WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def render_module(data: NormalizationData, version: str) -> str:
    """Text of `bpe/pretokenizing/normalization_tables.py`."""
    names = ["COMBINING", "DECOMPOSITIONS", "EXCLUSIONS", "LATER", "LOWER"]
    decompositions = [
        f"{_range_words([(first, last)])[0]}={'~' * kind}{'+'.join(f'{t:X}' for t in targets)}"
        for first, last, targets, kind in data.decompositions
    ]
    parts = [
        f'"""Unicode {version} normal forms. Made by generate_unicode_tables."""',
        "",
        "from __future__ import annotations",
        "",
        "__all__ = [" + ", ".join(f'"{name}"' for name in names) + "]",
        "",
        "# Code points are hexadecimal, ranges have both ends. Combining class to code points.",
        "COMBINING: dict[int, str] = {",
        *(line for key, spans in data.combining.items() for line in _entry(key, spans)),
        "}",
        "",
        "# One step: code point=targets; ~ marks compatibility. A range's target grows with it.",
        'DECOMPOSITIONS = """',
        *_wrapped(decompositions),
        '"""',
        "",
        "# Decompose into two, and are never composed again.",
        'EXCLUSIONS = """',
        *_wrapped(_range_words(data.exclusions)),
        '"""',
        "",
        "# Of all these, what was assigned after Unicode 9.0.",
        'LATER = """',
        *_wrapped(_range_words(data.later)),
        '"""',
        "",
        "# Distance to the lower case to code points; U+0130 is left out.",
        "LOWER: dict[int, str] = {",
        *(line for key, spans in data.lower.items() for line in _entry(key, spans)),
        "}",
    ]
    return "\n".join([*parts, ""])


def _entry(key: int, ranges: list[Range]) -> list[str]:
    return [f'    {key}: """', *_wrapped(_range_words(ranges)), '""",']


def render_header(data: NormalizationData, version: str) -> str:
    """Text of `bpe/native/scan/normalization_tables.h`."""
    pool: list[int] = []
    decompositions = []
    for first, last, targets, kind in data.decompositions:
        flag = "true" if kind else "false"
        decompositions.append(f"{{0x{first:X},0x{last:X},{len(pool)},{len(targets)},{flag}}},")
        pool += targets
    valued = [("CombiningRange", "kCombiningRanges", data.combining)]
    valued += [("LowerRange", "kLowerRanges", data.lower)]
    parts = [
        f"// Unicode {version} normal forms. Made by generate_unicode_tables.py.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace beam_bpe {",
        "",
        "// Ranges of code points have both ends.",
        "struct CodePointRange { uint32_t first, last; };",
        "struct CombiningRange { uint32_t first, last; uint8_t value; };",
        "// value: distance to the lower case",
        "struct LowerRange { uint32_t first, last; int32_t value; };",
        "",
        "// One step. A range of several has one target, which grows with the code point.",
        "struct DecompositionRange {",
        "  uint32_t first, last;",
        "  uint16_t start;  // of the targets in kDecompositionTargets",
        "  uint8_t size;    // targets",
        "  bool is_compatibility;",
        "};",
        "",
    ]
    for struct, name, table in valued:
        rows = sorted((a, b, key) for key, spans in table.items() for a, b in spans)
        words = [f"{{0x{a:X},0x{b:X},{key}}}," for a, b, key in rows]
        parts += _array(struct, name, words)
    parts += _array("DecompositionRange", "kDecompositionRanges", decompositions)
    parts += _array("uint32_t", "kDecompositionTargets", [f"0x{target:X}," for target in pool])
    parts += ["// Decompose into two, and are never composed again."]
    parts += _array("CodePointRange", "kExclusions", _pairs(data.exclusions))
    parts += ["// Assigned after Unicode 9.0."]
    parts += _array("CodePointRange", "kLater", _pairs(data.later))
    return "\n".join([*parts, "}  // namespace beam_bpe", ""])


def _pairs(ranges: list[Range]) -> list[str]:
    return [f"{{0x{first:X},0x{last:X}}}," for first, last in ranges]


def _array(type_name: str, name: str, words: list[str]) -> list[str]:
    return [f"inline constexpr {type_name} {name}[] = {{", *_wrapped(words), "};", ""]
