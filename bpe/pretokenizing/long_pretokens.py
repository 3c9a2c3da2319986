r"""Long pre-tokens, read part by part: whether one goes on, and what of it may be forgotten.

How a pre-token of a named scheme goes on depends on what kind of run it is (letters, digits, white
space, punctuation and the line ends after it) and on little else of what it holds. So a few
characters can stand in for any beginning of it: scanned with what follows, they end where the
whole would.

Two questions have no answer within bounds, and are handed on as doubt. `\s*[\r\n]+` goes up to the
last line end of a run of white space, so that after one line end all depends on whether there is
another. And a word of o200k that is capitals after a letter without case ends before the
capitals, unless a small letter follows them.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from bpe.pretokenizing.schemes import Scheme
from bpe.pretokenizing.unicode_classes import OTHER, ClassTranslation

__all__ = ["CASE_CLASSES", "LongPiece", "Outlook"]

CASE_CLASSES = ClassTranslation(
    {"Lu": "U", "Lt": "U", "Ll": "V", "Lm": "C", "Lo": "C", "M": "M", "N": "N", "S": "S"}
    | {OTHER: "P"},
    {ord("\r"): "R", ord("\n"): "R"},
)
"""One letter a class: U and V are capitals and small letters, C letters without case, M marks, R is
CR and LF, S other white space, P what is left."""

_LETTERS = "UVC"
_LINE_ENDS = frozenset({"cl100k", "o200k", "llama3", "qwen2"})  # schemes with `\s*[\r\n]`
# No pattern looks further ahead than this many characters, but over runs that it takes itself.
_LOOK_AHEAD = 3
_CASELESS = "\u4e2d"

_WORD, _DIGITS, _WHITE, _MARKS, _LINE = "word", "digits", "white space", "punctuation", "line"


@dataclass(frozen=True)
class Outlook:
    """What is known of the pre-token at the front of some bytes; places in bytes.

    end: where it ends, whatever follows; None if that is open.
    sure: where it ends at the earliest.
    in_doubt: whether it ends either at `sure` or somewhere after all of the bytes.
    """

    end: int | None
    sure: int
    in_doubt: bool


class LongPiece:
    """The state of a scan inside one pre-token of a named scheme (not `none`)."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._name = scheme.name
        self._kind = ""
        self._stand_in = b""

    @property
    def is_open(self) -> bool:
        """Whether the front of what comes next belongs to a pre-token that began before it."""
        return bool(self._kind)

    def close(self) -> None:
        """Begin anew: what comes next begins with a pre-token."""
        self._kind, self._stand_in = "", b""

    def look(self, data: bytes) -> Outlook:
        """How far the pre-token goes that `data` begins with, or goes on with; more may follow."""
        text = codecs.utf_8_decode(self._stand_in + data, "surrogateescape", False)[0]
        if len(text) < _LOOK_AHEAD:
            return Outlook(None, 0, in_doubt=False)
        classes = text.translate(CASE_CLASSES)
        kind = self._kind or self._find_kind(text, classes)
        end = len(self._scheme.split_text(text)[0])
        sure, in_doubt, ended = end, False, end + _LOOK_AHEAD <= len(text)
        run = text.strip(" ") if self._name == "superbpe" else classes.strip("SR")
        if kind == _WHITE and not run:
            last = classes.rfind("R") if self._name in _LINE_ENDS else -1
            sure = len(text) - 1 if last < 0 else last + 1
            in_doubt, ended = last >= 0, False
        elif self._ends_before_capitals(kind, classes, end):
            in_doubt, ended = True, False
        elif kind == _LINE and end == len(text):
            # A mark or a space at the end may be the first of two, which lines leave out.
            sure -= text[:end].endswith(" ") or classes[end - 1] in "PM"
            sure -= text[:sure].endswith(" ")
        size = max(0, _size(text[:sure]) - len(self._stand_in))
        return Outlook(size if ended else None, size, in_doubt)

    def first_end(self, data: bytes) -> int:
        """Where the pre-token ends if the document ends with `data`; bytes."""
        text = (self._stand_in + data).decode("utf-8", "surrogateescape")
        return _size(self._scheme.split_text(text)[0]) - len(self._stand_in)

    def pass_over(self, data: bytes, count: int) -> None:
        """Forget `count` bytes at the front of `data`, which surely go on; they may cut characters.

        At least 16 bytes where the pre-token begins with `data`.
        """
        gone = self._stand_in + data[:count]
        text, used = codecs.utf_8_decode(gone, "surrogateescape", False)
        classes = text.translate(CASE_CLASSES)
        if not self._kind:
            self._kind = self._find_kind(text, classes)
        # The bytes of a character that goes on are kept.
        self._stand_in = self._represent(classes).encode() + gone[used:]

    def decide(self, data: bytes) -> None:
        """Forget `data` up to a doubtful end, where it shall not matter whether it is one."""
        text = codecs.utf_8_decode(self._stand_in + data, "surrogateescape", False)[0]
        self._kind = self._kind or self._find_kind(text, text.translate(CASE_CLASSES))
        self._stand_in = b"A" if self._kind == _WORD else b"\t\t"

    def _find_kind(self, text: str, classes: str) -> str:
        first, second = classes[0], classes[1]
        if self._name == "whitespace":
            return _WHITE if first in "SR" else _WORD
        if self._name == "superbpe":
            if text.startswith("  "):
                return _WHITE
            body = classes[1:] if text.startswith(" ") else classes
            return _LINE if body[:2].strip("PM") else _MARKS
        if second in _LETTERS or (second == "M" and self._name == "o200k"):
            return _WORD
        if second == "N":
            return _DIGITS
        return _WHITE if first in "SR" and second in "SR" else _MARKS

    def _ends_before_capitals(self, kind: str, classes: str, end: int) -> bool:
        """Whether nothing but capitals follow a word of o200k that may yet go on with them."""
        if self._name != "o200k" or kind != _WORD or end == len(classes):
            return False
        word, rest = classes[:end], classes[end:]
        return "V" not in word and word[-1] in "CM" and not rest.strip("U")

    def _represent(self, classes: str) -> str:
        """A few characters that end as a pre-token of these classes does, whatever follows."""
        if self._kind == _DIGITS:
            return "1"
        if self._kind == _WHITE:
            return "  " if self._name == "superbpe" else "\t\t"
        if self._kind == _MARKS:
            # Line ends (with slashes, in o200k) follow the marks, and no mark follows them.
            return "!!" if "R" not in classes else "!!\r" if self._name == "superbpe" else "!!\n"
        if self._name == "o200k" and "V" not in classes:
            return _CASELESS if classes[-1] in "CM" else "A"
        return "a"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
