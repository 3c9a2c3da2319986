r"""Pre-tokenizer patterns in tokenizer.json: which scheme one is, and how a scheme is written.

Hugging Face reads patterns with Oniguruma (Ruby syntax), schemes are written for the `regex`
module. A pattern crosses over when both read it alike:

    >>> find_difference(r"\p{N}{1,3}+")
    '{1,3}+: Oniguruma repeats the group where the `regex` module makes it possessive'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bpe.errors import SettingsError
from bpe.pretokenizing.schemes import SCHEME_NAMES, Scheme, get_scheme

__all__ = [
    "find_difference",
    "is_published_cl100k",
    "render_pre_tokenizer",
    "scheme_name_of",
    "to_huggingface_pattern",
]

# Possessive quantifiers and anchors are read differently, or not at all, by other libraries. Here
# they can be left out: nothing behind a part of these patterns fails after it, or what it gives
# back could not match.
_WRITTEN: Mapping[str, str] = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "superbpe": get_scheme("superbpe").pattern.replace("++", "+"),
}

# What cl100k_base was trained with, and what most files of its family hold. It cuts off spaces
# behind the last newline at the end of a document, which the scheme keeps with the newline.
_PUBLISHED_CL100K = get_scheme("llama3").pattern
_SPACES_AFTER_NEWLINE = re.compile(rb"[\r\n][\t\x0b\x0c \xc2\xe1-\xe3][^\r\n]*\Z")

_PUBLISHED: Mapping[str, str] = {
    # GPT-2's with a group for contractions.
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    # What earlier versions of this library wrote.
    get_scheme("cl100k").pattern.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}"): "cl100k",
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


def is_published_cl100k(steps: Sequence[Any], tokens: Iterable[bytes]) -> bool:
    """Whether pre-tokenizers are cl100k as this library writes it, and find the same ids.

    They do where no token joins a newline with spaces behind it. The pattern alone is Llama 3's
    too; to be told from it, the file has other values of settings that no id depends on.
    """
    return list(steps) == _published_cl100k() and not any(map(_SPACES_AFTER_NEWLINE.search, tokens))


def render_pre_tokenizer(scheme: Scheme, tokens: Iterable[bytes]) -> dict[str, Any]:
    """Pre-tokenizer of tokenizer.json, in the form that is published for the scheme.

    tokens: the bytes of all tokens. Raises `SettingsError` as `to_huggingface_pattern` does.
    """
    if scheme.name in {"gpt2", "none"}:
        return _byte_level(use_regex=scheme.name == "gpt2")
    steps = _published_cl100k()
    if scheme.name != "cl100k" or not is_published_cl100k(steps, tokens):
        pattern = {"Regex": to_huggingface_pattern(scheme)}
        split = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
        steps = [split, _byte_level()]
    return {"type": "Sequence", "pretokenizers": steps}


def _byte_level(*, trim_offsets: bool = True, use_regex: bool = False) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


def _published_cl100k() -> list[dict[str, Any]]:
    pattern = {"Regex": _PUBLISHED_CL100K}
    split = {"type": "Split", "pattern": pattern, "behavior": "Removed", "invert": True}
    return [split, _byte_level(trim_offsets=False)]


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
