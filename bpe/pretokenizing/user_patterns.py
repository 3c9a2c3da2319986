r"""Patterns of users and of tokenizer files: refused, compiled and searched within bounds.

A pattern may come with a stranger's tokenizer, and some patterns never end on some texts:
`(?:a|a)+b` tries 2^n ways through n letters. So a search has a limit of time that grows with the
text. Beyond it the run ends with a `SettingsError`, whatever the policy for bad records is: a
document that counted as bad only on a slow machine would change the output.
"""

from __future__ import annotations

import re
from functools import lru_cache
from time import process_time

import regex

from bpe.errors import SettingsError

__all__ = ["MOST_CHARACTERS", "SearchTime", "check_pattern", "find_spans", "split_by_pattern"]

MOST_CHARACTERS = 10_000
"""Longest pattern; published ones have a few hundred characters."""

_SECONDS = 30.0
_CHARACTERS_PER_SECOND = 10_000  # a hundredth of what an ordinary pattern does
_SHOWN_CHARACTERS = 200

_MOST_REPEATED = 100_000  # a million take 0.4 GB
# Escapes, classes, counts, and single characters.
_PARTS = re.compile(
    r"\\(?:[pPNx]\{[^}]*\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?P<count>\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\})|.",
    re.DOTALL,
)

# A group that calls itself or another one. The memory of such a search has no bound.
_GROUP_CALL = re.compile(
    r"(?<!\\)(?:\\\\)*\(\?(?:R|[0-9&]|[+-](?:\s|#[^\n]*\n)*[0-9]|P[^<=)]*>)", re.DOTALL
)


def check_pattern(pattern: str) -> None:
    """Raise `SettingsError` for a pattern that cannot be compiled or searched within bounds."""
    if len(pattern) > MOST_CHARACTERS:
        raise SettingsError(
            f"{_named(pattern)} has {len(pattern):,} characters, and at most "
            f"{MOST_CHARACTERS:,} are allowed; write a shorter one"
        )
    call = _GROUP_CALL.search(pattern)
    if call is not None:
        raise SettingsError(
            f"{_named(pattern)} calls a group by {call.group().lstrip(chr(92))!r}: "
            "recursion is not supported, since its memory has no bound; write the pattern without "
            r"it (a literal parenthesis is written \()"
        )
    size = _repeated_size(pattern)
    if size > _MOST_REPEATED:
        raise SettingsError(
            f"{_named(pattern)}: written out, its counted repeats {{m,n}} have {size:,} parts, and "
            f"at most {_MOST_REPEATED:,} are allowed; use * or +, or smaller counts"
        )
    try:
        _compile(pattern)
    except (regex.error, RecursionError, MemoryError, OverflowError, ValueError) as error:
        raise SettingsError(
            f"{_named(pattern)}: the pattern does not compile: "
            f"{str(error) or type(error).__name__}; it is read by the Python package `regex`"
        ) from None


def _repeated_size(pattern: str) -> int:
    """Parts of a pattern with every `{m,n}` written out: what compiling takes memory for."""
    totals, last = [0], 0
    for match in _PARTS.finditer(pattern):
        part = match.group()
        if match.lastgroup == "count":
            digits = (match["most"] or match["least"] or "1")[:9]
            grown = last * max(int(digits), 1)
            totals[-1] += grown - last
            last = grown
        elif part == "(":
            totals.append(0)
        elif part == ")" and len(totals) > 1:
            last = totals.pop()
            totals[-1] += last
        else:
            last = 1
            totals[-1] += 1
    return sum(totals)


class SearchTime:
    """How long the searches of one document may take together: `search_seconds` of it.

    characters: of the document. named: what an error calls the pre-tokenizer, if not by the pattern
    that is searched for.
    """

    def __init__(self, characters: int, named: str = "") -> None:
        self.characters = characters
        self.named = named
        self._end = process_time() + search_seconds(characters)

    @property
    def left(self) -> float:
        """Seconds of the process's processor time that are left; never 0, which has no meaning."""
        return max(self._end - process_time(), 1e-3)


def split_by_pattern(pattern: str, text: str) -> list[str]:
    """Matches of a checked pattern, and the ranges between them; an empty match cuts nothing.

    Raises `SettingsError` as `find_spans` does.
    """
    pieces: list[str] = []
    position = 0
    for start, end in find_spans(pattern, text, SearchTime(len(text))):
        if start == end:
            continue
        if start > position:
            pieces.append(text[position:start])
        pieces.append(text[start:end])
        position = end
    if position < len(text):
        pieces.append(text[position:])
    return pieces


def find_spans(pattern: str, text: str, time: SearchTime) -> list[tuple[int, int]]:
    """Start and end of each match of a checked pattern, in order; some may be empty.

    time: of the document that the text is a part of.

    Raises `SettingsError` if the search takes longer than that or more memory than there is, or
    if matches do not follow each other.
    """
    try:
        found = _compile(pattern).finditer(text, timeout=time.left)
        spans = [match.span() for match in found]
    except TimeoutError:
        raise SettingsError(
            f"{time.named or _named(pattern)}: a search of {time.characters:,} characters took "
            f"more than {search_seconds(time.characters):,.0f} s of processor time; the pattern "
            "has too many ways to match this text: write it without nested or overlapping "
            "repetitions"
        ) from None
    except MemoryError:
        raise SettingsError(
            f"{time.named or _named(pattern)}: a search of {time.characters:,} characters took "
            "more memory than there is; write the pattern without nested repetitions, or divide "
            "the text into shorter documents"
        ) from None
    position = 0
    for start, end in spans:
        if not position <= start <= end:
            raise SettingsError(
                f"{_named(pattern)} finds matches that do not follow each "
                r"other from left to right; write it without (?r), and without \K in a look-ahead"
            )
        position = end
    return spans


def search_seconds(characters: int) -> float:
    """Limit of one document's search, in seconds of the process's processor time.

    All threads of the process count, so it is long enough for a hundred of them.
    """
    return _SECONDS + characters / _CHARACTERS_PER_SECOND


@lru_cache(maxsize=64)
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def _named(pattern: str) -> str:
    spec = f"regex:{pattern}"
    cut = "..." if len(spec) > _SHOWN_CHARACTERS else ""
    return f"pre-tokenizer {spec[:_SHOWN_CHARACTERS]!r}{cut}"
