r"""Pre-tokenization schemes: how a document is cut into pre-tokens, which no merge crosses.

A scheme is a regular expression; matches, and the stretches between matches, are the pre-tokens.
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

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import regex

from bpe.errors import SettingsError
from bpe.pretokenizing.unicode_classes import OTHER, UNICODE_VERSION, ClassTranslation
from bpe.pretokenizing.user_patterns import check_pattern, split_by_pattern

__all__ = ["SCHEME_NAMES", "Scheme", "get_scheme"]

SCHEME_NAMES = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "superbpe", "none")
"""Names that `get_scheme` knows besides `regex:PATTERN`; `none` leaves documents uncut (raw), and
`superbpe`, the scheme of a second stage of training, leaves all the words of a line together."""

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
_REGEX_PREFIX = "regex:"
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
        name: as in settings, such as `gpt2` or `regex:PATTERN`.
        pattern: regular expression in the syntax of the `regex` module; empty for `none`.
        unicode_version: version of the character classes in the pattern, such as `16.0.0`; for
            `regex:PATTERN`, the version of the `regex` module.
    """

    name: str
    pattern: str
    unicode_version: str

    @property
    def is_named(self) -> bool:
        """Whether this is one of `SCHEME_NAMES`, and not a pattern of the user's."""
        return not self.name.startswith(_REGEX_PREFIX)

    def split(self, data: bytes) -> list[bytes]:
        """Pre-tokens of one document, in order; their concatenation is `data`, any bytes.

        Raises `SettingsError` for a pattern of the user's whose search has no end.
        """
        pieces = self.split_text(data.decode("utf-8", "surrogateescape"))
        return [piece.encode("utf-8", "surrogateescape") for piece in pieces]

    def split_text(self, text: str) -> list[str]:
        """Pre-tokens of a document decoded as UTF-8 with `surrogateescape`, in order."""
        if not text:
            return []
        if not self.pattern:
            return [text]
        if not self.is_named:
            return split_by_pattern(self.pattern, text)
        compiled = _compile(self.pattern)
        # Named patterns match every character, so that the matches are the pre-tokens.
        if text.isascii():
            found: list[str] = compiled.findall(text)
            return found
        ends = accumulate(map(len, compiled.findall(text.translate(_TO_REPRESENTATIVES))))
        start = 0
        pieces: list[str] = []
        for end in ends:
            pieces.append(text[start:end])
            start = end
        return pieces


@lru_cache(maxsize=len(_PATTERNS))
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def get_scheme(spec: str) -> Scheme:
    """Scheme of a name in `SCHEME_NAMES`, or of `regex:PATTERN` (syntax of the `regex` module).

    Raises:
        SettingsError: the name is unknown, or `bpe.pretokenizing.user_patterns` does not accept
            the pattern.
    """
    if spec == "none":
        return Scheme(spec, "", UNICODE_VERSION)
    if spec in _PATTERNS:
        return Scheme(spec, _PATTERNS[spec], UNICODE_VERSION)
    if not spec.startswith(_REGEX_PREFIX):
        raise SettingsError(
            f"unknown pre-tokenizer {spec!r}: use one of {', '.join(SCHEME_NAMES)}, "
            "or write regex:PATTERN for a pattern of your own"
        )
    pattern = spec[len(_REGEX_PREFIX) :]
    if not pattern:
        raise SettingsError("pre-tokenizer 'regex:' has no pattern: write regex:PATTERN")
    check_pattern(pattern)
    return Scheme(spec, pattern, f"regex {regex.__version__}")
