r"""Pre-tokenizer patterns in tokenizer.json: which scheme one is, and how a scheme is written.

Hugging Face reads patterns with Oniguruma (Ruby syntax), schemes are written for the `regex`
module. A pattern crosses over when both read it alike:

    >>> find_difference(r"\p{N}{1,3}+")
    '{1,3}+: Oniguruma repeats the group where the `regex` module makes it possessive'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bpe.errors import SettingsError
from bpe.schemes import SCHEME_NAMES, Scheme, get_scheme

__all__ = ["find_difference", "scheme_name_of", "to_huggingface_pattern"]

# A trailing greedy {1,3} finds the same as a possessive one: nothing after it can fail.
_WRITTEN = {
    "cl100k": get_scheme("cl100k").pattern.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}"),
}

_PUBLISHED: Mapping[str, str] = {
    # GPT-2's original spelling, which finds the same, and one with a group for contractions.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
}

_POSSESSIVE_INTERVAL = re.compile(r"\{\d*,?\d*\}\+")
_SAFE_END = r"\s++$"
# Not \w and \b: superscript digits and joiners are word characters for one of the two alone.
_ESCAPES_READ_ALIKE = frozenset("pPsSdDnrtfvxu")

_DIFFERENCES = {
    "^": "^: Oniguruma matches it at every line, the `regex` module at the start alone",
    "$": "$: Oniguruma matches it at every line's end, the `regex` module at the text's end",
    "(?m": "(?m: Oniguruma lets . match newlines, the `regex` module lets ^ and $ match at lines",
    "[": "[ inside a character class: Oniguruma nests classes, the `regex` module does not",
    "&&": "&& inside a character class: Oniguruma intersects, the `regex` module does not",
}


def scheme_name_of(pattern: str) -> str | None:
    """Name of the scheme that a pattern in tokenizer.json is; None if it is none of them."""
    for name in SCHEME_NAMES:
        if pattern and pattern in (get_scheme(name).pattern, _WRITTEN.get(name)):
            return name
    return _PUBLISHED.get(pattern)


def to_huggingface_pattern(scheme: Scheme) -> str:
    """Write a scheme's pattern for Oniguruma; `SettingsError` if it would match something else."""
    if scheme.is_named:
        return _WRITTEN.get(scheme.name, scheme.pattern)
    difference = find_difference(scheme.pattern)
    if difference is not None:
        raise SettingsError(
            f"pre-tokenizer {scheme.name!r} cannot be written to tokenizer.json: {difference}; "
            "write the pattern without it"
        )
    return scheme.pattern


def find_difference(pattern: str) -> str | None:
    r"""Find a part of a pattern that Oniguruma and `regex` read differently; None if there is none.

    Looks for constructs. The version of Unicode behind \p{...} is each library's own: characters
    that were assigned lately may differ.
    """
    position, class_depth = 0, 0
    while position < len(pattern):
        rest = pattern[position:]
        if rest.startswith(_SAFE_END) and not class_depth:
            # The possessive \s++ takes every newline first, so that both read the $ alike.
            position += len(_SAFE_END)
            continue
        if rest[0] == "\\":
            escape = rest[1:2]
            if escape.isalnum() and escape not in _ESCAPES_READ_ALIKE:
                return rf"\{escape}: not an escape that both read alike"
            position += 2
            continue
        found = _difference_at(rest, in_class=class_depth > 0)
        if found is not None:
            return found
        if rest[0] == "[":
            class_depth = 1
            # A leading ] or ^] is a literal.
            position += len("[^]") if rest.startswith("[^]") else 1 + rest.startswith("[]")
            continue
        if rest[0] == "]":
            class_depth = 0
        position += 1
    return None


def _difference_at(rest: str, *, in_class: bool) -> str | None:
    interval = _POSSESSIVE_INTERVAL.match(rest)
    if interval and not in_class:
        return (
            f"{interval.group()}: Oniguruma repeats the group where the `regex` module makes it "
            "possessive"
        )
    marks = ("[", "&&") if in_class else ("^", "$", "(?m")
    return next((_DIFFERENCES[mark] for mark in marks if rest.startswith(mark)), None)
