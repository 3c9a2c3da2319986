"""Which scheme a pattern of tokenizer.json is, and which patterns both libraries read alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe import SCHEME_NAMES, SettingsError, get_scheme
from bpe.formats.huggingface_patterns import (
    find_difference,
    scheme_name_of,
    to_huggingface_pattern,
)

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


# The others have several patterns, or one that is written for another syntax.
@pytest.mark.parametrize(
    "name", [name for name in SCHEME_NAMES if get_scheme(name).pattern[:5] not in ("", "(?V1)")]
)
def test_what_is_written_for_a_scheme_is_read_as_that_scheme(name: str) -> None:
    written = to_huggingface_pattern(get_scheme(name).pattern)
    assert scheme_name_of(written) == name
    assert not re.search(r"[+*?]\+|\d\}\+", written)


@pytest.mark.parametrize("name", ["cl100k", "superbpe"])
@given(
    text=st.text(st.sampled_from("\n\r\t  \x0b\u00a0aB\u00e9\u01c51\u0664!/.'sſtl文"), max_size=24)
)
@example("a\n ")
@settings(max_examples=150, deadline=None)
def test_what_is_written_finds_what_the_scheme_finds(name: str, text: str) -> None:
    import regex

    scheme = get_scheme(name)
    assert regex.findall(to_huggingface_pattern(scheme.pattern), text) == scheme.split_text(text)


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "superbpe"])
def test_what_was_written_before_is_read_as_that_scheme(name: str) -> None:
    pattern = get_scheme(name).pattern
    assert scheme_name_of(pattern) == name
    assert scheme_name_of(pattern.replace("{1,3}+", "{1,3}")) == name


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "gpt2"),
        (LLAMA3, "llama3"),
        (LLAMA3.replace("{1,3}", ""), "qwen2"),
        (LLAMA3.replace("{1,3}", "{1,4}"), None),
        ("", None),
        (r"\s+", None),
    ],
)
def test_published_patterns_are_recognised(pattern: str, name: str | None) -> None:
    assert scheme_name_of(pattern) == name


def test_gpt2s_original_pattern_finds_what_the_scheme_finds() -> None:
    import regex

    original = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for text in ("it's  12ab\n\n  x", "a\n  ", "  ", "'ll'x '' 're", "\t\ta  "):
        assert regex.findall(original, text) == get_scheme("gpt2").split_text(text)


@pytest.mark.parametrize(
    ("pattern", "difference"),
    [
        (r"\p{N}{1,3}+", r"{1,3}+: Oniguruma repeats"),
        (r"a{,3}+b", r"{,3}+: Oniguruma repeats"),
        (r"^a", "^: Oniguruma"),
        (r"a$", "$: Oniguruma"),
        (r"\s+$", "$: Oniguruma"),
        (r"(?m)a", "(?m: Oniguruma"),
        (r"[a[b]]", "[ inside a character class"),
        (r"[a&&b]", "&& inside a character class"),
        (r"\w+", r"\w: not an escape"),
        (r"a\b", r"\b: not an escape"),
        (r"[\h]", r"\h: not an escape"),
        (r"(a)\1", r"\1: not an escape"),
        (r"\p{L}++|\p{N}{1,3}|[^\s\p{L}]+\n?|\s++$|\s+(?!\S)|\s", None),
        (r"[\[\]$^&]+|\$|\^|[]a]|[^]a]|{1,3}\+", None),
        (r"[^^$]x{2}", None),
    ],
)
def test_differences_are_found(pattern: str, difference: str | None) -> None:
    found = find_difference(pattern)
    assert (found is None) == (difference is None)
    assert difference is None or (found or "").startswith(difference)


def test_a_pattern_that_would_match_something_else_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"'a\{1,2\}\+' cannot be written .* without it"):
        to_huggingface_pattern("a{1,2}+")
    assert to_huggingface_pattern(r"\s+|\S+?") == r"\s+|\S+?"
