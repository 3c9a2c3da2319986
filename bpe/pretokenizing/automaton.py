"""Deterministic automata that find a pattern's matches as a backtracking search does.

A state is the list of places in the pattern where a search would go on, the one that it prefers
first. Where the preferred place is the pattern's end, the others are forgotten. This is how RE2
and Rust's `regex` keep the order of alternatives; see R. Cox, "Regular Expression Matching: the
Virtual Machine Approach" (2009). A look at the next character is decided when that comes, so that
a step of the automaton tells whether a match ends before the character that it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bpe.pretokenizing import pattern_syntax as syntax
from bpe.pretokenizing.pattern_syntax import Node, UnsupportedPatternError

__all__ = ["DEAD", "START", "Automaton", "join_automata", "make_automaton"]

DEAD, START = 0, 1
"""States that every automaton has: no match goes on from the first."""

_MOST_INSTRUCTIONS = 4_000
_MOST_STATES = 2_000
_MOST_STEPS = 2_000_000  # while an automaton is made; takes seconds


@dataclass(frozen=True)
class Automaton:
    """Steps of one pattern over atoms, the classes of characters that it tells apart.

    next_states: int32, shape (states, atoms + 1); the last column stands for the end of the text.
    ends: bool, same shape; whether a match ends before the atom. The start has no such ends.
    """

    next_states: npt.NDArray[np.int32]
    ends: npt.NDArray[np.bool_]

    @cached_property
    def first_atoms(self) -> npt.NDArray[np.bool_]:
        """Atoms with which a match may begin; bool, shape (atoms,)."""
        found: npt.NDArray[np.bool_] = self.next_states[START, :-1] != DEAD
        return found

    @cached_property
    def sure_atoms(self) -> npt.NDArray[np.bool_]:
        """Atoms with which a match begins whatever comes next; bool, shape (atoms,)."""
        return self.first_atoms & self.ends[self.next_states[START, :-1]].all(axis=1)

    def first_end(self, atoms: Sequence[int], start: int) -> tuple[int, int]:
        """End of the match from `start`, or start if there is none, and how far that is seen.

        The latter is len(atoms) + 1 if more atoms could change the answer.
        """
        state, end, position = START, start, start
        while position < len(atoms):
            if self.ends[state, atoms[position]]:
                end = position
            state = int(self.next_states[state, atoms[position]])
            position += 1
            if state == DEAD:
                return end, position
        return (len(atoms) if self.ends[state, -1] else end), len(atoms) + 1


@dataclass(frozen=True)
class _Split:
    targets: tuple[int, ...]  # the preferred one first


@dataclass(frozen=True)
class _Take:
    atoms: int  # bit by atom


@dataclass(frozen=True)
class _Look:
    atoms: int  # bit by atom, the end's among them


_Place = _Split | _Take | _Look | None


class _Program:
    """Places of a pattern; a place that takes or looks goes on at the next one; None is the end."""

    def __init__(self, atoms_of: dict[syntax.CodePoints, int], atom_count: int) -> None:
        self.places: list[_Place] = []
        self._atoms_of = atoms_of
        self._end_bit = 1 << atom_count

    def add(self, node: Node) -> None:
        if len(self.places) > _MOST_INSTRUCTIONS:
            raise UnsupportedPatternError("its size")
        if isinstance(node, syntax.Chars):
            self.places.append(_Take(self._atoms_of[node.chars]))
        elif isinstance(node, syntax.Look):
            end_bit = self._end_bit if node.at_end else 0
            self.places.append(_Look(self._atoms_of[node.chars] | end_bit))
        elif isinstance(node, syntax.Sequence):
            for part in node.parts:
                self.add(part)
        elif isinstance(node, syntax.Choice):
            self._add_choice(node)
        else:
            self._add_repeat(node)

    def _add_choice(self, node: syntax.Choice) -> None:
        split = self._reserve()
        targets, jumps = [], []
        for option in node.options:
            targets.append(len(self.places))
            self.add(option)
            jumps.append(self._reserve())
        self.places[split] = _Split(tuple(targets))
        for jump in jumps:
            self.places[jump] = _Split((len(self.places),))

    def _add_repeat(self, node: syntax.Repeat) -> None:
        for _ in range(node.least):
            self.add(node.part)
        splits = []
        for _ in range(1 if node.most is None else node.most - node.least):
            splits.append(self._reserve())
            before = len(self.places)
            self.add(node.part)
            if node.most is None:
                if before == len(self.places) or syntax.may_be_empty(node.part):
                    raise UnsupportedPatternError("a repeat of nothing")
                self.places.append(_Split((splits[-1],)))
        for split in splits:
            ways = (split + 1, len(self.places))
            self.places[split] = _Split(ways[::-1] if node.is_lazy else ways)

    def _reserve(self) -> int:
        self.places.append(None)
        return len(self.places) - 1


def make_automaton(
    tree: Node, atoms_of: dict[syntax.CodePoints, int], atom_count: int
) -> Automaton:
    """Automaton of a pattern.

    atoms_of: the atoms of each set in the pattern, as bits.

    Raises `UnsupportedPatternError` for a pattern that matches nothing somewhere, or is too large.
    """
    program = _Program(atoms_of, atom_count)
    program.add(tree)
    places = program.places
    states: dict[tuple[int, ...], int] = {(): DEAD, (0,): START}
    queue: list[tuple[int, ...]] = [(0,)]
    rows: list[list[tuple[int, bool]]] = [[(DEAD, False)] * (atom_count + 1)]
    steps = 0
    for state in queue:
        row: list[tuple[int, bool]] = []
        for atom in range(atom_count + 1):
            following, is_end, count = _step(places, state, 1 << atom)
            steps += count
            if following not in states:
                states[following] = len(states)
                queue.append(following)
            row.append((states[following], is_end))
        rows.append(row)
        if len(states) > _MOST_STATES or steps > _MOST_STEPS:
            raise UnsupportedPatternError("its size")
    automaton = Automaton(
        np.array([[following for following, _ in row] for row in rows], np.int32),
        np.array([[is_end for _, is_end in row] for row in rows], np.bool_),
    )
    if automaton.ends[START].any():
        raise UnsupportedPatternError("a match of nothing")
    return _minimize(automaton)


def _step(
    places: Sequence[_Place], state: Sequence[int], atom_bit: int
) -> tuple[tuple[int, ...], bool, int]:
    """State after an atom, whether a match ends before it, and how many places were visited."""
    following: dict[int, None] = {}
    visited: set[int] = set()
    stack = list(reversed(state))
    while stack:
        place = stack.pop()
        if place in visited:
            continue
        visited.add(place)
        if place == len(places):
            return tuple(following), True, len(visited)
        kind = places[place]
        if isinstance(kind, _Split):
            stack += reversed(kind.targets)
        elif kind is not None and kind.atoms & atom_bit:
            if isinstance(kind, _Take):
                following[place + 1] = None
            else:
                stack.append(place + 1)
    return tuple(following), False, len(visited)


def join_automata(automata: Sequence[Automaton]) -> Automaton | None:
    """One automaton for steps that each cut what the one before left uncut; None if there is none.

    There is one if every match of a step but the last begins whatever comes next: a character that
    begins one is the end of the text for the steps after it.
    """
    if not all((one.first_atoms == one.sure_atoms).all() for one in automata[:-1]):
        return None
    width = automata[0].next_states.shape[1]
    starts = np.full(width, DEAD, np.int32)
    taken = np.zeros(width - 1, np.bool_)
    next_parts = [np.full((2, width), DEAD, np.int32)]
    end_parts = [np.zeros((2, width), np.bool_)]
    offset = 2
    for one in automata:
        following = np.where(one.next_states == DEAD, DEAD, one.next_states + offset)
        ends = one.ends.copy()
        following[:, :-1][:, taken] = DEAD
        ends[:, :-1][:, taken] = ends[:, -1:]
        fresh = one.first_atoms & ~taken
        starts[:-1][fresh] = following[START, :-1][fresh]
        taken |= fresh
        next_parts.append(following.astype(np.int32))
        end_parts.append(ends)
        offset += len(following)
    next_parts[0][START] = starts
    return _minimize(Automaton(np.concatenate(next_parts), np.concatenate(end_parts)))


def _minimize(automaton: Automaton) -> Automaton:
    """The same automaton with one state in place of those that no text tells apart.

    By refining classes of states until their steps agree (E. F. Moore, 1956).
    """
    classes = np.zeros(len(automaton.ends), np.int64)
    classes[START] = 1  # stays a state of its own
    count = 2
    while True:
        rows = np.column_stack([classes, classes[automaton.next_states], automaton.ends])
        _, firsts, refined = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        if len(firsts) == count:
            break
        classes, count = refined.reshape(-1), len(firsts)
    # The dead state and the start keep their places.
    order = [classes[DEAD], classes[START]]
    order += [found for found in dict.fromkeys(classes.tolist()) if found not in order]
    place = np.empty(count, np.int32)
    place[order] = np.arange(count)
    members = np.array([int(np.flatnonzero(classes == found)[0]) for found in order])
    return Automaton(place[classes[automaton.next_states[members]]], automaton.ends[members])
