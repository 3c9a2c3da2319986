"""What a tokenizer of the recipe `sennrich` is made of, and its files."""

from __future__ import annotations

import json
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
        special_tokens: get the ids behind those of `tokens`, in this order.
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
    rows = document.get("merges")
    if not isinstance(rows, list):
        raise ModelFileError("sennrich.json: 'merges' is no list")
    merges: list[tuple[str, str]] = []
    known, made = set(tokens[1:]), set()
    for rank, row in enumerate(rows):
        pair = _texts(row, f"merges[{rank}]")
        if len(pair) != 2 or not known.issuperset((*pair, "".join(pair))) or "".join(pair) in made:
            raise ModelFileError(
                f"sennrich.json: merges[{rank}] is {str(row)[:80]}, which is no pair of tokens "
                "that makes a third for the first time"
            )
        made.add("".join(pair))
        merges.append((pair[0], pair[1]))
    return SennrichContent(document["end_mark"], tokens, tuple(merges), specials)


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
