"""The specification of rank tables: which merges the ranks of tokens stand for.

In a rank table any two neighbours whose joined bytes are a token may merge, with the rank of that
token. Each token still is made by one pair at most. Until a token is made no merge crosses its
ends, so merges within it are those of its bytes alone, whatever stands around it. The pair that
these end with is the only pair of neighbours that can ever spell the token.

So ranks stand for a list of merges, one a token, in the order of the tokens they make. A pair may
have a lower rank than the tokens that it joins: it merges as soon as both are there.
"""

from __future__ import annotations

from collections.abc import Mapping

from bpe.errors import VocabularyError
from bpe.reference.encoding import merge_by_rank

__all__ = ["recover_merges"]


def recover_merges(ranks: Mapping[bytes, int]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Find the merges of a rank table; see `bpe.backends.protocol.Backend.recover_merges`."""
    places = {token: place for place, (token, _) in enumerate(sorted(ranks.items(), key=_rank))}
    merges: dict[tuple[int, int], tuple[int, int]] = {}
    unmerged: list[int] = []
    # Merges within a token make shorter tokens, whose own merges are known by then.
    for token in sorted((token for token in ranks if len(token) > 1), key=len):
        try:
            parts = [ranks[bytes([value])] for value in token]
        except KeyError:
            raise VocabularyError(
                f"token {places[token]} by rank holds a byte that is no token: "
                "a vocabulary needs all of them"
            ) from None
        parts = merge_by_rank(parts, merges)
        if len(parts) == 2:
            merges[parts[0], parts[1]] = (ranks[token], ranks[token])
        else:
            unmerged.append(ranks[token])
    by_rank = sorted((rank, pair) for pair, (rank, _) in merges.items())
    return [(*pair, rank) for rank, pair in by_rank], sorted(unmerged)


def _rank(item: tuple[bytes, int]) -> int:
    return item[1]
