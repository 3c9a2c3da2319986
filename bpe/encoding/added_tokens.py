"""Added tokens: texts with an id of their own beside what merges make, and how they are found.

The flags are those of Hugging Face's tokenizer.json and mean what they mean there. `AddedSearch` is
the specification of finding them; `bpe/native/encode/added_tokens.h` does the same, fast. Texts are
bytes: a byte that is no valid UTF-8 is neither white space nor part of a word.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bpe.encoding.printable_bytes import from_printable
from bpe.errors import InputError, VocabularyError
from bpe.pretokenizing.unicode_classes import class_of
from bpe.pretokenizing.unicode_tables import WORD_EXCEPTIONS

__all__ = [
    "AddedSearch",
    "AddedToken",
    "Find",
    "check_added_tokens",
    "check_text",
    "special_added_tokens",
]

LONGEST_TEXT = 4096
"""Bytes of an added token at most: readers of a part of a document look so far around a place."""

Segment = tuple[int, int, int | None]
"""Start and end in a text, bytes, and the id of an added token; None for ordinary text."""


class Find(enum.IntFlag):
    """What is looked for in a text: nothing, or the added tokens.

    SPECIALS: special ones count; if not, they are passed over as text. SECOND: the text is a
    segment that the first pass left, in its normal form. FIRST: only the first pass.
    """

    NOTHING = 0
    ADDED = 1
    SPECIALS = 2
    SECOND = 4
    FIRST = 8


@dataclass(frozen=True)
class AddedToken:
    """A text that is one token wherever it is found.

    text: not empty, and writable as UTF-8.
    id: may be that of an ordinary token that vocab.json spells alike; then the two are one entry.
    special: what its text means is for the policy to say; one that is not special is part of the
        vocabulary, and found in every text.
    normalized: looked for in its normal form in the normalized text, after all others were found.
    lstrip, rstrip: takes the white space before it, or after it, into the token.
    single_word: only where no word character is next to it.
    """

    text: str
    id: int
    special: bool = True
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is special and has no other flag."""
        return self == AddedToken(self.text, self.id)

    @property
    def looks_around(self) -> bool:
        """Whether what it takes depends on the text next to it."""
        return self.lstrip or self.rstrip or self.single_word

    @property
    def native_row(self) -> tuple[bytes, int, bool, bool, bool, bool, bool]:
        """As the native core takes it."""
        flags = (self.special, self.normalized, self.lstrip, self.rstrip, self.single_word)
        return self.text.encode(), self.id, *flags

    def to_json(self) -> dict[str, Any]:
        """As JSON values, all fields."""
        return dataclasses.asdict(self)


class AddedSearch:
    """Finds added tokens: the longest at the leftmost place, again and again.

    Those that are looked for in the normal form come second, between what the first pass found.

    >>> search = AddedSearch([AddedToken("<a>", 7), AddedToken("a>", 8, special=False)])
    >>> search.cut(b"<a>a>", Find.ADDED)
    [(0, 3, None), (3, 5, 8)]
    >>> search.cut(b"<a>a>", Find.ADDED | Find.SPECIALS)
    [(0, 3, 7), (3, 5, 8)]
    """

    def __init__(self, tokens: Sequence[AddedToken]) -> None:
        self._passes = [
            {t.text.encode(): t for t in reversed(tokens) if t.normalized == is_second}
            for is_second in (False, True)
        ]
        self._patterns = [_any_of(texts) for texts in self._passes]
        self.longest = max((len(token.text.encode()) for token in tokens), default=0)

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Segments of a text, in order."""
        segments: list[Segment] = [(0, len(text), None)] if text else []
        for is_second, other in ((False, Find.SECOND), (True, Find.FIRST)):
            if other not in find:
                segments = [
                    found
                    for start, end, token_id in segments
                    for found in (
                        self._pass(text[start:end], start, find, is_second=is_second)
                        if token_id is None
                        else [(start, end, token_id)]
                    )
                ]
        return segments

    def last_border(self, text: bytes, find: Find, at_most: int | None = None) -> int:
        """Last place of a text that no match spans, whatever follows the text; 0 if there is none.

        text: begins a document, or after a place that no match spans. What is found in it is then
        what is found before the border, and after it. at_most: a place that is known to be early
        enough; None for one that leaves room for a token of each pass.
        """
        border = max(0, len(text) - 3 * self.longest) if at_most is None else at_most
        spans = [_reach(*match, find) for match in self.matches(text, is_second=False)]
        for start, end, token_id in self.cut(text, find | Find.FIRST):
            if token_id is None:
                for first, last, token in self.matches(text[start:end], is_second=True):
                    spans.append(_reach(start + first, start + last, token, find))
        for start, end in sorted(spans, reverse=True):
            if start < border < end:
                border = start
        return border

    def matches(self, text: bytes, *, is_second: bool) -> Iterator[tuple[int, int, AddedToken]]:
        """What one pass finds, whether it counts or not."""
        pattern, tokens = self._patterns[is_second], self._passes[is_second]
        if pattern is not None:
            for match in pattern.finditer(text):
                yield (*match.span(), tokens[match.group()])

    def _pass(self, text: bytes, base: int, find: Find, *, is_second: bool) -> Iterator[Segment]:
        done = 0
        for start, end, token in self.matches(text, is_second=is_second):
            if token.special and Find.SPECIALS not in find:
                continue
            if token.single_word and _touches_word(text, start, end):
                continue
            # White space that the token before took is gone.
            begin = max(start - _spaces_at_end(text[done:start]), done) if token.lstrip else start
            if done < begin:
                yield base + done, base + begin, None
            stop = _SPACES.match(text, end).end() if token.rstrip else end  # type: ignore[union-attr]
            # Nothing is left of white space that the token before took.
            if begin < stop:
                yield base + begin, base + stop, token.id
            done = max(begin, stop)
        if done != len(text):
            yield base + done, base + len(text), None


def _reach(start: int, end: int, token: AddedToken, find: Find) -> tuple[int, int]:
    """The bytes that a border must not divide, so that a match stays what it is."""
    # A word character next to a special token of a single word decides whether it counts.
    around = int(token.special and token.single_word and Find.SPECIALS in find)
    return start - around, end + around


def _any_of(texts: Iterable[bytes]) -> re.Pattern[bytes] | None:
    # Alternatives are tried in order, so the longest comes first.
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile(b"|".join(map(re.escape, longest_first))) if longest_first else None


def _touches_word(text: bytes, start: int, end: int) -> bool:
    before = text[max(start - 4, 0) : start].decode("utf-8", "surrogateescape")
    after = text[end : end + 4].decode("utf-8", "surrogateescape")
    return any(map(_is_word, before[-1:] + after[:1]))


def _spaces_at_end(text: bytes) -> int:
    count = 0
    for character in reversed(text.decode("utf-8", "surrogateescape")):
        if class_of(ord(character)) != "S":
            break
        count += len(character.encode())
    return count


@lru_cache(maxsize=4096)
def _is_word(character: str) -> bool:
    r"""Whether `\w` of the library that Hugging Face's uses matches."""
    code_point = ord(character)
    span = bisect_right(_EXCEPTION_STARTS, code_point) - 1
    is_exception = span >= 0 and code_point <= _EXCEPTION_ENDS[span]
    return (class_of(code_point)[0] in "LMN") != is_exception


_SPACES = re.compile(
    b"(?:%b)*"
    % b"|".join(
        re.escape(chr(code_point).encode())
        for code_point in range(0x3001)
        if class_of(code_point) == "S"
    )
)

_SPANS = [span.partition("-") for span in WORD_EXCEPTIONS.split()]
_EXCEPTION_STARTS = [int(first, 16) for first, _, _ in _SPANS]
_EXCEPTION_ENDS = [int(last or first, 16) for first, _, last in _SPANS]


def special_added_tokens(ids: Mapping[str, int]) -> tuple[AddedToken, ...]:
    """Special tokens without further flags, by id; ids: text to id."""
    return tuple(AddedToken(text, token_id) for text, token_id in ids.items())


def check_added_tokens(
    added: Iterable[AddedToken],
    tokens: Mapping[int, bytes],
    spell: Callable[[str], bytes | None] = from_printable,
) -> None:
    """Raise `VocabularyError` for added tokens that contradict each other or ordinary tokens.

    spell: gives the bytes of the ordinary token that a vocabulary's file would spell like a text.
    """
    by_text: dict[str, int] = {}
    by_id: dict[int, str] = {}
    for token in added:
        check_text(token.text)
        if token.text in by_text:
            raise VocabularyError(f"added token {token.text!r} is there twice: keep one of them")
        if token.id in by_id:
            raise VocabularyError(
                f"special tokens {by_id[token.id]!r} and {token.text!r} both have id {token.id}: "
                "give each an id of its own"
            )
        by_text[token.text], by_id[token.id] = token.id, token.text
    spelled = {text: spell(text) for text in by_text}
    for text, token_id in by_text.items():
        if token_id in tokens and tokens[token_id] != spelled[text]:
            raise VocabularyError(
                f"special token {text!r} has id {token_id}, which is token {tokens[token_id]!r}: "
                "give it an id that is not in use"
            )
    # vocab.json would have one entry for the two.
    texts = {data: text for text, data in spelled.items() if data is not None}
    for token_id in [i for i, data in tokens.items() if data in texts]:
        text = texts[tokens[token_id]]
        if by_text[text] != token_id:
            raise VocabularyError(
                f"token {token_id} ({tokens[token_id]!r}) spells the special token {text!r}, which "
                f"has id {by_text[text]}: rename the special token, or train with it so that no "
                "merge makes it"
            )


def check_text(text: object) -> None:
    """Raise `InputError` or `VocabularyError` for a text that no added token can have."""
    if not isinstance(text, str):
        raise InputError(
            f"special token {text!r} is of type {type(text).__name__}: write it as str"
        )
    if not text:
        raise VocabularyError("a special token is empty: it would occur everywhere")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise VocabularyError(
            f"special token {text!r} holds a lone surrogate at index {error.start}: "
            "a special token must be text that UTF-8 can write"
        ) from error
    if len(text.encode()) > LONGEST_TEXT:
        raise VocabularyError(
            f"added token {text[:40]!r}... has {len(text.encode())} bytes, and {LONGEST_TEXT} are "
            "the most: shorten it, or leave it out"
        )
