"""Values that go into a backend and come out of it: rules of merging, results, models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from bpe.encoding.added_tokens import AddedToken
from bpe.errors import SettingsError
from bpe.pretokenizing.schemes import Scheme

__all__ = [
    "GREATEST",
    "MAX_COUNT",
    "TIE_ORDERS",
    "CutSegments",
    "EncodingModel",
    "MergeList",
    "MergeRules",
    "ProgressCallback",
    "SimulatedMerges",
    "StopBefore",
    "count_words_in",
]

TIE_ORDERS = ("hf", "id", "bytes", "first")
"""Names of the orders that decide between pairs of equal count; `MergeRules` says what each is."""

GREATEST = "greatest"
"""The order of subword-nmt: the greater left bytes, then the greater right bytes. Of tokens of
characters alone: no order of byte-level BPE."""

MAX_COUNT = 2**63 - 1
"""Largest count of a word or pair; a sum beyond it raises."""

ProgressCallback = Callable[[int, int], None]
"""Called with (merges made, merges asked for), now and then and at the end."""


@dataclass(frozen=True)
class MergeRules:
    """How the next merge is chosen, and when to stop.

    max_merges: stop after so many.
    tie_order: which of several pairs with the highest count is merged. `hf`: the lower pair of
        ids, base ids in GPT-2's printable-character order; `id`: the lower pair of ids, base ids
        being byte values; `bytes`: the lower left bytes, then the lower right bytes; `first`: the
        pair whose earliest occurrence in the current text comes first.
    min_frequency: stop when the best count is below it; at least 1.
    max_token_bytes: a pair that would make a longer token is never merged.
    forbidden: a pair whose bytes spell one of these is never merged (special tokens).
    max_words: a pair that would make a token of more words is never merged; see `count_words_in`.
    forbidden_parts: a pair whose bytes contain one of these is never merged.
    """

    max_merges: int
    tie_order: str = "hf"
    min_frequency: int = 2
    max_token_bytes: int | None = None
    forbidden: frozenset[bytes] = frozenset()
    max_words: int | None = None
    forbidden_parts: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if self.tie_order not in (*TIE_ORDERS, GREATEST):
            raise SettingsError(
                f"unknown tie order {self.tie_order!r}: use one of {', '.join(TIE_ORDERS)}"
            )
        for name, value, lowest in (
            ("max_merges", self.max_merges, 0),
            ("min_frequency", self.min_frequency, 1),
            ("max_token_bytes", self.max_token_bytes, 1),
            ("max_words", self.max_words, 1),
        ):
            if value is not None and value < lowest:
                raise SettingsError(f"{name} is {value}: it must be at least {lowest}")
        if b"" in self.forbidden_parts:
            raise SettingsError("forbidden_parts holds an empty part, which every token contains")

    def allows(self, token: bytes) -> bool:
        """Whether a merge may make this token."""
        return token not in self.forbidden and self.allows_containing(token)

    def allows_containing(self, token: bytes) -> bool:
        """Whether a merge may make some token that contains this one, as far as limits go.

        What is refused here is refused for every longer token around it, so that a place between
        two tokens whose union is refused stays as it is for good. `forbidden` is not like that:
        <|end|> may be refused, and <|end|>s not.
        """
        return (
            (self.max_token_bytes is None or len(token) <= self.max_token_bytes)
            and (self.max_words is None or count_words_in(token) <= self.max_words)
            and not any(part in token for part in self.forbidden_parts)
        )


def count_words_in(token: bytes) -> int:
    r"""Words of a token as the limit `max_words` counts them: what stands between spaces.

    >>> count_words_in(b" of the"), count_words_in(b"s,\n"), count_words_in(b"  ")
    (2, 1, 0)
    """
    return sum(1 for word in token.split(b" ") if word)


@dataclass(frozen=True)
class MergeList:
    """Result of a training.

    merges: (left bytes, right bytes) in the order they were made; index = rank.
    counts: pair count of each merge when it was chosen.
    stop_reason: `vocab_size` (max_merges reached), `min_frequency` (the best pair is rarer), or
        `exhausted` (no pair is left that may be merged).
    """

    merges: list[tuple[bytes, bytes]]
    counts: list[int]
    stop_reason: str


@dataclass(frozen=True)
class StopBefore:
    """A pair that may not be passed: picks end before the first that is not better.

    count: of the pair. left, right: its ids. A pick is better if its count is higher or, in the
    tie orders of ids (`hf`, `id`), if the counts are equal and its pair of ids is lower.
    """

    count: int
    left: int
    right: int

    def is_passed_by(self, pair: tuple[int, int], count: int, tie_order: str) -> bool:
        """Whether a pick of this pair and count is better."""
        if count != self.count or tie_order not in {"hf", "id"}:
            return count > self.count
        return pair < (self.left, self.right)


@dataclass(frozen=True)
class CutSegments:
    """The segments of a shard between its cuts; see `RoundBackend.cut_segments`.

    size: how many heavy pairs were used, one of the sizes offered.
    segments: run-coded, distinct, ascending by bytes, of 3 tokens or more. weights: of each.
    head, tail: run-coded tokens before the first cut and after the last; empty on a closed side.
    head_tokens, tail_tokens: how many these are.
    has_cut: False for a single sequence, open on both sides, without a cut: `head` is all of it.
    """

    size: int
    segments: pa.LargeBinaryArray
    weights: pa.Int64Array
    head: bytes
    tail: bytes
    head_tokens: int
    tail_tokens: int
    has_cut: bool


@dataclass(frozen=True)
class SimulatedMerges:
    """Merges in the order in which they were picked.

    left, right: uint32, ids. counts: int64, of the pair when it was picked.
    """

    left: pa.UInt32Array
    right: pa.UInt32Array
    counts: pa.Int64Array


@dataclass(frozen=True)
class EncodingModel:
    """What an encoder needs of a tokenizer.

    tokens: id to bytes, added tokens excluded; every single byte has an id.
    merges: (left id, right id, new id); index = rank.
    whole_piece: look a whole pre-token up in `tokens` before merging.
    scheme: how documents are cut into pre-tokens.
    added_tokens: what may be found in a text first; those that are looked for in its normal form
        have theirs as text.
    """

    tokens: dict[int, bytes]
    merges: list[tuple[int, int, int]]
    whole_piece: bool
    scheme: Scheme
    added_tokens: tuple[AddedToken, ...] = ()
