"""What a tokenizer of the recipe `sennrich` is made of, and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpe.errors import ModelFileError

__all__ = ["END", "END_MARKS", "UNKNOWN", "SennrichContent", "parse_content"]

END = "</w>"
"""What a word's last token ends with, or is."""

UNKNOWN = "<unk>"
"""Token of all characters that the training text did not hold; its id is 0."""

END_MARKS = {"attached": "0.2", "separate": "0.1"}
"""Whether the end of a word belongs to its last character from the start, or is a symbol of its
own; and the version of subword-nmt's files that means so."""

_FORMAT = "beam-bpe sennrich 1"


@dataclass(frozen=True)
class SennrichContent:
    """Tokens and merges.

    Attributes:
        end_mark: of `END_MARKS`.
        tokens: by id: `UNKNOWN`, the alphabet by UTF-8 bytes, those of merges.
        merges: (left, right) by rank.
        special_tokens: get the ids after those of `tokens`, in this order.
    """

    end_mark: str
    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    special_tokens: tuple[str, ...] = ()

    def render(self) -> bytes:
        """The file that `parse_content` reads."""
        document = {
            "format": _FORMAT,
            "end_mark": self.end_mark,
            "special_tokens": self.special_tokens,
            "tokens": self.tokens,
            "merges": self.merges,
        }
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()

    def render_codes(self) -> bytes:
        """Merges as subword-nmt writes them: a version, then `left right` in each line."""
        lines = [f"#version: {END_MARKS[self.end_mark]}", *(" ".join(pair) for pair in self.merges)]
        return "".join(f"{line}\n" for line in lines).encode()


def parse_content(data: bytes) -> SennrichContent:
    """Content of a file; `ModelFileError` names the member that is wrong."""
    try:
        document: Any = json.loads(data)
    except ValueError as error:
        raise ModelFileError(f"sennrich.json is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ModelFileError(f"sennrich.json: 'format' is not {_FORMAT!r}")
    if document.get("end_mark") not in END_MARKS:
        raise ModelFileError(f"sennrich.json: 'end_mark' is not one of {', '.join(END_MARKS)}")
    tokens = _texts(document.get("tokens"), "tokens")
    specials = _texts(document.get("special_tokens"), "special_tokens")
    if not tokens or tokens[0] != UNKNOWN or len({*tokens, *specials}) < len(tokens + specials):
        raise ModelFileError(
            f"sennrich.json: 'tokens' must begin with {UNKNOWN!r}, and no token be there twice"
        )
    merges = _merges(document.get("merges"), tokens[1:], document["end_mark"])
    return SennrichContent(document["end_mark"], tokens, merges, specials)


def _merges(rows: Any, tokens: Sequence[str], end_mark: str) -> tuple[tuple[str, str], ...]:
    """Merges in order. Each joins two tokens that are there by then, and makes a new one."""
    if not isinstance(rows, list):
        raise ModelFileError("sennrich.json: 'merges' is no list")
    every = set(tokens)
    known = {token for token in tokens if _is_symbol(token, end_mark)}
    merges: list[tuple[str, str]] = []
    for rank, row in enumerate(rows):
        pair = _texts(row, f"merges[{rank}]")
        made = "".join(pair)
        if (
            len(pair) != 2
            or not known.issuperset(pair)
            or made in known
            or made not in every
            or pair[0].endswith(END)
            or pair[1].endswith(END) != made.endswith(END)
        ):
            raise ModelFileError(
                f"sennrich.json: merges[{rank}] is {str(row)[:80]}, which is no pair of tokens "
                "that are there before and make another for the first time"
            )
        known.add(made)
        merges.append((pair[0], pair[1]))
    if known != every:
        raise ModelFileError(
            f"sennrich.json: token {min(every - known)[:40]!r} is no character, and no merge makes "
            "it"
        )
    return tuple(merges)


def _is_symbol(token: str, end_mark: str) -> bool:
    """Whether words hold the token before any merge."""
    if end_mark == "separate":
        return token == END or len(token) == 1
    return len(token) == 1 or (len(token) == 1 + len(END) and token.endswith(END))


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ModelFileError(f"sennrich.json: {name!r} is no list of texts")
    for text in value:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ModelFileError(f"sennrich.json: {name!r} holds a lone surrogate") from None
        if any(sign in text for sign in " \r\n"):
            if name == "special_tokens":
                continue
            raise ModelFileError(f"sennrich.json: {name!r} holds {text[:40]!r}, with a blank")
    return tuple(value)
