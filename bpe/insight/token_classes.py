"""What the tokens of a vocabulary are worth: classes by their bytes, near duplicates.

`impossible`: in no valid UTF-8. `partial`: part of some valid text, but not whole characters.
`unreachable`: encoding its bytes gives other ids. `ok`: the rest. Source of the idea: Land and
Bartolo 2024 (Fishing for Magikarp).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

from bpe.pretokenizing.normalization import normalize
from bpe.tokenizer import Tokenizer

__all__ = [
    "classify_tokens",
    "find_near_duplicates",
    "has_odd_bytes",
    "longest_tokens",
    "utf8_class",
]

_MOST_TAIL = 3  # continuation bytes of a character


def utf8_class(token: bytes) -> str:
    r"""`valid` (whole characters), `partial` (a part of some valid text) or `impossible`.

    >>> utf8_class("é".encode()), utf8_class(b"\xc3"), utf8_class(b"a\x80")
    ('valid', 'partial', 'impossible')
    """
    tail = 0
    while tail < min(_MOST_TAIL, len(token)) and token[tail] & 0xC0 == 0x80:
        tail += 1
    try:
        # Not final: a character may be cut at the end. One that nothing completes is an error.
        _, used = codecs.utf_8_decode(token[tail:], "strict", False)
    except UnicodeDecodeError:
        return "impossible"
    rest = token[tail + used :]
    if rest[:1] == b"\xed" and rest[1:2] >= b"\xa0":  # a surrogate, which Python lets stand open
        return "impossible"
    return "valid" if not tail and not rest else "partial"


def classify_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """Class of each token by id, special tokens left out; see the module for the classes."""
    tokens = tokenizer.model.tokens
    classes = {token_id: utf8_class(data) for token_id, data in tokens.items()}
    whole = [token_id for token_id, found in classes.items() if found == "valid"]
    lists = tokenizer.encode_batch([tokens[token_id] for token_id in whole])
    for token_id, ids in zip(whole, lists.to_pylist(), strict=True):
        classes[token_id] = "ok" if ids == [token_id] else "unreachable"
    return classes


def find_near_duplicates(tokens: Iterable[tuple[int, bytes]]) -> list[list[int]]:
    """Groups of tokens that are the same text but for a leading space, case and width.

    One leading space is stripped, and the rest is put into NFKC and case-folded; other tokens
    than whole characters are left out.

    Args:
        tokens: (id, bytes).

    Returns:
        Ids of each group of two or more, ascending, the groups by their first id.
    """
    groups: dict[str, list[int]] = {}
    for token_id, data in tokens:
        if utf8_class(data) != "valid":
            continue
        text = normalize("NFKC", data.removeprefix(b" ")).decode().casefold()
        if text:
            groups.setdefault(text, []).append(token_id)
    return sorted(sorted(ids) for ids in groups.values() if len(ids) > 1)


def has_odd_bytes(token: bytes) -> bool:
    """Whether a token holds control characters other than tab, line feed and carriage return."""
    text = token.decode("utf-8", "replace")
    return any(
        (character < " " and character not in "\t\n\r") or "\x7f" <= character < "\xa0"
        for character in text
    )


def longest_tokens(tokens: Sequence[tuple[int, bytes]], count: int) -> list[int]:
    """Ids of the longest tokens, by bytes, the lower id first among equals."""
    return [each for each, data in sorted(tokens, key=lambda row: (-len(row[1]), row[0]))[:count]]
