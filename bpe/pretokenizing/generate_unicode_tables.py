"""Writes the Unicode tables of both backends from the `unicodedata2` package.

Run as `python -m bpe.pretokenizing.generate_unicode_tables` in a checkout with the `test` extra
installed. It writes `unicode_tables` (classes) and `normalization_tables`, each as a module beside
this one and as a header in `bpe/native/scan`, and the module `category_tables`. All are kept in the
repository, so that neither the library nor its build needs the package. The version of the package
is the Unicode version of every named scheme and normalizer: raising it makes other pre-tokens and
so other tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import unicodedata2

from bpe.pretokenizing import generate_normalization_tables as normalization

__all__ = [
    "REQUIRED_VERSION",
    "category_ranges",
    "class_ranges",
    "main",
    "render_categories",
    "render_header",
    "render_module",
]

REQUIRED_VERSION = "16.0.0"

# Property White_Space, which the character database of the package does not carry. The set has
# been stable since Unicode 6.3.
_WHITE_SPACE = frozenset(
    {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)}
    | {0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
)
# What `\w` of Rust's regex library, which Hugging Face's uses, holds besides letters, marks and
# numbers: Pc, and of the property Other_Alphabetic what is none of these; Join_Control.
_WORD_SYMBOLS = frozenset(
    {0x200C, 0x200D, *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A)}
    | {*range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A)}
)
_CLASSES = ("Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "S")
# Script=Han, which the package does not carry either: Scripts.txt of Unicode 16.0.
_HAN = (
    *((0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007)),
    *((0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFA6D)),
    *((0xFA70, 0xFAD9), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FF1), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B739), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1), (0x2CEB0, 0x2EBE0)),
    *((0x2EBF0, 0x2EE5D), (0x2F800, 0x2FA1D), (0x30000, 0x3134A), (0x31350, 0x323AF)),
)
_LINE_WIDTH = 96

_Ranges = dict[str, list[tuple[int, int]]]


def _class_of(code_point: int) -> str | None:
    if code_point in _WHITE_SPACE:
        return "S"
    category: str = unicodedata2.category(chr(code_point))
    if category[0] == "L":
        return category
    return category[0] if category[0] in "MN" else None


def class_ranges() -> _Ranges:
    """Code points of each class as ascending (first, last) ranges, both ends included."""
    found = _ranges_by(_class_of)
    return {name: found[name] for name in _CLASSES}


def category_ranges() -> _Ranges:
    """Code points of each general category that `class_ranges` has not by its own; of Han."""
    known = {*_CLASSES, "Cn"}
    found = _ranges_by(lambda code_point: unicodedata2.category(chr(code_point)))
    others = {name: spans for name, spans in sorted(found.items()) if name not in known}
    return {**others, "Han": list(_HAN)}


def word_exceptions() -> list[tuple[int, int]]:
    """Numbers that are no word characters (No), and word characters that are of none of L, M, N."""

    def name_of(code_point: int) -> str | None:
        category = unicodedata2.category(chr(code_point))
        return "word" if category in ("No", "Pc") or code_point in _WORD_SYMBOLS else None

    return _ranges_by(name_of)["word"]


def _ranges_by(name_of: Callable[[int], str | None]) -> _Ranges:
    """Ranges of the code points of each name; those without a name are left out."""
    ranges: _Ranges = {}
    for code_point in range(0x110000):
        name = name_of(code_point)
        if name is None:
            continue
        spans = ranges.setdefault(name, [])
        if spans and spans[-1][1] == code_point - 1:
            spans[-1] = (spans[-1][0], code_point)
        else:
            spans.append((code_point, code_point))
    return ranges


def _wrapped(words: list[str], separator: str) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(separator) + len(word) <= _LINE_WIDTH:
            lines[-1] += separator + word
        else:
            lines.append(word)
    return lines


def render_module(ranges: _Ranges) -> str:
    """Text of `bpe/pretokenizing/unicode_tables.py`."""
    parts = [
        f'"""Unicode {REQUIRED_VERSION} classes as ranges. Made by generate_unicode_tables."""',
        "",
        "from __future__ import annotations",
        "",
        '__all__ = ["CLASS_RANGES", "UNICODE_VERSION", "WORD_EXCEPTIONS"]',
        "",
        f'UNICODE_VERSION = "{REQUIRED_VERSION}"',
        "",
        "# Class name to ranges of code points in hexadecimal, both ends included. Lu, Ll, Lt, Lm,",
        "# Lo, M and N are general categories (M and N whole groups), S is property White_Space.",
        "CLASS_RANGES: dict[str, str] = {",
    ]
    parts += _rendered(ranges)
    parts += [
        "}",
        "",
        "# Word characters are letters, marks and numbers (L, M, N), but for these code points,",
        "# with which it is the other way round.",
        'WORD_EXCEPTIONS = """',
        *_wrapped(_spelled(word_exceptions()), " "),
        '"""',
    ]
    return "\n".join([*parts, ""])


def _rendered(ranges: _Ranges) -> list[str]:
    """Lines of a dictionary's entries."""
    lines: list[str] = []
    for name, spans in ranges.items():
        lines += [f'    "{name}": """', *_wrapped(_spelled(spans), " "), '""",']
    return lines


def _spelled(spans: list[tuple[int, int]]) -> list[str]:
    return [f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in spans]


def render_categories(ranges: _Ranges) -> str:
    """Text of `bpe/pretokenizing/category_tables.py`."""
    parts = [
        f'"""Unicode {REQUIRED_VERSION} categories as ranges. Made by generate_unicode_tables."""',
        "",
        "from __future__ import annotations",
        "",
        '__all__ = ["CATEGORY_RANGES"]',
        "",
        "# General category to ranges of code points in hexadecimal, both ends included. Those of",
        "# letters stand in unicode_tables; Cn is what is left. Han is the script of that name.",
        "CATEGORY_RANGES: dict[str, str] = {",
    ]
    return "\n".join([*parts, *_rendered(ranges), "}", ""])


def render_header(ranges: _Ranges) -> str:
    """Text of `bpe/native/scan/unicode_tables.h`: one table, ascending, with a class per range."""
    rows = sorted((a, b, name) for name, spans in ranges.items() for a, b in spans)
    words = [f"{{0x{a:X}, 0x{b:X}, UnicodeClass::k{name}}}," for a, b, name in rows]
    return "\n".join(
        [
            f"// Unicode {REQUIRED_VERSION} classes. Made by generate_unicode_tables.py.",
            "#pragma once",
            "",
            "#include <cstdint>",
            "",
            "namespace bpe {",
            "",
            "// General categories of letters, marks (M) and numbers (N); S is White_Space.",
            "enum class UnicodeClass : uint8_t { kOther, "
            + ", ".join("k" + name for name in _CLASSES)
            + " };",
            "",
            "struct UnicodeRange {",
            "  uint32_t first;  // code point",
            "  uint32_t last;   // code point, included",
            "  UnicodeClass unicode_class;",
            "};",
            "",
            f'inline constexpr char kUnicodeVersion[] = "{REQUIRED_VERSION}";',
            "",
            "// Ascending and disjoint; what no range holds is kOther.",
            "inline constexpr UnicodeRange kUnicodeRanges[] = {",
            *("    " + line for line in _wrapped(words, " ")),
            "};",
            "",
            "struct CodePointRange {",
            "  uint32_t first;",
            "  uint32_t last;  // included",
            "};",
            "",
            "// Word characters are letters, marks and numbers, but for these, with which it is",
            "// the other way round.",
            "inline constexpr CodePointRange kWordExceptions[] = {",
            *(
                "    " + line
                for line in _wrapped([f"{{0x{a:X}, 0x{b:X}}}," for a, b in word_exceptions()], " ")
            ),
            "};",
            "",
            "}  // namespace bpe",
            "",
        ]
    )


def main() -> None:
    """Write the files next to this one; raises `RuntimeError` for another package version."""
    found = unicodedata2.unidata_version
    if found != REQUIRED_VERSION:
        raise RuntimeError(
            f"unicodedata2 holds Unicode {found}, the tables are of {REQUIRED_VERSION}: "
            f"pip install unicodedata2=={REQUIRED_VERSION}"
        )
    ranges = class_ranges()
    here = Path(__file__).resolve().parent
    (here / "unicode_tables.py").write_text(render_module(ranges), encoding="ascii")
    categories = render_categories(category_ranges())
    (here / "category_tables.py").write_text(categories, encoding="ascii")
    scan = here.parent / "native" / "scan"
    (scan / "unicode_tables.h").write_text(render_header(ranges), encoding="ascii")
    data = normalization.collect()
    module = normalization.render_module(data, REQUIRED_VERSION)
    (here / "normalization_tables.py").write_text(module, encoding="ascii")
    header = normalization.render_header(data, REQUIRED_VERSION)
    (scan / "normalization_tables.h").write_text(header, encoding="ascii")


if __name__ == "__main__":
    main()
