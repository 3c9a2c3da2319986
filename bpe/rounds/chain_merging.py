"""Merges applied to the chains that ends of shards form, and shared out to the shards again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.protocol import Backend
from bpe.rounds.boundaries import BoundaryRecord, ChainPart, ShardFix, stitch_chains
from bpe.rounds.run_coding import Run, encode_runs, join_runs, write_runs

__all__ = ["ChainTokens", "chain_units", "expand_chains", "merge_chains", "merge_chains_apart"]

Pair = tuple[int, int]


@dataclass(frozen=True)
class ChainTokens:
    """All chains, token by token.

    parts: of all chains, in order. owners: for each token, the index of its part. chains:
    large_list of uint32, one list a chain.
    """

    parts: list[ChainPart]
    owners: npt.NDArray[np.int64]
    chains: pa.LargeListArray


def chain_units(records: Iterable[BoundaryRecord]) -> int:
    """How many tokens the chains hold."""
    return sum(_token_count(part.runs) for parts in stitch_chains(records) for part in parts)


def expand_chains(records: Iterable[BoundaryRecord]) -> ChainTokens:
    """The chains of shards in order."""
    chains = list(stitch_chains(records))
    parts = [part for chain in chains for part in chain]
    runs = [run for part in parts for run in part.runs]
    lengths = [run for _, run in runs]
    tokens = np.repeat(np.array([token for token, _ in runs], np.uint32), lengths)
    sizes = [_token_count(part.runs) for part in parts]
    ends = np.cumsum([0, *(sum(_token_count(part.runs) for part in chain) for chain in chains)])
    return ChainTokens(
        parts=parts,
        owners=np.repeat(np.arange(len(parts)), sizes),
        chains=pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(tokens)),
    )


def merge_chains(
    chains: ChainTokens,
    left: pa.UInt32Array,
    right: pa.UInt32Array,
    tokens: Sequence[bytes],
    backend: Backend,
) -> list[ShardFix]:
    """What the ends of shards become. tokens: before the merges, which make the ids after them."""
    lengths = [len(token) for token in tokens]
    for first, second in zip(left.to_pylist(), right.to_pylist(), strict=True):
        lengths.append(lengths[first] + lengths[second])
    merged = backend.apply_merges(chains.chains, left, right, len(tokens), pa.uint32())
    old = chains.chains.values.to_numpy()
    new = merged.values.to_numpy()
    sizes = np.array(lengths, np.int64)
    old_starts = np.cumsum(sizes[old]) - sizes[old]
    new_starts = np.cumsum(sizes[new]) - sizes[new]
    owners = _owners_at(new_starts, old_starts, chains.owners)
    borders = np.searchsorted(owners, np.arange(len(chains.parts) + 1))
    coded = [encode_runs(new[start:end].tolist()) for start, end in _spans(borders)]
    return _make_fixes(chains.parts, coded)


def merge_chains_apart(
    records: Iterable[BoundaryRecord], made: Mapping[Pair, int]
) -> list[ShardFix]:
    """The same for pairs that cannot overlap, without writing runs out.

    made: pair to the id that replaces it; no token is the left of one pair and the right of
    another.
    """
    parts: list[ChainPart] = []
    coded: list[bytes] = []
    for chain in stitch_chains(records):
        results: list[list[Run]] = [[] for _ in chain]
        for place, run in _merge_runs(chain, made):
            results[place].append(run)
        parts += chain
        coded += [write_runs(join_runs([runs])) for runs in results]
    return _make_fixes(parts, coded)


def _merge_runs(chain: list[ChainPart], made: Mapping[Pair, int]) -> Iterator[tuple[int, Run]]:
    """Runs of the merged chain in order, each with the place of its part in the chain."""
    flat = [(token, run, place) for place, part in enumerate(chain) for token, run in part.runs]
    parts = [(token, list(runs)) for token, runs in groupby(flat, key=lambda each: each[0])]
    followers = [token for token, _ in parts[1:]] + [-1]
    is_begun = False  # the first token of the part went into the last of the one before
    for (token, runs), follower in zip(parts, followers, strict=True):
        spans = list(_place_spans(runs))
        total = spans[-1][2]
        if (token, token) in made:
            yield from _halve(token, made[token, token], spans, total)
            continue
        joined = made.get((token, follower))
        last = total if joined is None else total - 1
        for place, start, end in spans:
            rest = min(end, last) - max(start, int(is_begun))
            if rest > 0:
                yield place, (token, rest)
            if joined is not None and end == total:
                yield place, (joined, 1)
        is_begun = joined is not None


def _halve(
    token: int, doubled: int, spans: list[tuple[int, int, int]], total: int
) -> Iterator[tuple[int, Run]]:
    """A run whose tokens merge two by two from its start, wherever its parts begin."""
    for place, start, end in spans:
        pairs = (min(end, total - 1) + 1) // 2 - (start + 1) // 2
        if pairs > 0:
            yield place, (doubled, pairs)
        if end == total and total % 2:
            yield place, (token, 1)


def _place_spans(runs: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """(part's place, start, end) of the pieces of one run."""
    start = 0
    for _, run, place in runs:
        yield place, start, start + run
        start += run


def _owners_at(
    new_starts: npt.NDArray[np.int64],
    old_starts: npt.NDArray[np.int64],
    owners: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Part that holds the first byte of each new token."""
    return owners[np.searchsorted(old_starts, new_starts)]


def _make_fixes(parts: list[ChainPart], coded: list[bytes]) -> list[ShardFix]:
    fixes: dict[int, ShardFix] = {}
    for part, runs in zip(parts, coded, strict=True):
        before = fixes.get(part.shard, ShardFix(part.shard, b"", b"", 0, 0))
        count = _token_count(part.runs)
        fixes[part.shard] = (
            ShardFix(part.shard, before.head, runs, before.head_tokens, count)
            if part.is_tail
            else ShardFix(part.shard, runs, before.tail, count, before.tail_tokens)
        )
    return list(fixes.values())


def _token_count(runs: Iterable[Run]) -> int:
    return sum(run for _, run in runs)


def _spans(borders: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    return zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
