"""The portable trainer: merges learned from weighted sequences of bytes, counting incrementally.

It equals `bpe.reference.naive`, which is the specification and the place to start.

A sequence is a distinct pre-token with its count, or (raw training) a document with weight 1. The
count of a pair is the weighted number of adjacent positions that hold it, overlaps included: aaaa
holds the pair (a, a) three times. Each step merges the pair of the highest count, the tie order
deciding between equals, everywhere and from left to right: aaa becomes (aa)(a).

Counting is incremental. Two facts carry it (a merged pair makes a token that never was before):
the count of a pair rises only in the step that makes one of its halves, so that an entry of the
heap can only be too high, and is put right when it comes up; and the places of a pair are found
in that same step, from left to right, so that their list is in order from the start.

    >>> learn_merges([(b"aaaa", 2), (b"bc", 5)], MergeRules(max_merges=2)).merges
    [(b'a', b'a'), (b'b', b'c')]
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise

from bpe.backends.values import MAX_COUNT, MergeList, MergeRules, ProgressCallback, StopBefore
from bpe.encoding.printable_bytes import PRINTABLE_ORDER
from bpe.errors import CountTableError

__all__ = ["base_symbols", "continue_merges", "learn_merges", "learn_symbol_merges"]

Pair = tuple[int, int]

_GONE = -1  # symbol of a position that its left neighbour has absorbed
_NONE = -1  # neighbour beyond the end of a sequence
_PROGRESS_STEP = 64  # merges


def base_symbols(tie_order: str) -> bytes:
    """Byte values in the order of their base ids: GPT-2's for `hf`, their own for the others."""
    return PRINTABLE_ORDER if tie_order == "hf" else bytes(range(256))


def learn_merges(
    sequences: Iterable[tuple[bytes, int]],
    rules: MergeRules,
    progress: ProgressCallback | None = None,
) -> MergeList:
    """Learn merges from sequences with positive weights, in the order in which they are made.

    sequences: for the tie order `first`, in the order of their first occurrence in the text.
    Raises `CountTableError` if a pair's count is above `MAX_COUNT`.
    """
    base = base_symbols(rules.tie_order)
    symbol_of_byte = bytes(base.index(value) for value in range(256))
    tokens = [bytes([value]) for value in base]
    symbols = ((data.translate(symbol_of_byte), weight) for data, weight in sequences)
    return learn_symbol_merges(symbols, tokens, rules, progress)


def learn_symbol_merges(
    sequences: Iterable[tuple[Sequence[int], int]],
    tokens: Sequence[bytes],
    rules: MergeRules,
    progress: ProgressCallback | None = None,
) -> MergeList:
    """The same from weighted sequences of ids of `tokens`; the first merge makes the next one."""
    state = _TrainingState(sequences, tokens, rules.tie_order)
    picks, stop_reason = _pick_merges(state, rules, None, progress)
    return MergeList(
        [(state.tokens[left], state.tokens[right]) for (left, right), _ in picks],
        [count for _, count in picks],
        stop_reason,
    )


def continue_merges(
    sequences: Iterable[tuple[Sequence[int], int]],
    tokens: Sequence[bytes],
    rules: MergeRules,
    stop: StopBefore | None = None,
) -> list[tuple[Pair, int]]:
    """Learn merges from weighted sequences of ids of `tokens`; pairs of ids, with their counts.

    The first merge makes the id len(tokens). rules: max_merges is how many more there may be.
    """
    picks, _ = _pick_merges(_TrainingState(sequences, tokens, rules.tie_order), rules, stop)
    return picks


def _pick_merges(
    state: _TrainingState,
    rules: MergeRules,
    stop: StopBefore | None,
    progress: ProgressCallback | None = None,
) -> tuple[list[tuple[Pair, int]], str]:
    """Picks, and why there are no more of them; `stopped` for `stop`."""
    picks: list[tuple[Pair, int]] = []
    stop_reason = "vocab_size"
    while len(picks) < rules.max_merges:
        best = state.pop_best(rules)
        if best is None:
            stop_reason = "exhausted"
            break
        if best[1] < rules.min_frequency:
            stop_reason = "min_frequency"
            break
        if stop is not None and not stop.is_passed_by(*best, rules.tie_order):
            stop_reason = "stopped"
            break
        picks.append(best)
        state.merge(best[0])
        if progress is not None and len(picks) % _PROGRESS_STEP == 0:
            progress(len(picks), rules.max_merges)
    if progress is not None:
        progress(len(picks), rules.max_merges)
    return picks, stop_reason


class _Greatest:
    """Comes before what is less."""

    def __init__(self, value: tuple[bytes, bytes]) -> None:
        self.value = value

    def __lt__(self, other: _Greatest) -> bool:
        return self.value > other.value


class _TrainingState:
    """Sequences as one chain of symbols, the pairs in it, and a heap of candidates.

    tokens: bytes of each symbol. symbols, weights, before, after: per position; the last two are
    the positions of the neighbours, or `_NONE`. counts: per pair, in the chain as it is now.
    places: positions of a pair's left symbol, ascending; some may hold the pair no more.
    """

    def __init__(
        self,
        sequences: Iterable[tuple[Sequence[int], int]],
        tokens: Sequence[bytes],
        tie_order: str,
    ) -> None:
        self.tokens = list(tokens)
        self.symbols: list[int] = []
        self.weights: list[int] = []
        self.before = array("q")
        self.after = array("q")
        self.counts: dict[Pair, int] = {}
        self.places: dict[Pair, array[int]] = {}
        self._tie_order = tie_order
        for symbols, weight in sequences:
            self._append(symbols, weight)
        self._check_counts()
        self._heap = [self._candidate(pair) for pair in self.counts]
        heapify(self._heap)

    def _append(self, symbols: Sequence[int], weight: int) -> None:
        start = len(self.symbols)
        end = start + len(symbols)
        if start == end:
            return
        self.symbols.extend(symbols)
        self.weights.extend([weight] * len(symbols))
        self.before.extend(chain((_NONE,), range(start, end - 1)))
        self.after.extend(chain(range(start + 1, end), (_NONE,)))
        for position, pair in enumerate(pairwise(symbols), start):
            self._add_place(pair, position, weight)

    def _add_place(self, pair: Pair, position: int, weight: int) -> None:
        places = self.places.get(pair)
        if places is None:
            self.places[pair] = array("q", (position,))
            self.counts[pair] = weight
        else:
            places.append(position)
            self.counts[pair] += weight

    def _check_counts(self) -> None:
        # Later counts are no higher: each pair's places lie on distinct places of one of these.
        for (left, right), count in self.counts.items():
            if count > MAX_COUNT:
                raise CountTableError(
                    f"pair ({self.tokens[left]!r}, {self.tokens[right]!r}) occurs {count} times, "
                    f"more than {MAX_COUNT}: train on a sample, or divide the counts"
                )

    def _candidate(self, pair: Pair) -> tuple[int, object, Pair]:
        left, right = pair
        order: object = pair
        if self._tie_order == "bytes":
            order = (self.tokens[left], self.tokens[right])
        elif self._tie_order == "greatest":
            order = _Greatest((self.tokens[left], self.tokens[right]))
        elif self._tie_order == "first":
            order = next(place for place in self.places[pair] if self._holds(place, pair))
        return -self.counts[pair], order, pair

    def _holds(self, position: int, pair: Pair) -> bool:
        following = self.after[position]
        return (
            self.symbols[position] == pair[0]
            and following != _NONE
            and self.symbols[following] == pair[1]
        )

    def pop_best(self, rules: MergeRules) -> tuple[Pair, int] | None:
        """Best pair that may be merged, with its count; it leaves the heap. None: there is none."""
        heap = self._heap
        while heap:
            claimed, _, pair = heappop(heap)
            count = self.counts[pair]
            if count != -claimed:
                if count:
                    heappush(heap, self._candidate(pair))
                continue
            if rules.allows(self.tokens[pair[0]] + self.tokens[pair[1]]):
                return pair, count
        return None

    def merge(self, pair: Pair) -> None:
        """Replace the pair by a new symbol everywhere, from left to right."""
        left, right = pair
        made = len(self.tokens)
        self.tokens.append(self.tokens[left] + self.tokens[right])
        touched: dict[Pair, None] = {}
        for position in self.places.pop(pair):
            if not self._holds(position, pair):
                continue
            weight = self.weights[position]
            absorbed = self.after[position]
            previous, following = self.before[position], self.after[absorbed]
            if previous != _NONE:
                neighbour = self.symbols[previous]
                self.counts[neighbour, left] -= weight
                self._add_place((neighbour, made), previous, weight)
                touched[neighbour, made] = None
            if following != _NONE:
                neighbour = self.symbols[following]
                self.counts[right, neighbour] -= weight
                self._add_place((made, neighbour), position, weight)
                touched[made, neighbour] = None
                self.before[following] = position
            self.symbols[position] = made
            self.symbols[absorbed] = _GONE
            self.after[position] = following
        del self.counts[pair]
        for new in touched:
            if self.counts[new]:
                heappush(self._heap, self._candidate(new))
