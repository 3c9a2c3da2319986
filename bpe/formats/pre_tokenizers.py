"""Pre-tokenizers of tokenizer.json that end with ByteLevel, as a scheme.

The steps before ByteLevel, and its own pattern, become a chain of steps; one that is the same as
a named scheme becomes that.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import regex

from bpe.errors import ModelFileError, SettingsError
from bpe.formats.file_access import shown
from bpe.formats.huggingface_patterns import (
    DIGIT,
    PUNCTUATION,
    from_huggingface_pattern,
    is_published_cl100k,
    scheme_name_of,
)
from bpe.formats.tokenizer_fields import flag, refusal, refuse_unless, steps_of
from bpe.pretokenizing.chains import Step, render_steps
from bpe.pretokenizing.schemes import Scheme, chain_scheme, get_scheme
from bpe.pretokenizing.user_patterns import SearchTime, check_pattern, find_spans

__all__ = ["read_pre_tokenizer"]

PathLike = str | os.PathLike[str]

_BEHAVIORS = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
# A pattern that finds nothing in one of these at one place is taken for one that always finds
# something: a match of nothing cuts a text for Hugging Face's library, and not for `regex:`.
_PROBES = ("", "It's 12345 a_b,\r\n\n\t  \u00e9\u6f22\u5b57\U0001f600", "aAbB", "x 1")


def read_pre_tokenizer(value: Any, tokens: Iterable[bytes], path: PathLike) -> tuple[Scheme, bool]:
    """Scheme of a file's pre-tokenizer, and whether a space goes before each text.

    tokens: bytes of all tokens. Raises `UnsupportedFileError` that names the step and the setting.
    """
    refuse_unless(value is not None, path, "pre_tokenizer", value)
    found = steps_of(value, "pretokenizers", "pre_tokenizer", path)
    kinds = [step["type"] for step in found]
    # What comes after ByteLevel sees other characters.
    refuse_unless(kinds[-1:] == ["ByteLevel"], path, "pre_tokenizer", value)
    *before, byte_level = found
    # The library's own defaults are true for both.
    place = "pre_tokenizer: ByteLevel"
    adds_space = flag(byte_level, "add_prefix_space", place, path, default=True)
    uses_regex = flag(byte_level, "use_regex", place, path, default=True)
    # Each piece of the steps before would get a space.
    is_whole = not adds_space or not before
    refuse_unless(is_whole, path, f"{place}.add_prefix_space after other steps", adds_space)
    if is_published_cl100k(found, tokens):
        return get_scheme("cl100k"), adds_space
    steps = [_read_step(step, path) for step in before]
    if uses_regex:
        steps.append(Step(get_scheme("gpt2").pattern, "isolated"))
    return _scheme_of(steps, path), adds_space


def _scheme_of(steps: list[Step], path: PathLike) -> Scheme:
    try:
        scheme = chain_scheme(steps)
        if scheme.is_named:
            return scheme
        is_plain = len(steps) == 1 and steps[0].behavior == "isolated"
        if is_plain and not _finds_nothing(steps[0].pattern):
            scheme = get_scheme(f"regex:{steps[0].pattern}")
            what = f"the pattern {shown(steps[0].pattern)} is no named scheme's; it is read as "
            what += "regex:PATTERN"
        else:
            scheme = get_scheme(f"chain:{render_steps(steps)}")
            what = "its steps that cut text are no named scheme; they are read as chain:STEPS"
        if scheme.is_native:
            return scheme
    except SettingsError as error:
        raise ModelFileError(f"{path}: Split.pattern: {error}") from error
    warnings.warn(
        f"{path}: {what}, which the Python package `regex` runs, and which takes many times "
        f"as long as a scheme that is compiled; its Unicode classes are those of "
        f"{scheme.unicode_version}, not of the file's library",
        UserWarning,
        stacklevel=7,
    )
    return scheme


def _finds_nothing(pattern: str) -> bool:
    check_pattern(pattern)
    return any(
        start == end
        for probe in _PROBES
        for start, end in find_spans(pattern, probe, SearchTime(len(probe)))
    )


def _read_step(step: Mapping[str, Any], path: PathLike) -> Step:
    """One step before ByteLevel."""
    kind = step["type"]
    if kind == "Split":
        return _read_split(step, path)
    if kind == "Digits":
        alone = flag(step, "individual_digits", "Digits", path, default=False)
        return Step(DIGIT, "isolated" if alone else "contiguous")
    if kind == "Punctuation":
        return Step(PUNCTUATION, _behavior(step, path, default="Isolated"))
    if kind == "WhitespaceSplit":
        return Step(r"\s", "removed")
    if kind == "CharDelimiterSplit":
        delimiter = step.get("delimiter")
        is_one = isinstance(delimiter, str) and len(delimiter) == 1
        refuse_unless(is_one, path, "CharDelimiterSplit.delimiter", delimiter)
        return Step(regex.escape(str(delimiter), special_only=True), "removed")
    raise refusal(path, "pre_tokenizer", step)


def _read_split(split: Mapping[str, Any], path: PathLike) -> Step:
    pattern = split.get("pattern")
    named = pattern if isinstance(pattern, dict) and len(pattern) == 1 else {}
    text = named.get("Regex", named.get("String"))
    refuse_unless(isinstance(text, str) and bool(text), path, "Split.pattern", pattern)
    text = str(text)
    behavior = _behavior(split, path)
    invert = flag(split, "invert", "Split", path, default=False)
    if "String" in named:
        return Step(regex.escape(text, special_only=True), behavior, invert)
    name = scheme_name_of(text)
    if name is not None:
        return Step(get_scheme(name).pattern, behavior, invert)
    translated, difference = from_huggingface_pattern(text)
    refuse_unless(difference is None, path, f"Split.pattern ({difference})", text)
    return Step(translated, behavior, invert)


def _behavior(step: Mapping[str, Any], path: PathLike, default: str | None = None) -> str:
    behavior = step.get("behavior", default)
    is_known = isinstance(behavior, str) and behavior in _BEHAVIORS
    refuse_unless(is_known, path, f"{step['type']}.behavior", behavior)
    return _BEHAVIORS[str(behavior)]
