"""Where shards meet: the ends that they send, the chains that these form, and what becomes of them.

A shard cuts its tokens where no merge of the round can reach across. What stands before its first
cut and after its last belongs together with the ends of its neighbours: the driver puts the ends
into chains, merges these, and sends each shard back what its ends have become.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from bpe.errors import CountTableError
from bpe.rounds.run_coding import Run, read_runs

__all__ = [
    "BoundaryRecord",
    "ChainPart",
    "ShardFix",
    "check_neighbours",
    "stitch_chains",
    "straddling_pairs",
]


@dataclass(frozen=True)
class BoundaryRecord:
    """What a shard sends of its ends.

    shard: its number. tokens: how many it holds. open_left, open_right: see `ShardState`.
    has_cut: whether some place in it is cut, by the heavy set or as a sequence ends there.
    head, tail: run-coded tokens before the first cut and after the last; empty at a closed end.
        Without a cut, head is all of the shard and tail is empty.
    size: how many heavy pairs it was cut by; 0 in the step that counts, which cuts everywhere.
    sent: sum of the counts or weights that the shard sent besides, modulo 2**63.
    """

    shard: int
    tokens: int
    open_left: bool
    open_right: bool
    has_cut: bool
    head: bytes
    tail: bytes
    size: int
    sent: int


@dataclass(frozen=True)
class ShardFix:
    """What the ends of a shard become by the merges of a round.

    head, tail: run-coded tokens that stand there afterwards. head_tokens, tail_tokens: how many
    tokens of the old state they stand for.
    """

    shard: int
    head: bytes
    tail: bytes
    head_tokens: int
    tail_tokens: int


@dataclass(frozen=True)
class ChainPart:
    """The piece of a chain that one shard holds. is_tail: whether it is the shard's tail."""

    shard: int
    is_tail: bool
    runs: list[Run]


def check_neighbours(records: Sequence[BoundaryRecord]) -> None:
    """Check that records are of all shards in order, each going on as its neighbours do.

    Raises `CountTableError` that names the shard.
    """
    for number, record in enumerate(records):
        if record.shard != number:
            raise CountTableError(
                f"the boundary records have shard {record.shard} at place {number}: some shard's "
                "record is missing or there twice; run the step that made them again"
            )
    closed = [(False, "the start"), *((each.open_right, str(each.shard)) for each in records)]
    opens = [*((each.open_left, str(each.shard)) for each in records), (False, "the end")]
    for (goes_on, before), (comes_from, after) in zip(closed, opens, strict=True):
        if goes_on != comes_from:
            raise CountTableError(
                f"between shards {before} and {after} a sequence is open on one side alone: the "
                "state files are of different splits; start the training again"
            )


def stitch_chains(records: Iterable[BoundaryRecord]) -> Iterator[list[ChainPart]]:
    """Chains of the ends of shards in order; parts may be empty, and so may a whole chain."""
    parts: list[ChainPart] = []
    for record in records:
        if record.open_left:
            parts.append(ChainPart(record.shard, is_tail=False, runs=read_runs(record.head)))
        if not record.has_cut:
            continue
        if parts:
            yield parts
        parts = []
        if record.open_right:
            parts.append(ChainPart(record.shard, is_tail=True, runs=read_runs(record.tail)))
    if parts:
        yield parts


def straddling_pairs(records: Iterable[BoundaryRecord]) -> Iterator[tuple[int, int]]:
    """Pairs of tokens that stand in different shards, from the records of the step that counts."""
    for parts in stitch_chains(records):
        runs = chain.from_iterable(part.runs for part in parts)
        yield from pairwise(token for token, _ in runs)
