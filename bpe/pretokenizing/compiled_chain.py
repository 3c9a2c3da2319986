"""Chains of steps compiled for the native core: atoms of characters, and automata over them.

Each pattern of a chain asks only in which of its sets a character is. Characters that are in the
same sets of all patterns are one atom. The native core runs automata over atoms; the specification
runs the `regex` module over a text in which a letter stands for each atom, so that both know the
same version of Unicode, whatever that of `regex` is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from bpe.pretokenizing.automaton import DEAD, Automaton, join_automata, make_automaton
from bpe.pretokenizing.chains import Step
from bpe.pretokenizing.pattern_syntax import (
    Chars,
    Choice,
    CodePoints,
    Look,
    Node,
    Repeat,
    UnsupportedPatternError,
    parse_pattern,
)
from bpe.pretokenizing.pattern_syntax import Sequence as Parts

__all__ = ["Atoms", "CompiledChain", "CompiledStep", "compile_chain"]

_INVALID = 0xDC80  # what a byte that is no valid UTF-8 is decoded to, with `surrogateescape`
_FIRST_LETTER = 0xE000  # of private use: no pattern's syntax, and no other case
_MOST_ATOMS = 250


class Atoms(dict[int, str]):
    """Classes of characters that the patterns of a chain tell apart; for `str.translate`.

    starts, numbers: first code point of each range, ascending from 0, and the range's atom. Atom 0
        is that of bytes that are no valid UTF-8.
    """

    def __init__(self, sets: Sequence[CodePoints]) -> None:
        super().__init__()
        borders = {0, _INVALID}
        for first, last in (span for spans in sets for span in spans):
            borders |= {first, last + 1}
        self.starts = sorted(border for border in borders if border <= 0x10FFFF)
        members = np.zeros((len(self.starts), len(sets)), np.bool_)
        for column, spans in enumerate(sets):
            for first, last in spans:
                low, high = bisect_right(self.starts, first) - 1, bisect_right(self.starts, last)
                members[low:high, column] = True
        keys = [row.tobytes() for row in members]
        known = {keys[bisect_right(self.starts, _INVALID) - 1]: 0}
        self.numbers = [known.setdefault(key, len(known)) for key in keys]
        self.count = len(known)
        if self.count > _MOST_ATOMS:
            raise UnsupportedPatternError("its number of classes")
        self.of_set: dict[CodePoints, int] = {}
        for column, spans in enumerate(sets):
            found = {self.numbers[row] for row in np.flatnonzero(members[:, column])}
            self.of_set[spans] = sum(1 << atom for atom in found)

    def __missing__(self, code_point: int) -> str:
        found = self.numbers[bisect_right(self.starts, code_point) - 1]
        letter = self[code_point] = chr(_FIRST_LETTER + found)
        return letter

    def letters_of(self, spans: CodePoints) -> str:
        """A class of the `regex` module's for the letters of a set."""
        atoms = self.of_set[spans]
        letters = [chr(_FIRST_LETTER + atom) for atom in range(self.count) if atoms >> atom & 1]
        return f"[{''.join(letters)}]" if letters else "(?!)"

    def numbers_of(self, text: str) -> list[int]:
        """Atom of each character of a text."""
        return [ord(letter) - _FIRST_LETTER for letter in text.translate(self)]


@dataclass(frozen=True)
class CompiledStep:
    """A step, or several that became one, and what becomes of its matches as in `Step`."""

    automaton: Automaton
    behavior: str
    invert: bool


@dataclass(frozen=True)
class CompiledChain:
    """A chain for the native core, and the same chain over letters that stand for atoms."""

    atoms: Atoms
    steps: tuple[CompiledStep, ...]
    over_letters: tuple[Step, ...]

    @property
    def automaton(self) -> Automaton | None:
        """The automaton whose matches, and what is between them, are the pre-tokens.

        None where it takes several automata, or matches are joined to something.
        """
        is_one = len(self.steps) == 1 and self.steps[0].behavior == "isolated"
        return self.steps[0].automaton if is_one else None

    @cached_property
    def certain_cuts(self) -> npt.NDArray[np.bool_]:
        """Pairs of atoms between which a pre-token ends, whatever stands elsewhere.

        bool, shape (atoms, atoms), by the atom before and after. The text before such a place and
        the text after it have, each as a document, the pre-tokens of the whole.
        """
        certain = np.zeros((self.atoms.count, self.atoms.count), np.bool_)
        open_pairs = np.ones_like(certain)
        for step in self.steps:
            if step.behavior != "isolated":
                break
            apart, ends = _pairs(step.automaton)
            certain |= open_pairs & apart & ends
            open_pairs &= apart
        return certain

    @cached_property
    def cut_pattern(self) -> str:
        """A pattern for the letters of atoms that matches nothing at the certain cuts; or empty."""
        rows = self.certain_cuts
        pairs = [
            f"(?<={self._letters(rows.T[after])})(?={self._letters(np.arange(len(rows)) == after)})"
            for after in range(len(rows))
            if rows[:, after].any()
        ]
        return "|".join(pairs)

    @staticmethod
    def _letters(which: npt.NDArray[np.bool_]) -> str:
        return f"[{''.join(chr(_FIRST_LETTER + atom) for atom in np.flatnonzero(which))}]"

    def safe_boundaries(self, text: str) -> Iterator[int]:
        """Places in a text, the last first, that bound a pre-token whatever follows the text.

        In characters. The text begins with a pre-token. What is before such a place has, as a
        document, the pre-tokens that it has in the whole.
        """
        automaton = self.automaton
        if automaton is None:
            return
        atoms = self.atoms.numbers_of(text)
        searches: list[tuple[int, int]] = []  # start and end
        farthest = [0]  # that these have seen, and those before them
        boundaries: list[tuple[int, int]] = []  # and how many searches are before them
        position, was_match = 0, True
        while position < len(atoms):
            end, seen = automaton.first_end(atoms, position)
            if seen > len(atoms):
                break
            if position and (was_match or end > position):
                boundaries.append((position, len(searches)))
            searches.append((position, end))
            farthest.append(max(farthest[-1], seen))
            was_match = end > position
            position = max(end, position + 1)
        for boundary, count in reversed(boundaries):
            before = atoms[:boundary]
            first = bisect_right(farthest, boundary) - 1  # of the searches that saw beyond it
            if all(
                automaton.first_end(before, start)[0] == end
                for start, end in searches[max(first, 0) : count]
            ):
                yield boundary


def _pairs(automaton: Automaton) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Pairs of atoms that no match spans nor sees beyond, and those at which one ends or begins.

    Both bool, shape (atoms, atoms).
    """
    count = automaton.next_states.shape[1] - 1
    reached = np.zeros((count, len(automaton.next_states)), np.bool_)
    sources = _reachable(automaton)
    for atom in range(count):
        reached[atom, automaton.next_states[sources, atom]] = True
    reached[:, DEAD] = False
    apart = np.ones((count, count), np.bool_)
    ends = np.ones((count, count), np.bool_)
    for atom in range(count):
        states = np.flatnonzero(reached[atom])
        goes_on = automaton.next_states[states, :-1] != DEAD
        is_end = automaton.ends[states, :-1]
        differs = is_end != automaton.ends[states, -1:]
        apart[atom] = ~(goes_on | differs).any(axis=0)
        if automaton.first_atoms[atom]:
            # Some match's search holds the atom; it ends there, whichever it is.
            ends[atom] = is_end.all(axis=0)
        else:
            # The atom is in no match that begins with it; in none at all if no state takes it.
            ends[atom] = automaton.sure_atoms if not len(states) else False
    return apart, ends


def _reachable(automaton: Automaton) -> npt.NDArray[np.int64]:
    seen = np.zeros(len(automaton.next_states), np.bool_)
    seen[1] = True
    while True:
        grown = seen.copy()
        grown[automaton.next_states[seen]] = True
        grown[DEAD] = False
        if (grown == seen).all():
            return np.flatnonzero(seen)
        seen = grown


@lru_cache(maxsize=64)
def compile_chain(steps: tuple[Step, ...]) -> CompiledChain | None:
    """Compile a chain of steps; None if a part of it is beyond the automata, or drops text."""
    if any(step.behavior == "removed" for step in steps):
        return None
    try:
        trees = [parse_pattern(step.pattern) for step in steps]
        shapes = [_shape(tree, step) for tree, step in zip(trees, steps, strict=True)]
        atoms = Atoms(sorted({spans for tree in trees for spans in _sets(tree)}))
        automata = [make_automaton(tree, atoms.of_set, atoms.count) for tree, _ in shapes]
    except UnsupportedPatternError:
        return None
    over_letters = tuple(
        Step(_write(tree, atoms), step.behavior, step.invert)
        for tree, step in zip(trees, steps, strict=True)
    )
    compiled = [
        CompiledStep(automaton, behavior, step.invert)
        for automaton, (_, behavior), step in zip(automata, shapes, steps, strict=True)
    ]
    return CompiledChain(atoms, tuple(_join_isolated(compiled)), over_letters)


def _shape(tree: Node, step: Step) -> tuple[Node, str]:
    """What a step finds, and what becomes of its matches, in the simplest form."""
    if step.behavior == "contiguous" and isinstance(tree, Chars):
        # Characters that are joined to their like are a run of them, whichever way round.
        return Repeat(tree, 1, None), "isolated"
    return tree, step.behavior


def _join_isolated(steps: Sequence[CompiledStep]) -> list[CompiledStep]:
    joined: list[CompiledStep] = []
    for step in steps:
        if joined and joined[-1].behavior == step.behavior == "isolated":
            both = join_automata((joined[-1].automaton, step.automaton))
            if both is not None:
                joined[-1] = CompiledStep(both, "isolated", invert=False)
                continue
        joined.append(step)
    return joined


def _sets(node: Node) -> set[CodePoints]:
    if isinstance(node, Chars | Look):
        return {node.chars}
    if isinstance(node, Repeat):
        return _sets(node.part)
    members = node.parts if isinstance(node, Parts) else node.options
    return {spans for member in members for spans in _sets(member)}


def _write(node: Node, atoms: Atoms) -> str:
    """A pattern of the `regex` module that finds in letters what the node finds in a text."""
    if isinstance(node, Chars):
        return atoms.letters_of(node.chars)
    if isinstance(node, Look):
        ahead = rf"(?={atoms.letters_of(node.chars)})"
        return rf"(?:{ahead}|\Z)" if node.at_end else ahead
    if isinstance(node, Parts):
        return "".join(_write(part, atoms) for part in node.parts)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(_write(option, atoms) for option in node.options)})"
    most = "" if node.most is None else node.most
    suffix = "?" if node.is_lazy else "+" if node.is_possessive else ""
    return f"(?:{_write(node.part, atoms)}){{{node.least},{most}}}{suffix}"
