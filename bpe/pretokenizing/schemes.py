r"""Pre-tokenization schemes: how a document is cut into pre-tokens, which no merge crosses.

A scheme is a regular expression; matches, and the ranges between matches, are the pre-tokens.
Or it is a chain of steps, each of which cuts what the one before has left (`chains`).
Bytes that are not valid UTF-8 count as characters of class "other" (neither letter, mark, number
nor white space), one per byte, so that any bytes have pre-tokens and their concatenation is the
document again:

    >>> get_scheme("gpt2").split(b"\xffit's 1234")
    [b'\xff', b'it', b"'s", b' 1234']
    >>> get_scheme("gpt3")
    Traceback (most recent call last):
    ...
    bpe.errors.SettingsError: unknown pre-tokenizer 'gpt3': use one of gpt2, cl100k, o200k, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

import regex

from bpe.errors import SettingsError
from bpe.pretokenizing.chains import Step, parse_steps, render_steps, split_by_steps
from bpe.pretokenizing.compiled_chain import CompiledChain, compile_chain
from bpe.pretokenizing.unicode_classes import OTHER, UNICODE_VERSION, ClassTranslation
from bpe.pretokenizing.user_patterns import check_pattern, split_by_pattern

__all__ = ["DIGITS", "SCHEME_NAMES", "Scheme", "chain_scheme", "get_scheme"]

_HAND_WRITTEN = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "superbpe")
SCHEME_NAMES = (
    *_HAND_WRITTEN,
    *("deepseek-v3", "qwen3.5", "tekken", "starcoder", "bloom", "kimi", "none"),
)
"""Names that `get_scheme` knows besides `regex:PATTERN` and `chain:STEPS`; `none` leaves
documents uncut (raw), and `superbpe`, the scheme of a second stage of training, leaves all the
words of a line together."""

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"

# What SuperBPE's second stage keeps apart: digits, marks that stand together, and spaces but the
# last before a word. Everything between is one pre-token, as far as the line goes.
_SUPERBPE_APART = (r"\p{N}", r" ?[^\s\p{L}\p{N}]{2}", r" +(?!\S)")

_PATTERNS = {
    "gpt2": (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "llama3": (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "qwen2": (
        rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "whitespace": r"\s+|\S+",
    "superbpe": (
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r/]*\n?| +(?!\S)"
        rf"|(?:\p{{L}}++|(?!{'|'.join(_SUPERBPE_APART)})[^\n])++\n?|\n"
    ),
}
_WHITE_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
_QWEN = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_WHITE_SPACE}"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_WHITE_SPACE}"
)
# A class in a class is of the later syntax of the module, (?V1).
_UPPER_NOT_HAN, _LOWER_NOT_HAN = (rf"{part[:-1]}&&[^\p{{Han}}]]" for part in (_UPPER, _LOWER))
_KIMI = (
    r"(?V1)[\p{Han}]+"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER_NOT_HAN}*{_LOWER_NOT_HAN}+{_CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER_NOT_HAN}+{_LOWER_NOT_HAN}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_WHITE_SPACE}"
)
_COMPILED: dict[str, tuple[str, ...]] = {
    "deepseek-v3": (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _DEEPSEEK),
    "qwen3.5": (_QWEN,),
    "tekken": (_TEKKEN,),
    "starcoder": (r"\p{N}", _PATTERNS["gpt2"]),
    "bloom": ("(?V1) ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",),
    "kimi": (_KIMI,),
}
"""Names of schemes that are compiled, and the patterns of their steps."""

_REGEX_PREFIX, _CHAIN_PREFIX, _DIGITS_PREFIX = "regex:", "chain:", "digits:"
DIGITS = {
    "single": r"\p{N}",
    "left3": r"\p{N}{1,3}",
    "right3": r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
}
"""Ways to set numbers apart before another scheme, and what each takes for one piece: every digit,
or three of them, counted from the left or from the right of the number."""

# Pre-tokenizers of other recipes, as patterns. BERT's leaves white space out, which is a pre-token
# of its own here: the trainer passes over it.
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
_OF_RECIPES = {
    "bert": rf"regex:\p{{White_Space}}+|[{_PUNCTUATION}]|[^\p{{White_Space}}{_PUNCTUATION}]+",
    "spaces": r"regex:[ \r\n]+|[^ \r\n]+",
}

_OF_REGEX = f"regex {regex.__version__}"
_NAMES: dict[tuple[str, ...], str] = {(pattern,): name for name, pattern in _PATTERNS.items()}
_NAMES |= {patterns: name for name, patterns in _COMPILED.items()}
# These know our classes of characters.
_OWN_PATTERNS = frozenset((*_PATTERNS.values(), *DIGITS.values()))
_SHOWN_CHARACTERS = 200
_LONG_S = 0x17F  # matches `s` where case is ignored, so no other letter can stand for it

# Characters that every version of the `regex` module puts into the class they stand for, and that
# no pattern above names.
_TO_REPRESENTATIVES = ClassTranslation(
    {
        "Lu": "A",
        "Ll": "a",
        "Lt": "\u01c5",
        "Lm": "\u02b0",
        "Lo": "\u00aa",
        "M": "\u0300",
        "N": "0",
        "S": "\t",
        OTHER: "!",
    },
    {code_point: chr(code_point) for code_point in (*range(0x80), _LONG_S)},
)


@dataclass(frozen=True)
class Scheme:
    """A way to cut documents into pre-tokens; `get_scheme` makes one.

    Attributes:
        name: as in settings, such as `gpt2`, `regex:PATTERN` or `chain:STEPS`.
        pattern: regular expression in the syntax of the `regex` module; empty for `none` and for
            a chain of several steps.
        unicode_version: version of the character classes in the patterns, such as `16.0.0`; for
            patterns of the user's, the version of the `regex` module.
        steps: what cuts a text, one after another; none for `none`, one for a pattern.
    """

    name: str
    pattern: str
    unicode_version: str
    steps: tuple[Step, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether this is one of `SCHEME_NAMES`, and not a pattern of the user's."""
        return not self.name.startswith((_REGEX_PREFIX, _CHAIN_PREFIX))

    @property
    def is_hand_written(self) -> bool:
        """Whether the native core has a scan of its own for this scheme."""
        return self.name in _HAND_WRITTEN

    @property
    def has_open_pretokens(self) -> bool:
        """Whether a pre-token can be encoded while its end is not in sight."""
        return self.is_hand_written or self.name == "none"

    @property
    def is_native(self) -> bool:
        """Whether the native core finds the pre-tokens, and not the `regex` module."""
        return self.has_open_pretokens or bool(self.compiled and self.compiled.automaton)

    @property
    def compiled(self) -> CompiledChain | None:
        """The scheme for an automaton of the native core; None for one that is not compiled.

        `none` and those that the core has scans of its own for are not.
        """
        return None if self.name in (*_HAND_WRITTEN, "none") else compile_chain(self.steps)

    @property
    def drops_text(self) -> bool:
        """Whether text may be in no pre-token."""
        return any(step.behavior == "removed" for step in self.steps)

    def split(self, data: bytes) -> list[bytes]:
        """Pre-tokens of one document of any bytes, in order.

        Their concatenation is `data`, unless the scheme drops text.
        Raises `SettingsError` for a pattern of the user's whose search has no end.
        """
        pieces = self.split_text(data.decode("utf-8", "surrogateescape"))
        return [piece.encode("utf-8", "surrogateescape") for piece in pieces]

    def split_text(self, text: str) -> list[str]:
        """Pre-tokens of a document decoded as UTF-8 with `surrogateescape`, in order."""
        if not text:
            return []
        if not self.steps:
            return [text]
        compiled_chain = self.compiled
        if compiled_chain is not None:
            letters = text.translate(compiled_chain.atoms)
            named = f"pre-tokenizer {self.name[:_SHOWN_CHARACTERS]!r}"
            return _cut_alike(text, split_by_steps(compiled_chain.over_letters, letters, named))
        if self.name.startswith(_REGEX_PREFIX):
            return split_by_pattern(self.pattern, text)
        if not self.is_named:
            return self._split_by_steps(text)
        compiled = _compile(self.pattern)
        # Named patterns match every character, so that the matches are the pre-tokens.
        if text.isascii():
            found: list[str] = compiled.findall(text)
            return found
        return _cut_alike(text, compiled.findall(text.translate(_TO_REPRESENTATIVES)))

    def _split_by_steps(self, text: str) -> list[str]:
        if not _has_own_classes(self.steps):
            return split_by_steps(self.steps, text)
        return _cut_alike(text, split_by_steps(self.steps, text.translate(_TO_REPRESENTATIVES)))


def _cut_alike(text: str, pieces: Sequence[str]) -> list[str]:
    """Pieces of a text as long as those of its translation."""
    ends = list(accumulate(map(len, pieces), initial=0))
    return [text[start:end] for start, end in pairwise(ends)]


def _has_own_classes(steps: Sequence[Step]) -> bool:
    """Whether all patterns of a chain are known to match representatives as what they stand for."""
    return all(step.pattern in _OWN_PATTERNS and step.behavior != "removed" for step in steps)


@lru_cache(maxsize=len(_PATTERNS))
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def get_scheme(spec: str) -> Scheme:
    """Scheme of a name in `SCHEME_NAMES`, of `regex:PATTERN`, or of `chain:STEPS`.

    `bert` and `spaces` stand for patterns: those of the recipes `wordpiece` and `sennrich`.
    `digits:HOW:SCHEME` is a scheme with a step before it that sets numbers apart (`DIGITS`).
    Patterns have the syntax of the `regex` module. A chain that is the same as a name becomes that.

    Raises:
        SettingsError: the name is unknown, or `bpe.pretokenizing.user_patterns` does not accept
            a pattern.
    """
    if spec == "none":
        return Scheme(spec, "", UNICODE_VERSION)
    if spec in _PATTERNS:
        pattern = _PATTERNS[spec]
        return Scheme(spec, pattern, UNICODE_VERSION, (Step(pattern, "isolated"),))
    if spec in _COMPILED:
        patterns = _COMPILED[spec]
        steps = tuple(Step(pattern, "isolated") for pattern in patterns)
        pattern = patterns[0] if len(patterns) == 1 else ""
        return Scheme(spec, pattern, UNICODE_VERSION, steps)
    if spec.startswith(_CHAIN_PREFIX):
        return chain_scheme(parse_steps(spec[len(_CHAIN_PREFIX) :]))
    if spec.startswith(_DIGITS_PREFIX):
        return _digits_scheme(spec)
    if spec in _OF_RECIPES:
        return get_scheme(_OF_RECIPES[spec])
    if not spec.startswith(_REGEX_PREFIX):
        raise SettingsError(
            f"unknown pre-tokenizer {spec!r}: use one of {', '.join(SCHEME_NAMES)}, "
            "or write regex:PATTERN for a pattern of your own"
        )
    pattern = spec[len(_REGEX_PREFIX) :]
    if not pattern:
        raise SettingsError("pre-tokenizer 'regex:' has no pattern: write regex:PATTERN")
    check_pattern(pattern)
    return Scheme(spec, pattern, *_with_version((Step(pattern, "isolated"),)))


def chain_scheme(steps: Sequence[Step]) -> Scheme:
    """Scheme of steps whose patterns are checked: a chain, or the name for the same."""
    steps = tuple(map(_plain_step, steps))
    if not steps:
        return get_scheme("none")
    name = _NAMES.get(tuple(step.pattern for step in steps))
    if name is not None and all(step.behavior == "isolated" for step in steps):
        return get_scheme(name)
    return Scheme(_CHAIN_PREFIX + render_steps(steps), "", *_with_version(steps))


def _with_version(steps: tuple[Step, ...]) -> tuple[str, tuple[Step, ...]]:
    """Version of the classes of characters in a user's patterns, and the steps."""
    is_own = compile_chain(steps) is not None or _has_own_classes(steps)
    return UNICODE_VERSION if is_own else _OF_REGEX, steps


def _digits_scheme(spec: str) -> Scheme:
    """Scheme of `digits:HOW:SCHEME`."""
    how, _, after = spec[len(_DIGITS_PREFIX) :].partition(":")
    if how not in DIGITS or after.startswith(_DIGITS_PREFIX):
        raise SettingsError(
            f"pre-tokenizer {spec[:_SHOWN_CHARACTERS]!r}: numbers are set apart by one of "
            f"{', '.join(DIGITS)}, once; write digits:single:SCHEME, say"
        )
    steps = (Step(DIGITS[how], "isolated"), *get_scheme(after).steps)
    return get_scheme(_CHAIN_PREFIX + render_steps(steps))


def _plain_step(step: Step) -> Step:
    """The same step, isolated where it does the same."""
    # Named patterns match every character, so that dropping the rest drops nothing.
    drops_nothing = (
        step.pattern in _PATTERNS.values() and step.behavior == "removed" and step.invert
    )
    # Matches and what is between them stand alone, whichever is called the match.
    is_plain = drops_nothing or step.behavior == "isolated"
    return Step(step.pattern, "isolated") if is_plain else step
