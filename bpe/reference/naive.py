r"""The specification: byte pair encoding in two short functions. Read this file first.

*Training.* Start with text as a list of symbols, one for each byte. Count every pair of adjacent
symbols, overlaps included: `aaa` holds the pair (a, a) twice. Merge the most frequent pair into one
new symbol, from left to right: `aaa` becomes (aa)(a). Count again, and repeat. The merges, in the
order in which they were made, are the tokenizer.

*Encoding.* Start with one symbol for each byte. Apply every merge once, in the order of training.
*Decoding* joins the bytes of the tokens.

*Pre-tokens.* Text is cut into pre-tokens first (words, mostly), and no merge crosses from one to
the next. Training sees each distinct pre-token once, with its count as weight.

*Ties.* Several pairs may have the highest count. The tie order decides between them:

    hf      the lower pair of ids (left id first), as Hugging Face's trainer does; the ids of the
            256 bytes follow GPT-2's order of printable characters
    id      the lower pair of ids; the id of a byte is its value
    bytes   the pair whose left token has the lower bytes, then the right token
    first   the pair that occurs first in the text as it is now

Every other implementation here is tested against this one: `bpe.reference.training` and
`bpe.reference.encoding` (the portable backend, incremental) and `bpe/native` (C++).

    >>> words = [(b"low", 5), (b"lower", 2), (b"newest", 6)]
    >>> learned = naive_merges(words, MergeRules(max_merges=4))
    >>> learned.merges
    [(b'w', b'e'), (b'l', b'o'), (b'e', b'we'), (b'n', b'ewe')]
    >>> learned.counts
    [8, 7, 6, 6]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from bpe.backends.values import EncodingModel, MergeList, MergeRules
from bpe.encoding.printable_bytes import PRINTABLE_ORDER

__all__ = ["naive_ids", "naive_merges"]

Pair = tuple[int, int]


def naive_merges(sequences: Iterable[tuple[bytes, int]], rules: MergeRules) -> MergeList:
    """Learn merges: count all pairs, merge the best one, and start over.

    sequences: pre-tokens (or whole documents) with their weights, in the order of their first
    occurrence in the text. rules: when to stop, and which pairs are never merged.
    """
    tokens = [
        bytes([byte]) for byte in (PRINTABLE_ORDER if rules.tie_order == "hf" else range(256))
    ]
    rows = [([tokens.index(bytes([byte])) for byte in text], weight) for text, weight in sequences]
    merges: list[tuple[bytes, bytes]] = []
    counts: list[int] = []

    def tie_key(pair: Pair) -> tuple[Any, ...]:
        left, right = pair
        by_bytes = (tokens[left], tokens[right])
        # Pairs are counted in the order of the text, and min() keeps the first of equal keys.
        return {"hf": pair, "id": pair, "bytes": by_bytes, "first": ()}[rules.tie_order]

    while len(merges) < rules.max_merges:
        found: Counter[Pair] = Counter()
        for symbols, weight in rows:
            for pair in pairwise(symbols):
                found[pair] += weight
        allowed = [pair for pair in found if rules.allows(tokens[pair[0]] + tokens[pair[1]])]
        if not allowed:
            return MergeList(merges, counts, "exhausted")
        highest = max(found[pair] for pair in allowed)
        if highest < rules.min_frequency:
            return MergeList(merges, counts, "min_frequency")
        best = min((pair for pair in allowed if found[pair] == highest), key=tie_key)
        rows = [(_merge(symbols, best, len(tokens)), weight) for symbols, weight in rows]
        merges.append((tokens[best[0]], tokens[best[1]]))
        counts.append(highest)
        tokens.append(tokens[best[0]] + tokens[best[1]])
    return MergeList(merges, counts, "vocab_size")


def naive_ids(model: EncodingModel, pretoken: bytes) -> list[int]:
    """Encode a pre-token: apply every merge once, lowest rank first."""
    ids = {token: token_id for token_id, token in model.tokens.items()}
    if model.whole_piece and pretoken in ids:
        return [ids[pretoken]]
    symbols = [ids[bytes([byte])] for byte in pretoken]
    for left, right, made in model.merges:
        symbols = _merge(symbols, (left, right), made)
    return symbols


def _merge(symbols: list[int], pair: Pair, made: int) -> list[int]:
    """Replace a pair by a new symbol, from left to right."""
    merged: list[int] = []
    place = 0
    while place < len(symbols):
        if tuple(symbols[place : place + 2]) == pair:
            merged.append(made)
            place += 2
        else:
            merged.append(symbols[place])
            place += 1
    return merged
