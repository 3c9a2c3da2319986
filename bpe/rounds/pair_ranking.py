"""Pairs in the order in which greedy training would choose them, were their counts to stay.

The order is: higher count first; then, by the tie order, lower ids or lower bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.values import MergeRules, StopBefore
from bpe.errors import SettingsError

__all__ = [
    "PAIR_SCHEMA",
    "RankedPairs",
    "SafePrefix",
    "conflict_free_prefix",
    "forbidden_pairs",
    "keep_best",
    "merge_rankings",
    "pair_at",
    "pair_keys",
    "rank_pairs",
    "sum_counts",
]

Pair = tuple[int, int]

PAIR_SCHEMA = pa.schema(
    [
        pa.field("left", pa.uint32(), nullable=False),
        pa.field("right", pa.uint32(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
    ]
)
"""Pairs of token ids with a count."""


@dataclass(frozen=True)
class RankedPairs:
    """The best pairs of a table, or of all of them, and what is known of the rest.

    pairs: `PAIR_SCHEMA`, best first. dropped: the best pair that is not among them; None: there
    is none. total: sum of the counts of all pairs, dropped ones too. mergeable: how many pairs
    there are, dropped ones too, that a merge may be made of.
    """

    pairs: pa.Table
    dropped: StopBefore | None
    total: int
    mergeable: int


@dataclass(frozen=True)
class SafePrefix:
    """The first pairs of a ranking, whose merges are the next ones of greedy training for sure.

    pairs: how many pairs of the ranking. merges: how many of them are merged: all but those that
    spell a forbidden token.
    """

    pairs: int
    merges: int


def rank_pairs(pairs: pa.Table, tokens: Sequence[bytes], tie_order: str) -> pa.Table:
    """The pairs, best first. tokens: bytes of every id."""
    if tie_order == "first":
        raise SettingsError("tie order 'first' cannot be had in merge rounds: use hf, id or bytes")
    left, right = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    if tie_order == "bytes":
        places = _places_by_bytes(tokens)
        left, right = places[left], places[right]
    order = np.lexsort((right, left, -pairs["count"].to_numpy()))
    return pairs.take(pa.array(order)).combine_chunks()


def keep_best(
    pairs: pa.Table, limit: int, tokens: Sequence[bytes], rules: MergeRules
) -> RankedPairs:
    """The best pairs of a table: no more than limit, and none rarer than the rules' minimum."""
    barred = forbidden_pairs(tokens, rules)
    keys = pair_keys(pairs["left"].to_numpy(), pairs["right"].to_numpy())
    barred_here = int(np.isin(keys, _keys_of(barred)).sum())
    ranked = rank_pairs(pairs, tokens, rules.tie_order)
    frequent = pc.sum(pc.greater_equal(pairs["count"], rules.min_frequency)).as_py() or 0
    # Pairs that are never merged must not crowd out all others.
    kept = min(frequent, max(limit, len(barred) + 1))
    return RankedPairs(
        pairs=ranked.slice(0, kept),
        dropped=pair_at(ranked, kept),
        total=sum_counts(pairs["count"]),
        mergeable=pairs.num_rows - barred_here,
    )


def merge_rankings(
    rankings: Sequence[RankedPairs], tokens: Sequence[bytes], tie_order: str
) -> RankedPairs:
    """One ranking of disjoint ones, as far as it can be known: up to the best dropped pair."""
    dropped = [each.dropped for each in rankings if each.dropped is not None]
    rows = pa.concat_tables(
        [
            PAIR_SCHEMA.empty_table(),
            *(each.pairs for each in rankings),
            PAIR_SCHEMA.empty_table()
            if not dropped
            else pa.table(
                [
                    [each.left for each in dropped],
                    [each.right for each in dropped],
                    [each.count for each in dropped],
                ],
                schema=PAIR_SCHEMA,
            ),
        ]
    )
    ranked = rank_pairs(rows, tokens, tie_order)
    known = ranked.num_rows
    if dropped:
        keys = pair_keys(ranked["left"].to_numpy(), ranked["right"].to_numpy())
        lost = _keys_of((each.left, each.right) for each in dropped)
        known = int(np.flatnonzero(np.isin(keys, lost))[0])
    return RankedPairs(
        pairs=ranked.slice(0, known),
        dropped=pair_at(ranked, known),
        total=sum(each.total for each in rankings),
        mergeable=sum(each.mergeable for each in rankings),
    )


def pair_at(ranked: pa.Table, place: int) -> StopBefore | None:
    """The pair at a place of a ranking; None after its end."""
    if place >= ranked.num_rows:
        return None
    row = ranked.slice(place, 1).to_pylist()[0]
    return StopBefore(row["count"], row["left"], row["right"])


def sum_counts(counts: pa.ChunkedArray) -> int:
    """Exact sum of int64 counts, however large."""
    values = counts.to_numpy()
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def forbidden_pairs(tokens: Sequence[bytes], rules: MergeRules) -> set[Pair]:
    """Pairs of ids that together spell a forbidden token."""
    if not rules.forbidden:
        return set()
    ids = {token: number for number, token in enumerate(tokens)}
    return {
        (ids[text[:cut]], ids[text[cut:]])
        for text in rules.forbidden
        for cut in range(1, len(text))
        if text[:cut] in ids and text[cut:] in ids
    }


def conflict_free_prefix(
    ranking: RankedPairs, tokens: Sequence[bytes], rules: MergeRules
) -> SafePrefix:
    """How many of the best pairs are, in their order, the next merges of greedy training.

    That holds for a pair if

    - no better pair shares a token with it in such a way that the two could overlap;
    - no run of a better pair (x, x) can leave a pair of equal or higher count after;
    - in the tie order `bytes`, no token of a better pair can tie with it and go before it.

    The first pair that is merged needs none of these.
    """
    barred = forbidden_pairs(tokens, rules)
    lefts: set[int] = set()
    rights: set[int] = set()
    merged: list[Pair] = []
    highest_of_runs = 0
    ties = _Ties(ranking, tokens) if rules.tie_order == "bytes" else None
    rows = ranking.pairs
    for place, (left, right, count) in enumerate(_iterate(rows)):
        overlaps = _overlaps(left, right, lefts, rights)
        if merged and (
            overlaps
            or _run_overtakes(count, highest_of_runs, rules.tie_order)
            or (ties is not None and ties.may_go_before(place, left, count, merged))
        ):
            return SafePrefix(place, len(merged))
        lefts.add(left)
        rights.add(right)
        if (left, right) in barred:
            continue
        merged.append((left, right))
        if left == right:
            highest_of_runs = max(highest_of_runs, _highest_after_run(count))
        if overlaps:
            return SafePrefix(place + 1, len(merged))
    return SafePrefix(rows.num_rows, len(merged))


def _iterate(pairs: pa.Table) -> Iterator[tuple[int, int, int]]:
    """Rows of `PAIR_SCHEMA`; most are never asked for."""
    for batch in pairs.to_batches(max_chunksize=1024):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _overlaps(left: int, right: int, lefts: set[int], rights: set[int]) -> bool:
    return right in lefts or left in rights


def _run_overtakes(count: int, highest_of_runs: int, tie_order: str) -> bool:
    return count <= highest_of_runs if tie_order == "bytes" else count < highest_of_runs


def _highest_after_run(count: int) -> int:
    """Bound of the counts of (z, z) and (z, x) after x x became z, from the count of (x, x)."""
    return count // 2


class _Ties:
    """Which tokens begin pairs of a given count, to see ties by bytes coming."""

    def __init__(self, ranking: RankedPairs, tokens: Sequence[bytes]) -> None:
        self._tokens = tokens
        self._dropped = ranking.dropped
        self._last_places: dict[tuple[int, int], int] = {}
        rows = (ranking.pairs["left"].to_pylist(), ranking.pairs["count"].to_pylist())
        for place, (left, count) in enumerate(zip(*rows, strict=True)):
            self._last_places[left, count] = place

    def may_go_before(self, place: int, left: int, count: int, merged: list[Pair]) -> bool:
        """Whether a token made before may begin a pair that ties with the one at this place."""
        unknown = self._dropped is not None and self._dropped.count == count
        return any(
            (unknown or self._last_places.get((merged_right, count), -1) > place)
            and self._tokens[merged_left] + self._tokens[merged_right] < self._tokens[left]
            for merged_left, merged_right in merged
        )


def _places_by_bytes(tokens: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    places = np.empty(len(tokens), np.uint32)
    places[order] = np.arange(len(tokens), dtype=np.uint32)
    return places


def pair_keys(
    left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint64]:
    """One number for each pair; their order is that of (left, right)."""
    return (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)


def _keys_of(pairs: Iterable[Pair]) -> npt.NDArray[np.uint64]:
    return np.array([left << 32 | right for left, right in pairs], np.uint64)
