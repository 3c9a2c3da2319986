"""Checks of a vocabulary's ids, tokens and merges; each raises `VocabularyError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bpe.backends.values import TIE_ORDERS
from bpe.encoding.missing_bytes import NEVER_IN_UTF8, find_missing_bytes
from bpe.errors import SettingsError, VocabularyError

__all__ = ["MAX_ID", "check_ids", "check_merges", "check_tie_order", "check_tokens"]

MAX_ID = 2**31 - 1
"""Largest id: what reads ids as int32 reads all of them."""


def check_ids(ids: Iterable[Any]) -> None:
    """Refuse what is no integer from 0 to `MAX_ID`."""
    ids = list(ids)
    if set(map(type, ids)) <= {int} and (not ids or 0 <= min(ids) <= max(ids) <= MAX_ID):
        return
    for token_id in ids:
        if isinstance(token_id, bool) or not isinstance(token_id, int):
            raise VocabularyError(f"id {token_id!r} is not an integer")
        if not 0 <= token_id <= MAX_ID:
            raise VocabularyError(
                f"id {token_id} is out of range: ids go from 0 to {MAX_ID}; number the tokens anew"
            )


def check_tokens(tokens: Mapping[int, bytes]) -> None:
    """Refuse bad ids, an empty token, one that is there twice, and a byte without an id."""
    check_ids(tokens)
    ids = {data: token_id for token_id, data in tokens.items()}
    if b"" in ids:
        raise VocabularyError(f"token {ids[b'']} is empty: a token holds at least one byte")
    if len(ids) < len(tokens):
        twice = next(i for i, data in tokens.items() if ids[data] != i)
        raise VocabularyError(
            f"tokens {twice} and {ids[tokens[twice]]} are both {tokens[twice]!r}: keep one of them"
        )
    missing = find_missing_bytes(tokens.values())
    if missing.translate(None, NEVER_IN_UTF8):
        shown = " ".join(f"{byte:02x}" for byte in missing[:8])
        more = " ..." if len(missing) > 8 else ""
        raise VocabularyError(
            f"the vocabulary lacks {len(missing)} of the 256 single bytes ({shown}{more}), so that "
            "not every text can be encoded; train it with the full byte alphabet "
            "(in Hugging Face's trainer: initial_alphabet=ByteLevel.alphabet())"
        )


def check_merges(merges: Sequence[tuple[int, int, int]], tokens: Mapping[int, bytes]) -> None:
    """Refuse a merge of unknown tokens, one that spells another token, and one given twice."""
    try:
        spelled = all(tokens[left] + tokens[right] == tokens[new] for left, right, new in merges)
    except KeyError:
        spelled = False
    # Merges that make different tokens are of different pairs.
    if spelled and len({new for _, _, new in merges}) == len(merges):
        return
    if spelled and len({(left, right) for left, right, _ in merges}) == len(merges):
        return
    _name_bad_merge(merges, tokens)


def _name_bad_merge(merges: Sequence[tuple[int, int, int]], tokens: Mapping[int, bytes]) -> None:
    seen: dict[tuple[int, int], int] = {}
    for index, (left, right, new) in enumerate(merges):
        for token_id in (left, right, new):
            if token_id not in tokens:
                raise VocabularyError(
                    f"merge {index} ({left}, {right}) -> {new}: there is no token {token_id}"
                )
        if tokens[left] + tokens[right] != tokens[new]:
            raise VocabularyError(
                f"merge {index}: {tokens[left]!r} and {tokens[right]!r} do not make token {new}, "
                f"which is {tokens[new]!r}"
            )
        if seen.setdefault((left, right), index) != index:
            raise VocabularyError(
                f"merges {seen[left, right]} and {index} are both "
                f"({tokens[left]!r}, {tokens[right]!r}): keep the first"
            )


def check_tie_order(tie_order: str) -> None:
    """Refuse a name that is none of `TIE_ORDERS`, with `SettingsError`."""
    if tie_order not in TIE_ORDERS:
        raise SettingsError(f"unknown tie order {tie_order!r}: use one of {', '.join(TIE_ORDERS)}")
