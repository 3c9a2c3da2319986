"""WordPiece by likelihood, the specification: everything is counted anew for each merge.

A word is its first character and its other ones, which are written with ## before them. The score
of a pair of neighbours is count(pair) / (count(left) · count(right)): how much a merge raises the
likelihood of a unigram model of the text. Fractions are compared exactly.

    >>> rules = WordPieceRules(max_tokens=100, max_merges=2, min_frequency=1)
    >>> learn_wordpieces([(b"hug", 10), (b"hugs", 5), (b"pug", 5)], rules).merges
    [('##g', '##s', 5, 20, 5), ('##u', '##g', 15, 20, 15)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise

from bpe.backends.recipe_values import WordPieceList, WordPieceRules
from bpe.backends.values import MAX_COUNT
from bpe.errors import CountTableError, SettingsError

__all__ = ["learn_wordpieces"]

_CONTINUES = "##"
_WHITE_SPACE = frozenset(
    map(
        chr,
        (
            *(*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)),
            *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
        ),
    )
)

Symbols = list[str]
Pair = tuple[str, str]


def learn_wordpieces(words: Iterable[tuple[bytes, int]], rules: WordPieceRules) -> WordPieceList:
    """Learn pieces of words with positive counts; takes time in proportion to text · merges.

    words: for the tie order `first`, in the order of their first occurrence. Left out, and counted,
    are those of invalid UTF-8, empty or too long ones, and those with a character outside the
    alphabet; left out without counting, those that are white space.
    """
    given = list(words)
    kept = _known_characters(_readable(given, rules), rules.limit_alphabet)
    text = [([word[0], *(_CONTINUES + c for c in word[1:])], count) for word, count in kept]
    spaces = [(word, count) for word, count in given if _is_white_space(word)]
    alphabet = sorted({symbol for symbols, _ in text for symbol in symbols}, key=str.encode)
    for token in set(alphabet).intersection(rules.reserved):
        raise SettingsError(f"special token {token!r} is a character of the alphabet")
    tokens = [*rules.reserved, *alphabet]
    merges: list[tuple[str, str, int, int, int]] = []
    stop_reason = "vocab_size"
    while len(tokens) < rules.max_tokens and len(merges) < rules.max_merges:
        best = _best_pair(text, tokens, rules)
        if best is None:
            stop_reason = "exhausted"
            break
        merges.append(best)
        made = _joined(best[:2])
        if made not in tokens:
            tokens.append(made)
        for symbols, _ in text:
            _merge(symbols, best[:2], made)
    used = len(kept) + len(spaces)
    uses = sum(count for _, count in kept) + sum(count for _, count in spaces)
    all_uses = sum(count for _, count in given)
    return WordPieceList(tokens, merges, stop_reason, len(given) - used, all_uses - uses)


def _readable(words: list[tuple[bytes, int]], rules: WordPieceRules) -> list[tuple[str, int]]:
    readable: list[tuple[str, int]] = []
    characters = 0
    for index, (data, count) in enumerate(words):
        if count < 1:
            raise CountTableError(f"words[{index}] has count {count}: counts start at 1")
        try:
            word = data.decode()
        except UnicodeDecodeError:
            continue
        if 0 < len(word) <= rules.max_word_chars and not _is_white_space(data):
            readable.append((word, count))
            characters += len(word) * count
    if characters > MAX_COUNT:
        raise CountTableError(
            f"a character occurs more than {MAX_COUNT} times: train on a sample, or divide the "
            "counts"
        )
    return readable


def _is_white_space(data: bytes) -> bool:
    return bool(data) and set(data.decode("utf-8", "replace")) <= _WHITE_SPACE


def _known_characters(words: list[tuple[str, int]], limit: int | None) -> list[tuple[str, int]]:
    """Words whose characters are all among the most frequent."""
    uses: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            uses[character] += count
    known = set(sorted(uses, key=lambda c: (-uses[c], c))[:limit])
    return [(word, count) for word, count in words if known.issuperset(word)]


def _best_pair(
    text: list[tuple[Symbols, int]], tokens: list[str], rules: WordPieceRules
) -> tuple[str, str, int, int, int] | None:
    uses: Counter[str] = Counter()
    pairs: Counter[Pair] = Counter()  # in the order of the first occurrence
    for symbols, count in text:
        for symbol in symbols:
            uses[symbol] += count
        for pair in pairwise(symbols):
            pairs[pair] += count
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    best: tuple[Fraction, object, Pair] | None = None
    for place, (pair, count) in enumerate(pairs.items()):
        if count < rules.min_frequency or not _is_allowed(pair, rules):
            continue
        order = {
            "id": (ids[pair[0]], ids[pair[1]]),
            "bytes": (pair[0].encode(), pair[1].encode()),
            "first": (place,),
        }[rules.tie_order]
        candidate = (-Fraction(count, uses[pair[0]] * uses[pair[1]]), order, pair)
        if best is None or candidate < best:
            best = candidate
    if best is None:
        return None
    left, right = best[2]
    return left, right, pairs[left, right], uses[left], uses[right]


def _is_allowed(pair: Pair, rules: WordPieceRules) -> bool:
    made = _joined(pair)
    # The text of a word's beginning would read as that of a continuation.
    reads_wrong = made.startswith(_CONTINUES) and not _continues(pair[0])
    return not reads_wrong and made not in rules.forbidden


def _continues(symbol: str) -> bool:
    # A word's beginning is never longer than ## if it starts with it: no merge makes that.
    return symbol.startswith(_CONTINUES) and len(symbol) > len(_CONTINUES)


def _joined(pair: Pair) -> str:
    return pair[0] + pair[1].removeprefix(_CONTINUES)


def _merge(symbols: Symbols, pair: Pair, made: str) -> None:
    """Replace the pair by what it makes, from left to right."""
    merged: Symbols = []
    place = 0
    while place < len(symbols):
        if tuple(symbols[place : place + 2]) == pair:
            merged.append(made)
            place += 2
        else:
            merged.append(symbols[place])
            place += 1
    symbols[:] = merged
