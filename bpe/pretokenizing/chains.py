r"""Chains of steps that cut text: each step cuts the pieces that the one before has left.

A step finds its pattern in a piece. Its behavior says what becomes of the matches and of the text
between them, as in Hugging Face's library:

    >>> steps = (Step(r"\p{N}", "isolated"), Step(" ", "merged_with_next"))
    >>> split_by_steps(steps, "in 2024 or so")
    ['in', ' ', '2', '0', '2', '4', ' or', ' so']
    >>> split_by_steps((Step(r"\s+", "removed"),), "in 2024")
    ['in', '2024']

A spec writes a chain as JSON: a list of steps, each a list of pattern, behavior and invert.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

from bpe.errors import SettingsError
from bpe.pretokenizing.user_patterns import SearchTime, check_pattern, find_spans

__all__ = ["BEHAVIORS", "Step", "parse_steps", "render_steps", "split_by_steps"]

BEHAVIORS = ("isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")
"""What a step may do: matches stand alone, are dropped, are joined to the text before or after
them, or are joined to each other where no text is between them."""

_MOST_STEPS = 20
_MOST_CHARACTERS = 50_000
_SHOWN_CHARACTERS = 200

_Span = tuple[int, int, bool]


@dataclass(frozen=True)
class Step:
    """One step of a chain.

    pattern: in the syntax of the `regex` module. behavior: one of `BEHAVIORS`. invert: what
    stands between matches counts as the matches, and the matches as what stands between.
    """

    pattern: str
    behavior: str
    invert: bool = False


def parse_steps(text: str) -> tuple[Step, ...]:
    """Steps of a chain's JSON; `SettingsError` for one that is none, or is out of bounds."""
    shown = f"pre-tokenizer 'chain:{text[:_SHOWN_CHARACTERS]}'"
    if len(text) > _MOST_CHARACTERS:
        raise SettingsError(
            f"{shown}... has {len(text):,} characters, and at most {_MOST_CHARACTERS:,} are allowed"
        )
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            f'{shown} is no JSON: {error}; write it as chain:[["PATTERN","isolated",false],...]'
        ) from None
    if not isinstance(rows, list) or len(rows) > _MOST_STEPS:
        raise SettingsError(f"{shown} is no list of at most {_MOST_STEPS} steps")
    return tuple(_parse_step(row, f"{shown}, step {place}") for place, row in enumerate(rows))


def _parse_step(row: object, place: str) -> Step:
    if (
        not isinstance(row, list)
        or [type(value) for value in row] != [str, str, bool]
        or row[1] not in BEHAVIORS
        or not row[0]
    ):
        raise SettingsError(
            f"{place} is no list of a pattern, a behavior (one of {', '.join(BEHAVIORS)}), and "
            "false or true, which inverts the matches"
        )
    check_pattern(row[0])
    return Step(*row)


def render_steps(steps: Sequence[Step]) -> str:
    """JSON of a chain, as `parse_steps` reads it; equal chains have the same."""
    return json.dumps([astuple(step) for step in steps], ensure_ascii=False, separators=(",", ":"))


def split_by_steps(steps: Sequence[Step], text: str, named: str = "") -> list[str]:
    """Pieces of a text that a chain of checked steps leaves, in order; none is empty.

    named: as for `SearchTime`. Raises `SettingsError` as `find_spans` does.
    """
    time = SearchTime(len(text), named)
    pieces = [text]
    for step in steps:
        pieces = [
            piece[start:end]
            for piece in pieces
            for start, end in _joined(step, _matches_and_gaps(step, piece, time))
            if start < end
        ]
    return pieces


def _matches_and_gaps(step: Step, text: str, time: SearchTime) -> list[_Span]:
    """Start, end and whether it counts as a match, of all of a text in order."""
    spans: list[_Span] = []
    position = 0
    for start, end in find_spans(step.pattern, text, time):
        if start > position:
            spans.append((position, start, step.invert))
        if end > start or start > position or not spans:
            spans.append((start, end, not step.invert))
        position = end
    if position < len(text):
        spans.append((position, len(text), step.invert))
    return spans


def _joined(step: Step, spans: list[_Span]) -> Iterator[tuple[int, int]]:
    """Pieces that a step makes of matches and what is between."""
    if step.behavior == "isolated":
        return ((start, end) for start, end, _ in spans)
    if step.behavior == "removed":
        return ((start, end) for start, end, is_match in spans if not is_match)
    is_backward = step.behavior == "merged_with_next"
    pieces: list[tuple[int, int]] = []
    was_match = False
    for start, end, is_match in reversed(spans) if is_backward else spans:
        joins = is_match == was_match if step.behavior == "contiguous" else is_match > was_match
        if joins and pieces:
            first, last = pieces.pop()
            pieces.append((min(first, start), max(last, end)))
        else:
            pieces.append((start, end))
        was_match = is_match
    return reversed(pieces) if is_backward else iter(pieces)
