"""Figures of a tokenizer on a corpus, from exact counts.

Floats are made at the end alone, from whole numbers and in one order, so that equal counts give
equal figures to the last bit. A figure without a denominator is None.

Sources: entropy and Rényi efficiency, Zouhar et al. 2023 (Tokenization and the Noiseless Channel);
STRR, the share of words that one token covers; the Gini coefficient as a mean difference of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.insight.tally import MEASURES

__all__ = ["Counts", "compute_figures", "entropy_bits", "gini", "is_whole_utf8", "renyi_bits"]

_RENYI_ORDER = 2.5
_RARE = 100  # uses
_TOP = 100  # tokens

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """Exact counts of one tokenizer's tokens on a corpus; arrays are one entry an id.

    Attributes:
        tokens: bytes of each id, special tokens left out.
        ids: int64, ascending, of `tokens`; the arrays below go with it.
        count: int64, uses.
        documents: int64, documents that hold it.
        sources: int64, sources that hold it.
        top_source: int64, uses in the source that has most of them.
        totals: the sums of `bpe.insight.tally.MEASURES`.
        languages: the same sums for each language.
        word_types: distinct words, and how many of these are one token; None if not counted.
    """

    tokens: Sequence[bytes]
    ids: _Ints
    count: _Ints
    documents: _Ints
    sources: _Ints
    top_source: _Ints
    totals: Mapping[str, int]
    languages: Mapping[str, Mapping[str, int]]
    word_types: tuple[int, int] | None = None


def compute_figures(counts: Counts) -> dict[str, Any]:
    """All figures of one tokenizer.

    Returns:
        By name, plain values; `languages` has some by language. Bits are binary digits; a share
        is between 0 and 1.
    """
    totals = {name: counts.totals[name] for name in MEASURES}
    tokens, size = totals["tokens"], totals["bytes"]
    descending = np.sort(counts.count[counts.count > 0])[::-1]
    vocabulary, used = len(counts.ids), len(descending)
    entropy = entropy_bits(descending)
    renyi = renyi_bits(descending, _RENYI_ORDER)
    types, whole_types = counts.word_types or (0, 0)
    return {
        "totals": totals,
        **_ratios(totals),
        "strr_types": _share(whole_types, types),
        "word_types": types if counts.word_types else None,
        "entropy_bits": entropy,
        "entropy_efficiency": _per_bits(entropy, vocabulary),
        "unigram_bits_per_byte": None if entropy is None or not size else entropy * tokens / size,
        "renyi_2.5_bits": renyi,
        "renyi_2.5_efficiency": _per_bits(renyi, vocabulary),
        "renyi_2.5_efficiency_observed": _per_bits(renyi, used),
        "vocabulary": vocabulary,
        "used": used,
        "utilisation": _share(used, vocabulary),
        "never_used": vocabulary - used,
        "singletons": int((counts.count == 1).sum()),
        f"used_below_{_RARE}": int((counts.count < _RARE).sum()),
        "in_one_document": int((counts.documents == 1).sum()),
        "one_source_over_90": int(of_one_source(counts).sum()),
        f"top_{_TOP}_share": _share(int(descending[:_TOP].sum()), tokens),
        "mean_rank": _share(_rank_sum(descending), tokens),
        **_token_shares(counts, tokens),
        "languages": {name: _language(sums) for name, sums in sorted(counts.languages.items())},
        **_spread(counts.languages),
    }


def of_one_source(counts: Counts) -> npt.NDArray[np.bool_]:
    """Which tokens of 100 uses or more have over 90 % of them in one source."""
    # In whole numbers: more than 90 % is the same as less than 10 % elsewhere.
    elsewhere = counts.count - counts.top_source
    found: npt.NDArray[np.bool_] = (counts.count >= _RARE) & (10 * elsewhere < counts.count)
    return found


def _ratios(totals: Mapping[str, int]) -> dict[str, float | None]:
    tokens, words = totals["tokens"], totals["words"]
    spaced = 2 * totals["unspaced_chars"] < totals["chars"]
    return {
        "bytes_per_token": _share(totals["bytes"], tokens),
        "chars_per_token": _share(totals["chars"], tokens),
        "tokens_per_char": _share(tokens, totals["chars"]),
        "fertility": _share(tokens, words) if spaced else None,
        "strr_running": _share(totals["words_kept"], words) if spaced else None,
    }


def _language(sums: Mapping[str, int]) -> dict[str, Any]:
    return {
        "totals": {name: sums[name] for name in MEASURES},
        "tokens_per_byte": _share(sums["tokens"], sums["bytes"]),
        **_ratios(sums),
    }


def _spread(languages: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """How unequal the costs of languages are."""
    costs = [each["tokens"] / each["bytes"] for each in languages.values() if each["bytes"]]
    lowest = min(costs, default=0.0)
    premium = max(costs) / lowest if lowest and len(costs) > 1 else None
    return {"gini": gini(costs), "premium_max_min": premium}


def gini(costs: Sequence[float]) -> float | None:
    """Gini coefficient of costs: sum of |a - b| over all pairs / (2 n² mean); None below two."""
    total = math.fsum(costs)
    if len(costs) < 2 or not total:
        return None
    ascending = sorted(costs)
    # The sum over all pairs counts each difference twice.
    size = len(ascending)
    weighted = math.fsum((2 * i + 1 - size) * cost for i, cost in enumerate(ascending))
    return weighted / (size * total)


def entropy_bits(descending: _Ints) -> float | None:
    """Shannon entropy of the distribution of tokens, in bits; None without tokens.

    Args:
        descending: int64, uses of each used token.
    """
    total = int(descending.sum())
    if not total:
        return None
    return -math.fsum(n / total * math.log2(n / total) for n in descending.tolist())


def renyi_bits(descending: _Ints, order: float) -> float | None:
    """Rényi entropy of an order other than 1, in bits; arguments as `entropy_bits`."""
    total = int(descending.sum())
    if not total:
        return None
    powers = math.fsum((n / total) ** order for n in descending.tolist())
    return math.log2(powers) / (1 - order)


def _rank_sum(descending: _Ints) -> int:
    """Sum over all uses of the rank of their token, the most frequent one having rank 1."""
    return sum(rank * n for rank, n in enumerate(descending.tolist(), 1))


def _token_shares(counts: Counts, tokens: int) -> dict[str, Any]:
    """Figures by the bytes of tokens."""
    lengths = np.array([len(token) for token in counts.tokens], np.int64)
    partial = np.array([not is_whole_utf8(token) for token in counts.tokens], np.bool_)
    by_type: dict[str, int] = {}
    by_use: dict[str, int] = {}
    for length in np.unique(lengths).tolist():
        of_length = lengths == length
        by_type[str(length)] = int(of_length.sum())
        by_use[str(length)] = int(counts.count[of_length].sum())
    return {
        "single_byte_share": _share(int(counts.count[lengths == 1].sum()), tokens),
        "partial_utf8_tokens": int(partial.sum()),
        "partial_utf8_share": _share(int(counts.count[partial].sum()), tokens),
        "mean_length_of_types": _share(int(lengths.sum()), len(lengths)),
        "types_by_length": by_type,
        "uses_by_length": by_use,
    }


def is_whole_utf8(token: bytes) -> bool:
    """Whether a token is whole characters of UTF-8."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _per_bits(bits: float | None, types: int) -> float | None:
    """Share of the bits that so many types of equal frequency would have."""
    return bits / math.log2(types) if bits is not None and types > 1 else None
