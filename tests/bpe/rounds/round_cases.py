"""Cases for merge rounds, and the greedy training that they are checked against.

The trainer here counts everything anew for each merge.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa

from bpe.backends.protocol import Backend
from bpe.backends.values import MergeRules
from bpe.rounds.local_rounds import RoundSettings, train_in_rounds
from bpe.rounds.round_driver import RoundResult, base_tokens
from bpe.rounds.shard_state import ShardState

END = -1
Pair = tuple[int, int]


@dataclass
class Case:
    """Sequences of token ids with weights, spread over shards, and how to train on them."""

    sequences: list[list[int]]
    weights: list[int] | None
    cuts: list[int]
    rules: MergeRules
    settings: RoundSettings


@dataclass
class Naive:
    """Greedy training from the definition; states: all sequences after each merge."""

    tokens: list[bytes]
    picks: list[tuple[Pair, int]] = field(default_factory=list)
    states: list[list[list[int]]] = field(default_factory=list)
    stop_reason: str = "vocab_size"


def merge_once(ids: list[int], pair: Pair, made: int) -> list[int]:
    merged: list[int] = []
    place = 0
    while place < len(ids):
        if tuple(ids[place : place + 2]) == pair:
            merged.append(made)
            place += 2
        else:
            merged.append(ids[place])
            place += 1
    return merged


def may_merge(token: bytes, rules: MergeRules) -> bool:
    return (
        len(token) <= (rules.max_token_bytes or len(token))
        and token not in rules.forbidden
        and not any(part in token for part in rules.forbidden_parts)
        and len([word for word in token.split(b" ") if word]) <= (rules.max_words or 10**9)
    )


def train_naively(case: Case) -> Naive:
    rules = case.rules
    run = Naive(base_tokens(rules.tie_order))
    sequences = case.sequences
    while len(run.picks) < rules.max_merges:
        counts: Counter[Pair] = Counter()
        for ids, weight in zip(sequences, case.weights or [1] * len(sequences), strict=True):
            for pair in pairwise(ids):
                counts[pair] += weight
        allowed = [
            pair for pair in counts if may_merge(run.tokens[pair[0]] + run.tokens[pair[1]], rules)
        ]
        if not allowed:
            run.stop_reason = "exhausted"
            break

        def order(pair: Pair) -> tuple[Any, ...]:
            tie = (run.tokens[pair[0]], run.tokens[pair[1]])
            return (-counts[pair], *(tie if rules.tie_order == "bytes" else pair))  # noqa: B023

        best = min(allowed, key=order)
        if counts[best] < rules.min_frequency:
            run.stop_reason = "min_frequency"
            break
        sequences = [merge_once(ids, best, len(run.tokens)) for ids in sequences]
        run.tokens.append(run.tokens[best[0]] + run.tokens[best[1]])
        run.picks.append((best, counts[best]))
        run.states.append(sequences)
    return run


def random_text(rng: random.Random) -> bytes:
    letters = b"ab c"[: rng.choice([1, 2, 2, 2, 3, 3, 4])]
    length = rng.randint(1, rng.choice([6, 20, 60, 120]))
    kind = rng.choice(["flat", "flat", "runs", "runs", "periodic", "fibonacci", "words"])
    if kind == "flat":
        return bytes(rng.choice(letters) for _ in range(length))
    if kind == "periodic":
        period = bytes(rng.choice(letters) for _ in range(rng.randint(1, 5)))
        text = bytearray((period * length)[:length])
        for _ in range(rng.randint(0, 3)):
            text[rng.randrange(length)] = rng.choice(letters)
        return bytes(text)
    if kind == "fibonacci":
        shorter, longer = letters[:1], letters[-1:] + letters[:1]
        while len(longer) < length:
            shorter, longer = longer, longer + shorter
        return longer[:length]
    runs = [1, 1, 2, 3, 4, 5, 7, 8, 15, 16]
    words = [bytes(rng.choice(letters) for _ in range(rng.randint(1, 4))) for _ in range(3)]
    text = bytearray()
    while len(text) < length:
        text += (
            bytes([rng.choice(letters)]) * rng.choice(runs) if kind == "runs" else rng.choice(words)
        )
    return bytes(text[:length])


def random_limits(rng: random.Random, text: bytes) -> dict[str, Any]:
    def part() -> bytes:
        start = rng.randrange(len(text))
        return text[start : start + rng.randint(2, 5)]

    kind = rng.randrange(8)
    if kind == 0:
        return {"max_token_bytes": rng.randint(1, 6)}
    if kind == 1:
        return {"forbidden": frozenset(part() for _ in range(rng.randint(1, 3)))}
    if kind == 2:
        return {"forbidden_parts": (part(), part())}
    if kind == 3:
        return {"max_words": rng.randint(1, 2)}
    return {}


def random_settings(rng: random.Random) -> RoundSettings:
    return RoundSettings(
        segment_budget=rng.choice([10, 100, 10_000]),
        shard_cap=rng.choice([0, 12, 30, 10_000]),
        buckets=rng.choice([1, 1, 2]),
        kept_pairs=rng.choice([1, 2, 4, 10_000]),
        max_units=rng.choice([0, 20, 10_000, 10_000, 10_000]),
        coverage=rng.choice([0.05, 0.2, 0.5, 1.0]),
    )


def make_case(seed: int) -> Case:
    rng = random.Random(seed)
    text = random_text(rng)
    rules = MergeRules(
        max_merges=rng.choice([1, 5, 40, 400]),
        tie_order=rng.choice(["hf", "id", "bytes"]),
        min_frequency=rng.choice([1, 2]),
        **random_limits(rng, text),
    )
    documents = [text]
    if rng.random() < 0.4:
        borders = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(1, 4)))
        documents = [text[a:b] for a, b in pairwise([0, *borders, len(text)])]
    weights = [rng.randint(1, 9) for _ in documents] if rng.random() < 0.1 else None
    length = len(text) + len(documents)
    cuts = [rng.randint(0, length) for _ in range(rng.choice([0, 1, 2, 4, 8]))]
    if rng.random() < 0.1:
        cuts = list(range(1, length))
    if weights:
        cuts = [rng.randint(0, len(documents)) for _ in range(rng.randint(0, 3))]
    sequences = to_ids(documents, rules.tie_order)
    return Case(sequences, weights, sorted(cuts), rules, random_settings(rng))


def to_ids(documents: list[bytes], tie_order: str) -> list[list[int]]:
    ids = {token: number for number, token in enumerate(base_tokens(tie_order))}
    return [[ids[bytes([value])] for value in document] for document in documents]


def make_shards(case: Case) -> list[ShardState]:
    """Cuts are places among all tokens and ends of sequences; for words, among the words."""
    kind = pa.large_list(pa.uint16())
    if case.weights is not None:
        spans = pairwise([0, *case.cuts, len(case.sequences)])
        return [
            ShardState(
                pa.array(case.sequences[start:end], kind),
                pa.array(case.weights[start:end], pa.int64()),
            )
            for start, end in spans
        ]
    stream = [token for ids in case.sequences for token in (*ids, END)]
    shards = []
    for start, end in pairwise([0, *case.cuts, len(stream)]):
        open_left = start > 0 and stream[start - 1] != END
        open_right = end > 0 and stream[end - 1] != END
        sequences: list[list[int]] = [[]]
        for token in stream[start:end]:
            if token == END:
                sequences.append([])
            else:
                sequences[-1].append(token)
        if not open_right:
            sequences.pop()
        shards.append(ShardState(pa.array(sequences, kind), None, open_left, open_right))
    return shards


def join_shards(shards: list[ShardState]) -> list[list[int]]:
    sequences: list[list[int]] = []
    for shard in shards:
        rows = shard.sequences.to_pylist()
        if shard.open_left:
            sequences[-1] += rows.pop(0)
        sequences += rows
    return sequences


def start_bytes(shards: list[ShardState], tokens: list[bytes]) -> Iterator[list[int]]:
    """For each shard, the byte at which each token starts, and at which the next shard does."""
    position = 0
    for shard in shards:
        starts = []
        for token in itertools.chain.from_iterable(shard.sequences.to_pylist()):
            starts.append(position)
            position += len(tokens[token])
        yield starts


def check(case: Case, backend: Backend) -> None:
    expected = train_naively(case)
    shards = make_shards(case)
    sizes = [shard.token_count for shard in shards]
    borders = list(pairwise(itertools.accumulate([0, *sizes])))
    made = 0

    def observe(result: RoundResult, states: list[ShardState]) -> None:
        nonlocal made
        made += len(result.left)
        assert join_shards(states) == expected.states[made - 1]
        for starts, (first, end) in zip(start_bytes(states, expected.tokens), borders, strict=True):
            assert all(first <= start < end for start in starts)

    found = train_in_rounds(
        shards, case.rules, settings=case.settings, backend=backend, observe=observe
    )
    tokens = expected.tokens
    assert found.merges == [(tokens[a], tokens[b]) for (a, b), _ in expected.picks]
    assert found.counts == [count for _, count in expected.picks]
    assert found.stop_reason == expected.stop_reason
    assert made == len(expected.picks)
