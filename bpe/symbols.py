"""Symbol mode: characters with an end-of-word mark, for teaching and for older vocabularies.

Words are given, each ends in a mark (`</w>`), and the first symbols are the characters that the
words hold. This is the textbook algorithm, written to be read: every round counts all pairs anew.
It stands outside the promise that any bytes come back: a character that training did not see has
no symbol, and gives an error or a counted unknown symbol.

    >>> model = train_symbols({"low": 5, "lower": 2}, 3)
    >>> model.merges
    [('l', 'o'), ('lo', 'w'), ('low', '</w>')]
    >>> model.split("lowlow")
    ['low', 'low</w>']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from bpe.errors import InputError, SettingsError

__all__ = ["SCORES", "SYMBOL_TIE_ORDERS", "SymbolModel", "SymbolText", "train_symbols"]

SYMBOL_TIE_ORDERS = ("first", "bytes", "id")
"""Earliest occurrence in the words as given; lower symbols by text; lower symbols by id."""

SCORES = ("count", "wordpiece")
"""A pair's count, or (WordPiece) its count divided by the product of its symbols' counts."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class SymbolText:
    """An encoded text.

    ids: of its symbols, in order; unknown characters have the id `SymbolModel.unknown_id`.
    unknown: how often each character outside the alphabet occurred.
    """

    ids: list[int]
    unknown: Counter[str]


@dataclass(frozen=True)
class SymbolModel:
    """Merges learned by `train_symbols`.

    alphabet: characters and the end mark, ascending; their ids are their indices.
    merges: pairs in the order they were made; they make the next ids.
    counts: pair count of each merge when it was made.
    end_mark: symbol that ends every word.
    """

    alphabet: list[str]
    merges: list[Pair]
    counts: list[int]
    end_mark: str = "</w>"

    @property
    def vocabulary(self) -> list[str]:
        """All symbols; index = id."""
        return self.alphabet + [left + right for left, right in self.merges]

    @property
    def unknown_id(self) -> int:
        """Id of characters outside the alphabet: the one after the last symbol's."""
        return len(self.alphabet) + len(self.merges)

    def split(self, word: str, *, rounds: int | None = None, marked: bool = True) -> list[str]:
        """Symbols of a word after all merges, or the first `rounds` of them.

        marked: the word ends here, so that the end mark is added. Characters outside the alphabet
        stand for themselves.
        """
        _check_word(word, self.end_mark)
        symbols = [*word, self.end_mark] if marked else list(word)
        for pair in self.merges[:rounds]:
            symbols = _merge(symbols, pair)
        return symbols

    def encode(self, words: Iterable[str], *, unknown: str = "error") -> SymbolText:
        """Ids of words, one after the other.

        unknown: what a character outside the alphabet is: an `error` (`InputError` naming it), or
            `unk`: the id `unknown_id`, and counted.
        """
        if unknown not in {"error", "unk"}:
            raise SettingsError(f"unknown is {unknown!r}: use 'error' or 'unk'")
        ids = {symbol: index for index, symbol in enumerate(self.vocabulary)}
        encoded = SymbolText([], Counter())
        for word in words:
            for symbol in self.split(word):
                if symbol not in ids:
                    if unknown == "error":
                        raise InputError(
                            f"character {symbol!r} of word {word!r} is not in the alphabet: "
                            "train on text that holds it, or encode with unknown='unk'"
                        )
                    encoded.unknown[symbol] += 1
                encoded.ids.append(ids.get(symbol, self.unknown_id))
        return encoded

    def decode(self, ids: Iterable[int], *, unknown: str = "\ufffd") -> str:
        """Text of ids, words separated by a space; `unknown` stands for unknown characters."""
        symbols = [*self.vocabulary, unknown]
        text = "".join(symbols[index] for index in ids)
        return text.replace(self.end_mark, " ").removesuffix(" ")


def train_symbols(
    words: Mapping[str, int],
    max_merges: int,
    *,
    tie_order: str = "first",
    score: str = "count",
    min_frequency: int = 1,
    end_mark: str = "</w>",
) -> SymbolModel:
    """Learn merges of symbols from words with counts.

    max_merges: stop after so many, or earlier when no pair occurs min_frequency times.
    tie_order, score: one of `SYMBOL_TIE_ORDERS`, one of `SCORES`.

    Raises `SettingsError` for other names and for numbers that are too low, `InputError` for a
    word that holds the end mark or has a count below 1.
    """
    if tie_order not in SYMBOL_TIE_ORDERS:
        raise SettingsError(f"tie order {tie_order!r}: use one of {', '.join(SYMBOL_TIE_ORDERS)}")
    if score not in SCORES:
        raise SettingsError(f"score {score!r}: use one of {', '.join(SCORES)}")
    if max_merges < 0 or min_frequency < 1 or not end_mark:
        raise SettingsError(
            f"max_merges={max_merges}, min_frequency={min_frequency}, end_mark={end_mark!r}: "
            "at least 0, at least 1, not empty"
        )
    for word, count in words.items():
        _check_word(word, end_mark)
        if count < 1:
            raise InputError(f"word {word!r} has count {count}: counts start at 1")
    sequences = [([*word, end_mark], count) for word, count in words.items()]
    model = SymbolModel(sorted({end_mark, *"".join(words)}), [], [], end_mark)
    while len(model.merges) < max_merges:
        counts = _count_pairs(sequences)
        frequent = {pair: count for pair, count in counts.items() if count >= min_frequency}
        if not frequent:
            break
        best = _best_pair(frequent, sequences, score, _tie_key(tie_order, model.vocabulary))
        model.merges.append(best)
        model.counts.append(counts[best])
        sequences = [(_merge(symbols, best), count) for symbols, count in sequences]
    return model


def _best_pair(
    counts: Mapping[Pair, int],
    sequences: list[tuple[list[str], int]],
    score: str,
    tie_key: Callable[[Pair], Any],
) -> Pair:
    """Pair of the highest score; of several, the lowest by tie_key, or the first counted."""
    scores: Mapping[Pair, Fraction | int] = counts
    if score == "wordpiece":
        singles: Counter[str] = Counter()
        for symbols, count in sequences:
            for symbol in symbols:
                singles[symbol] += count
        scores = {
            pair: Fraction(count, singles[pair[0]] * singles[pair[1]])
            for pair, count in counts.items()
        }
    highest = max(scores.values())
    return min((pair for pair in scores if scores[pair] == highest), key=tie_key)


def _tie_key(tie_order: str, vocabulary: list[str]) -> Callable[[Pair], Any]:
    if tie_order == "bytes":
        return lambda pair: (pair[0].encode(), pair[1].encode())
    if tie_order == "id":
        return lambda pair: (vocabulary.index(pair[0]), vocabulary.index(pair[1]))
    # Pairs are counted in the order of their first occurrence, and min() keeps the first.
    return lambda _: 0


def _count_pairs(sequences: list[tuple[list[str], int]]) -> Counter[Pair]:
    counts: Counter[Pair] = Counter()
    for symbols, count in sequences:
        for pair in pairwise(symbols):
            counts[pair] += count
    return counts


def _merge(symbols: list[str], pair: Pair) -> list[str]:
    """Replace a pair by its concatenation, from left to right."""
    merged: list[str] = []
    position = 0
    while position < len(symbols):
        if tuple(symbols[position : position + 2]) == pair:
            merged.append(pair[0] + pair[1])
            position += 2
        else:
            merged.append(symbols[position])
            position += 1
    return merged


def _check_word(word: str, end_mark: str) -> None:
    if end_mark in word:
        raise InputError(
            f"word {word!r} holds the end mark {end_mark!r}: choose an end mark that no word holds"
        )
