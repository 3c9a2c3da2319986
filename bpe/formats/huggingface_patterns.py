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
from bpe.pretokenizing.chains import Step
from bpe.pretokenizing.schemes import SCHEME_NAMES, Scheme, get_scheme
from bpe.pretokenizing.user_patterns import MOST_CHARACTERS

__all__ = [
    "DIGIT",
    "PUNCTUATION",
    "find_difference",
    "from_huggingface_pattern",
    "is_published_cl100k",
    "render_pre_tokenizer",
    "scheme_name_of",
    "to_huggingface_pattern",
]

DIGIT = r"\p{N}"
PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
"""What the library's steps of these names look for."""

# Possessive quantifiers and anchors are read differently, or not at all, by other libraries. Here
# they can be left out: nothing that follows a part of these patterns fails after it, or what it
# gives back could not match.
_WRITTEN: Mapping[str, str] = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "superbpe": get_scheme("superbpe").pattern.replace("++", "+"),
}

# What cl100k_base was trained with, and what most files of its family hold. It cuts off spaces
# after the last newline at the end of a document, which the scheme keeps with the newline.
_PUBLISHED_CL100K = get_scheme("llama3").pattern
_SPACES_AFTER_NEWLINE = re.compile(rb"[\r\n][\t\x0b\x0c \xc2\xe1-\xe3][^\r\n]*\Z")

_PUBLISHED: Mapping[str, str] = {
    # GPT-2's with a group for contractions.
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    # What earlier versions of this library wrote.
    get_scheme("cl100k").pattern.replace(r"\p{N}{1,3}+", r"\p{N}{1,3}"): "cl100k",
}

_NAMES = {get_scheme(name).pattern: name for name in SCHEME_NAMES if name != "none"}

_POSSESSIVE_INTERVAL = re.compile(r"\{\d*,?\d*\}\+")
# Written as the first where a class holds another: the `regex` module then nests as Oniguruma does.
_NESTED = "(?V1)"
_SET_OPERATIONS = re.compile(r"--|\|\||~~")  # of that version of its syntax alone
_CLASS_START = re.compile(r"\[\^?\]?")
_LINE_ENDS = ("^", "$")  # of each line for Oniguruma
_SAFE_END = r"\s++$"
# Not \w and \b: superscript digits and joiners are word characters for one of the two alone.
_ESCAPES_READ_ALIKE = frozenset("pPsSdDnrtfvxu")

_DIFFERENCES = {
    "^": "^: Oniguruma matches it at every line, the `regex` module at the start alone",
    "$": "$: Oniguruma matches it at every line's end, the `regex` module at the text's end",
    "(?m": "(?m: Oniguruma lets . match newlines, the `regex` module lets ^ and $ match at lines",
    "[": "[ inside a character class: Oniguruma nests classes, the `regex` module does not",
    "[:": "[: inside a character class: a class by name for Oniguruma alone",
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

    They do where no token joins a newline with spaces after it. The pattern alone is Llama 3's
    too; to be told from it, the file has other values of settings that no id depends on.
    """
    return list(steps) == _published_cl100k() and not any(map(_SPACES_AFTER_NEWLINE.search, tokens))


def render_pre_tokenizer(
    scheme: Scheme, tokens: Iterable[bytes], *, adds_space: bool = False
) -> dict[str, Any]:
    """Pre-tokenizer of tokenizer.json, in the form that is published for the scheme.

    tokens: the bytes of all tokens. adds_space: whether a space goes before each text. Raises
    `SettingsError` as `to_huggingface_pattern` does.
    """
    steps = _published_cl100k()
    if scheme.name != "cl100k" or not is_published_cl100k(steps, tokens) or adds_space:
        uses_regex = scheme.steps[-1:] == get_scheme("gpt2").steps
        before = scheme.steps[:-1] if uses_regex else scheme.steps
        steps = [_render_step(step) for step in before]
        steps.append(_byte_level(adds_space=adds_space, use_regex=uses_regex))
    return {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]


def _render_step(step: Step) -> dict[str, Any]:
    behavior = step.behavior.title().replace("_", "")
    if step.pattern == PUNCTUATION and not step.invert:
        return {"type": "Punctuation", "behavior": behavior}
    if step == Step(DIGIT, "contiguous"):
        return {"type": "Digits", "individual_digits": False}
    pattern = {"Regex": to_huggingface_pattern(step.pattern)}
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": step.invert}


def _byte_level(
    *, trim_offsets: bool = True, use_regex: bool = False, adds_space: bool = False
) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": adds_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


def _published_cl100k() -> list[dict[str, Any]]:
    pattern = {"Regex": _PUBLISHED_CL100K}
    split = {"type": "Split", "pattern": pattern, "behavior": "Removed", "invert": True}
    return [split, _byte_level(trim_offsets=False)]


def to_huggingface_pattern(pattern: str) -> str:
    """Write a scheme's pattern for Oniguruma; `SettingsError` if it would match something else."""
    name = _NAMES.get(pattern)
    if name is not None:
        return _WRITTEN.get(name, pattern.removeprefix(_NESTED))
    written = pattern.removeprefix(_NESTED)
    for mark in _LINE_ENDS:
        written = written.replace(f"(?m:{mark})", mark)
    if from_huggingface_pattern(written) == (pattern, None):
        return written
    difference = find_difference(pattern) or "its flags"
    raise SettingsError(
        f"pre-tokenizer {pattern!r} cannot be written to tokenizer.json: {difference}; "
        "write the pattern without it"
    )


def from_huggingface_pattern(pattern: str) -> tuple[str, str | None]:
    r"""A file's pattern for the `regex` module, and what the two read differently all the same.

    >>> from_huggingface_pattern(r"\s+$|[a-z&&[^b]]")
    ('(?V1)\\s+(?m:$)|[a-z&&[^b]]', None)
    """
    if len(pattern) > MOST_CHARACTERS or find_difference(pattern) is None:
        return pattern, None
    parts: list[str] = []
    position, depth, nests = 0, 0, False
    while position < len(pattern):
        size, difference, mark = 1, None, pattern[position]
        if mark == "\\":
            size, difference = 2, _escape_difference(pattern[position + 1 : position + 2])
        elif mark == "[":
            nests |= depth > 0
            depth += 1
            size = len(_CLASS_START.match(pattern, position).group())  # type: ignore[union-attr]
            difference = _DIFFERENCES["[:"] if pattern.startswith("[:", position) else None
        elif mark == "]" and depth:
            depth -= 1
        elif depth:
            nests |= pattern.startswith("&&", position)
        elif mark not in _LINE_ENDS:
            difference = _difference_at(pattern[position:], in_class=False)
        if difference is not None:
            return pattern, difference
        part = pattern[position : position + size]
        parts.append(f"(?m:{part})" if part in _LINE_ENDS and not depth else part)
        position += size
    if nests and _SET_OPERATIONS.search(pattern):
        return pattern, _DIFFERENCES["["]
    return _NESTED * nests + "".join(parts), None


def find_difference(pattern: str) -> str | None:
    r"""Find a part of a pattern that Oniguruma and `regex` read differently; None if there is none.

    Looks for constructs. The version of Unicode of \p{...} is each library's own: characters
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
            difference = _escape_difference(rest[1:2])
            if difference is not None:
                return difference
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


def _escape_difference(escape: str) -> str | None:
    if escape.isalnum() and escape not in _ESCAPES_READ_ALIKE:
        return rf"\{escape}: not an escape that both read alike"
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
