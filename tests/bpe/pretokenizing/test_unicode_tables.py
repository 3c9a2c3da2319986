"""The tables hold Unicode 16, and what stands for a class is of that class everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex

import bpe.pretokenizing.unicode_tables
from bpe.pretokenizing.schemes import _TO_REPRESENTATIVES
from bpe.pretokenizing.unicode_classes import OTHER, class_of


def test_tables_are_what_the_generator_makes() -> None:
    pytest.importorskip("unicodedata2")
    from bpe.pretokenizing import generate_unicode_tables as generator

    ranges = generator.class_ranges()
    folder = Path(bpe.pretokenizing.unicode_tables.__file__).parent
    remedy = "run python -m bpe.pretokenizing.generate_unicode_tables"
    module = (folder / "unicode_tables.py").read_text("ascii")
    assert module == generator.render_module(ranges), remedy
    module = (folder / "category_tables.py").read_text("ascii")
    assert module == generator.render_categories(generator.category_ranges()), remedy
    header = (folder.parent / "native/scan/unicode_tables.h").read_text("ascii")
    assert header == generator.render_header(ranges), remedy


def test_every_code_point_has_the_class_of_its_category() -> None:
    unicodedata2 = pytest.importorskip("unicodedata2")
    assert (
        unicodedata2.unidata_version == bpe.pretokenizing.unicode_tables.UNICODE_VERSION == "16.0.0"
    )
    spaces = 0
    for code_point in range(0x110000):
        found = class_of(code_point)
        category = unicodedata2.category(chr(code_point))
        if found == "S":
            spaces += 1
            assert category in {"Zs", "Zl", "Zp", "Cc"}
        elif category[0] == "L":
            assert found == category
        else:
            assert found == (category[0] if category[0] in "MN" else OTHER)
    assert spaces == 25


def test_surrogates_are_other() -> None:
    assert {class_of(code_point) for code_point in range(0xD800, 0xE000)} == {OTHER}


def test_a_letter_of_a_later_unicode_version_is_other() -> None:
    # U+A7CE is assigned in Unicode 17 alone; `regex` may know it, the named schemes must not.
    assert class_of(0xA7CE) == OTHER
    assert class_of(0xA7CD) == "Ll"


@pytest.mark.parametrize(
    ("code_point", "properties"),
    [
        (0xC0, r"\p{L}\p{Lu}"),
        (0xE0, r"\p{L}\p{Ll}"),
        (0x1C5, r"\p{L}\p{Lt}"),
        (0x2B0, r"\p{L}\p{Lm}"),
        (0x4E2D, r"\p{L}\p{Lo}"),
        (0x300, r"\p{M}"),
        (0x664, r"\p{N}"),
        (0x2003, r"\s"),
        (0x2014, ""),
        (0xDC80, ""),
    ],
)
def test_representatives_are_of_the_class_they_stand_for(code_point: int, properties: str) -> None:
    known = [r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{N}"]
    representative = chr(code_point).translate(_TO_REPRESENTATIVES)
    matching = [item for item in [*known, r"\s"] if regex.fullmatch(item, representative)]
    assert "".join(matching) == properties
    # A representative must not be a character that a pattern names.
    assert not regex.fullmatch(r"(?i:[sdmtlver' /\r\n])", representative)
