r"""The part of the `regex` module's syntax that automata can take, as a tree.

    >>> parse_pattern(r"a+(?!\S)").parts[0].least
    1
    >>> parse_pattern(r"(a)\1")
    Traceback (most recent call last):
    ...
    bpe.pretokenizing.pattern_syntax.UnsupportedPatternError: '\\1'

Not taken: what looks behind, or further ahead than one character; groups that are called or named;
`\w` and `\b`; case-insensitive matching of anything but ASCII letters; and possessive repeats that
differ from greedy ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from bpe.pretokenizing.code_points import (
    CodePoints,
    complement,
    intersect,
    named_set,
    single,
    union,
)

__all__ = ["Chars", "Choice", "Look", "Node", "Repeat", "Sequence", "UnsupportedPatternError"]
__all__ += ["CodePoints", "may_be_empty", "parse_pattern"]


class UnsupportedPatternError(Exception):
    """A pattern holds what no automaton is made for; the message is that part of it."""


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    chars: CodePoints


@dataclass(frozen=True)
class Look:
    """What comes next, without taking it: a character of a set or, with at_end, nothing."""

    chars: CodePoints
    at_end: bool


@dataclass(frozen=True)
class Sequence:
    """Parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """The first of the options with which the whole matches."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """A part several times, as often as it can be or, if lazy, as rarely; most: None if any."""

    part: Node
    least: int
    most: int | None
    is_lazy: bool = False
    is_possessive: bool = False


Node = Chars | Look | Sequence | Choice | Repeat

_NESTED = "(?V1)"
_COUNT = re.compile(r"\{(\d{0,4})(,?)(\d{0,4})\}")
_PROPERTY = re.compile(r"([pP])(?:\{(\^?)(?:(?:Script|sc)=(?=Han\}))?(\w+)\}|([A-Z]))")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_SHORT_SETS = {"s": "White_Space", "d": "Nd"}
_NEWLINE = single(ord("\n"))
# What equals an ASCII letter where case is ignored, besides the letter's other case.
_FOLDED = {"s": 0x17F, "k": 0x212A}
# Together these equal one character, such as U+00DF, for some libraries.
_LIGATURES = re.compile("ss|ff|fi|fl|st", re.IGNORECASE)
_DEEPEST = 50


def parse_pattern(pattern: str) -> Node:
    """Tree of a pattern that the `regex` module compiles.

    Raises `UnsupportedPatternError`.
    """
    parser = _Parser(pattern.removeprefix(_NESTED), is_nested=pattern.startswith(_NESTED))
    tree = parser.choice()
    if parser.rest:
        raise UnsupportedPatternError(repr(parser.rest[:1]))
    _check_possessive(tree, ())
    return tree


class _Parser:
    def __init__(self, pattern: str, *, is_nested: bool) -> None:
        self.rest = pattern
        self._is_nested = is_nested
        self._ignores_case = False
        self._depth = 0

    def _take(self, text: str) -> bool:
        found = self.rest.startswith(text)
        if found:
            self.rest = self.rest[len(text) :]
        return found

    def _next(self) -> str:
        if not self.rest:
            raise UnsupportedPatternError("its end")
        character, self.rest = self.rest[0], self.rest[1:]
        return character

    def choice(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnsupportedPatternError("groups in groups")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.rest and self.rest[0] not in "|)":
            if parts and _takes_all_newlines(parts[-1]) and self._take("$"):
                parts.append(Look((), at_end=True))
            else:
                parts.append(self._repeats(self._part()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeats(self, part: Node) -> Node:
        count = _COUNT.match(self.rest)
        if count is not None:
            first, comma, last = count.groups()
            if not first and not last:
                raise UnsupportedPatternError(count.group())
            least = int(first or 0)
            most = int(last) if last else None if comma else least
            self.rest = self.rest[count.end() :]
        elif self.rest[:1] in {"?", "*", "+"}:
            mark = self._next()
            least, most = int(mark == "+"), 1 if mark == "?" else None
        else:
            return part
        if isinstance(part, Look) or (most is not None and most < max(least, 1)):
            raise UnsupportedPatternError("a repeat of nothing")
        lazy = self._take("?")
        possessive = not lazy and self._take("+")
        if self.rest[:1] in {"?", "*", "+"} or _COUNT.match(self.rest):
            raise UnsupportedPatternError("a repeat of a repeat")
        return Repeat(part, least, most, lazy, possessive)

    def _part(self) -> Node:
        if self._take("("):
            return self._group()
        if self._take("["):
            return Chars(self._cased(self._char_class()))
        if self._take("\\"):
            if self._take("Z"):
                return Look((), at_end=True)
            return self._literal_or_set(self._escape(in_class=False))
        character = self._next()
        if character == ".":
            return Chars(complement(_NEWLINE))
        if character in "^$*+?{":
            raise UnsupportedPatternError(repr(character))
        return self._literal_or_set(single(ord(character)))

    def _literal_or_set(self, chars: CodePoints) -> Node:
        return Chars(self._cased(chars))

    def _cased(self, chars: CodePoints) -> CodePoints:
        if not self._ignores_case:
            return chars
        if not chars or chars[-1][1] >= 0x80:
            raise UnsupportedPatternError("(?i: with more than ASCII characters")
        cased: set[int] = set()
        for character in (chr(code) for first, last in chars for code in range(first, last + 1)):
            cased |= {ord(character.lower()), ord(character.upper())}
            cased.add(_FOLDED.get(character.lower(), ord(character)))
        return union(map(single, cased))

    def _group(self) -> Node:
        if self._take("?"):
            if self._take("!"):
                return self._look(is_negative=True)
            if self._take("="):
                return self._look(is_negative=False)
            if self._take("m:$)"):
                return Look(_NEWLINE, at_end=True)
            return self._plain_group()
        return self._end_of_group()

    def _plain_group(self) -> Node:
        before, text = self._ignores_case, self.rest
        if self._take("i:"):
            self._ignores_case = True
        elif not self._take(":"):
            raise UnsupportedPatternError(repr(f"(?{self.rest[:1]}"))
        found = self._end_of_group()
        if self._ignores_case and _LIGATURES.search(text[: len(text) - len(self.rest)]):
            raise UnsupportedPatternError("(?i: with letters that are one where case is ignored")
        self._ignores_case = before
        return found

    def _end_of_group(self) -> Node:
        found = self.choice()
        if not self._take(")"):
            raise UnsupportedPatternError("a group without end")
        return found

    def _look(self, *, is_negative: bool) -> Node:
        found = self._end_of_group()
        options = found.options if isinstance(found, Choice) else (found,)
        if not all(isinstance(option, Chars) for option in options):
            raise UnsupportedPatternError("a look at more than one character")
        chars = union(option.chars for option in options if isinstance(option, Chars))
        return Look(complement(chars), at_end=True) if is_negative else Look(chars, at_end=False)

    def _escape(self, *, in_class: bool) -> CodePoints:
        known = _PROPERTY.match(self.rest)
        if known is not None:
            letter, caret, name, short = known.groups()
            found = named_set(name or short)
            if found is None:
                raise UnsupportedPatternError(repr("\\" + known.group()))
            self.rest = self.rest[known.end() :]
            return complement(found) if (letter == "P") != bool(caret) else found
        code = _HEX.match(self.rest)
        if code is not None:
            self.rest = self.rest[code.end() :]
            return single(int(code.group(code.lastindex or 0), 16))
        letter = self._next()
        if letter.lower() in _SHORT_SETS:
            found = named_set(_SHORT_SETS[letter.lower()]) or ()
            return complement(found) if letter.isupper() else found
        if letter in _CONTROLS:
            return single(ord(_CONTROLS[letter]))
        if letter == "b" and in_class:
            return single(ord("\b"))
        if letter.isalnum() or ord(letter) >= 0x80:
            raise UnsupportedPatternError(repr("\\" + letter))
        return single(ord(letter))

    def _char_class(self) -> CodePoints:
        is_negative = self._take("^")
        found = self._members()
        while self._is_nested and self._take("&&"):
            found = intersect(found, self._members())
        if not self._take("]"):
            raise UnsupportedPatternError("a class without end")
        return complement(found) if is_negative else found

    def _members(self) -> CodePoints:
        members: list[CodePoints] = []
        is_first = True
        while self.rest and (is_first or not self.rest.startswith("]")):
            if self._is_nested and self.rest.startswith(("&&", "||", "--", "~~")):
                if not self.rest.startswith("&&"):
                    raise UnsupportedPatternError(repr(self.rest[:2]))
                break
            members.append(self._member())
            is_first = False
        return union(members)

    def _member(self) -> CodePoints:
        if self.rest.startswith("[:"):
            raise UnsupportedPatternError("a class by name")
        if self._is_nested and self._take("["):
            return self._char_class()
        low = self._one()
        if not self.rest.startswith("-") or self.rest.startswith("-]") or low is None:
            return low if low is not None else ()
        if self._is_nested and self.rest.startswith("--"):
            return low
        is_one = len(low) == 1 and low[0][0] == low[0][1]
        self._next()
        high = self._one()
        if not is_one or len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
            raise UnsupportedPatternError("a range of classes")
        return ((low[0][0], high[0][0]),)

    def _one(self) -> CodePoints:
        return self._escape(in_class=True) if self._take("\\") else single(ord(self._next()))


def _takes_all_newlines(part: Node) -> bool:
    r"""Whether `$`, which also matches before a last newline, matches at the end alone after it."""
    return (
        isinstance(part, Repeat)
        and not part.is_lazy
        and part.most is None
        and isinstance(part.part, Chars)
        and bool(intersect(part.part.chars, _NEWLINE))
    )


def _check_possessive(node: Node, after: tuple[Node, ...]) -> None:
    """Refuse possessive repeats that find something else than greedy ones.

    after: what follows the node in the pattern. A repeat of single characters is the same either
    way if nothing that follows can begin with one of them: what it might give back does not match.
    """
    if isinstance(node, Choice):
        for option in node.options:
            _check_possessive(option, after)
    elif isinstance(node, Sequence):
        for place, part in enumerate(node.parts):
            _check_possessive(part, (*node.parts[place + 1 :], *after))
    elif isinstance(node, Repeat):
        if node.is_possessive:
            inner = node.part
            if not isinstance(inner, Chars) or intersect(inner.chars, _first(after)):
                raise UnsupportedPatternError("a possessive repeat")
        elif _holds_possessive(node.part):
            raise UnsupportedPatternError("a possessive repeat in a repeat")


def _holds_possessive(node: Node) -> bool:
    if isinstance(node, Repeat):
        return node.is_possessive or _holds_possessive(node.part)
    inner = node.options if isinstance(node, Choice) else ()
    inner = node.parts if isinstance(node, Sequence) else inner
    return any(map(_holds_possessive, inner))


def _first(nodes: SequenceOf[Node]) -> CodePoints:
    """Characters with which a sequence can begin; what it looks at counts as begun with."""
    found: list[CodePoints] = []
    for node in nodes:
        found.append(_first_of(node))
        if not may_be_empty(node):
            break
    return union(found)


def _first_of(node: Node) -> CodePoints:
    if isinstance(node, Chars | Look):
        return node.chars
    if isinstance(node, Repeat):
        return _first_of(node.part)
    if isinstance(node, Sequence):
        return _first(node.parts)
    return union(map(_first_of, node.options))


def may_be_empty(node: Node) -> bool:
    """Whether a part can match without a character."""
    if isinstance(node, Look):
        return True
    if isinstance(node, Repeat):
        return node.least == 0 or may_be_empty(node.part)
    if isinstance(node, Sequence):
        return all(map(may_be_empty, node.parts))
    return isinstance(node, Choice) and any(map(may_be_empty, node.options))
