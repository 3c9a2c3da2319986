"""The specification of rank tables: which merges the ranks of tokens stand for."""

from __future__ import annotations

from collections.abc import Mapping

from bpe.errors import VocabularyError

__all__ = ["recover_merges"]

_UNRANKED = 2**63


def recover_merges(ranks: Mapping[bytes, int]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Find the merges of a rank table; see `bpe.backend.Backend.recover_merges`."""
    merges: list[tuple[int, int, int]] = []
    unmerged: list[int] = []
    for place, (token, rank) in enumerate(sorted(ranks.items(), key=lambda item: item[1])):
        if len(token) < 2:
            continue
        pair = _last_pair(token, rank, ranks)
        if pair is None:
            unmerged.append(rank)
            continue
        if any(part not in ranks for part in pair):
            raise VocabularyError(
                f"token {place} by rank holds a byte that is no token: "
                "a vocabulary needs all of them"
            )
        merges.append((ranks[pair[0]], ranks[pair[1]], rank))
    return merges, unmerged


def _last_pair(token: bytes, rank: int, ranks: Mapping[bytes, int]) -> list[bytes] | None:
    """Find the two parts that merging below `rank` leaves of a token; None if more are left."""
    parts = [token[index : index + 1] for index in range(len(token))]
    while len(parts) > 2:
        best, place = rank, 0
        left = parts[0]
        for index in range(1, len(parts)):
            right = parts[index]
            joined_rank = ranks.get(left + right, _UNRANKED)
            if joined_rank < best:
                best, place = joined_rank, index
            left = right
        if not place:
            return None
        parts[place - 1 : place + 1] = [parts[place - 1] + parts[place]]
    return parts
