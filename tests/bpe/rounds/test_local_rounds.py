"""Merge rounds equal greedy training: merges, counts, and all tokens after each round.

The trainer that they are compared with counts everything anew for each merge. Each rule of the
rounds is broken once, to see that these tests would notice.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bpe.backend import Backend, MergeRules, get_backend
from bpe.errors import CountTableError, SettingsError
from bpe.rounds import (
    bucket_sums,
    chain_merging,
    local_rounds,
    pair_ranking,
    round_driver,
)
from bpe.rounds.heavy_set import HeavySet
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


# ---- cases ---------------------------------------------------------------------------------


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


# ---- equality ------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(6))
def test_random_strings(backend: Backend, part: int) -> None:
    for seed in range(part * 80, (part + 1) * 80):
        check_seed(seed, backend)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("part", range(60))
def test_30000_random_strings(part: int) -> None:
    backend = get_backend()
    for seed in range(100_000 + part * 500, 100_000 + (part + 1) * 500):
        check_seed(seed, backend)


def check_seed(seed: int, backend: Backend) -> None:
    case = make_case(seed)
    try:
        check(case, backend)
    except Exception:
        print(f"seed {seed}: {case}")
        raise


def all_strings(letters: int, longest: int) -> Iterator[bytes]:
    for length in range(1, longest + 1):
        for text in itertools.product(b"abcd"[:letters], repeat=length):
            yield bytes(text)


@pytest.mark.parametrize(("letters", "longest"), [(1, 16), (2, 6), (3, 4), (4, 3)])
def test_all_short_strings(backend: Backend, letters: int, longest: int) -> None:
    for seed, text in enumerate(all_strings(letters, longest)):
        check(case_of(text, seed), backend)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize(("letters", "longest"), [(1, 24), (2, 11), (3, 7), (4, 5)])
def test_all_strings(letters: int, longest: int) -> None:
    for seed, text in enumerate(all_strings(letters, longest)):
        check(case_of(text, seed), get_backend())


def case_of(text: bytes, seed: int) -> Case:
    rng = random.Random(seed)
    rules = MergeRules(400, rng.choice(["hf", "id", "bytes"]), rng.choice([1, 2]))
    cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 8)))
    sequences = to_ids([text], rules.tie_order)
    return Case(sequences, None, cuts, rules, random_settings(rng))


@pytest.mark.parametrize("tie_order", ["hf", "id", "bytes"])
@pytest.mark.parametrize("max_units", [0, 10_000])
def test_every_split_of_a_run(backend: Backend, tie_order: str, max_units: int) -> None:
    for text in (b"aaaaaab", b"baaaaa"):
        for first, second in itertools.combinations_with_replacement(range(len(text) + 1), 2):
            check(
                Case(
                    to_ids([text], tie_order),
                    None,
                    [first, second],
                    MergeRules(20, tie_order, 1),
                    RoundSettings(max_units=max_units, coverage=1.0),
                ),
                backend,
            )


def test_a_round_keeps_to_its_budget(data_dir: Path) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()[:60_000]
    sequences = to_ids([text], "hf")
    rules = MergeRules(1500, "hf")
    whole = Case(sequences, None, list(range(7_500, 60_000, 7_500)), rules, RoundSettings())
    backend = get_backend()
    rounds = {}
    for budget in (600, 6_000, 10**6):
        sent: list[int] = []
        found = train_in_rounds(
            make_shards(whole),
            rules,
            # Each shard may send all of it, so only the sum can tell.
            settings=RoundSettings(segment_budget=budget, shard_cap=budget, buckets=4),
            backend=backend,
            observe=lambda result, _, sent=sent: sent.append(result.sent_bytes),
        )
        assert max(sent) <= budget
        rounds[budget] = len(sent)
        if budget < 10**6:
            assert max(sent) > budget / 2
        assert found.merges == backend.train_raw(pa.array([text], pa.large_binary()), rules).merges
    assert rounds[600] > rounds[6_000] > rounds[10**6]


def test_two_pairs_of_three_thousand_million_each(backend: Backend) -> None:
    sequences = to_ids([b"ab", b"cd", b"ce"], "hf")
    weights = [3_000_000_000, 3_000_000_001, 2**62]
    rules = MergeRules(3, "hf")
    check(Case(sequences, weights, [1, 2], rules, RoundSettings()), backend)


def test_a_sum_beyond_64_bits_raises(backend: Backend) -> None:
    sequences = to_ids([b"ab", b"ab"], "hf")
    case = Case(sequences, [2**62, 2**62], [1], MergeRules(3, "hf"), RoundSettings())
    with pytest.raises(CountTableError, match="exceeds 9223372036854775807"):
        train_in_rounds(make_shards(case), case.rules, backend=backend)


def test_the_order_of_first_occurrence_is_refused(backend: Backend) -> None:
    case = Case(to_ids([b"abab"], "first"), None, [], MergeRules(3, "first"), RoundSettings())
    with pytest.raises(SettingsError, match="tie order 'first' cannot be had"):
        train_in_rounds(make_shards(case), case.rules, backend=backend)


def test_nothing_to_train_on(backend: Backend) -> None:
    for sequences in ([], [[]], [[5]]):
        case = Case(sequences, None, [], MergeRules(3, "hf"), RoundSettings())
        check(case, backend)


# ---- each rule broken ----------------------------------------------------------------------


def is_noticed(seeds: range, settings: dict[str, Any]) -> bool:
    """Whether one of some strings comes out wrong, or as an error."""
    backend = get_backend("python")
    for seed in seeds:
        case = make_case(seed)
        case.settings = replace(case.settings, **settings)
        try:
            check(case, backend)
        except (AssertionError, CountTableError):
            return True
    return False


def halve_each_part(
    token: int, doubled: int, spans: list[tuple[int, int, int]], total: int
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Runs of each part from its own start: as if nothing stood before it."""
    del total
    for place, start, end in spans:
        if end - start > 1:
            yield place, (doubled, (end - start) // 2)
        if (end - start) % 2:
            yield place, (token, 1)


def nearest_owner(new: Any, old: Any, owners: Any) -> Any:
    """The part that holds the second old token of a new one, or another token near."""
    return owners[np.minimum(np.searchsorted(old, new) + 1, len(owners) - 1)]


def without_bound(rankings: Any, tokens: Any, tie_order: Any) -> Any:
    """The ranking of what was kept, as if nothing had been dropped."""
    kept = [replace(each, dropped=None) for each in rankings]
    return pair_ranking.merge_rankings(kept, tokens, tie_order)


def allows_none_around(
    rules: MergeRules,
    token: bytes,
    limits: Callable[[MergeRules, bytes], bool] = MergeRules.allows_containing,
) -> bool:
    """As if no token could contain a forbidden one."""
    return token not in rules.forbidden and limits(rules, token)


round_driver_size = round_driver._common_size

MUTATIONS: dict[str, tuple[Any, str, Any, dict[str, Any]]] = {
    "overlapping pairs": (pair_ranking, "_overlaps", lambda *_: False, {"max_units": 0}),
    "runs": (pair_ranking, "_run_overtakes", lambda *_: False, {"max_units": 0}),
    "ties by bytes": (
        pair_ranking._Ties,
        "may_go_before",
        lambda *_: False,
        {"max_units": 0},
    ),
    "parity of runs": (chain_merging, "_halve", halve_each_part, {"max_units": 0}),
    "ownership": (chain_merging, "_owners_at", nearest_owner, {}),
    "stop rule": (HeavySet, "stop_at", lambda *_: None, {}),
    "pairs on their own": (
        round_driver,
        "_count_heavy",
        lambda _, __, pairs: np.zeros(pairs.num_rows, np.int64),
        {},
    ),
    "pairs between shards": (bucket_sums, "straddling_pairs", lambda _: iter(()), {}),
    "bound of dropped pairs": (
        round_driver,
        "merge_rankings",
        without_bound,
        {"kept_pairs": 1, "coverage": 1.0},
    ),
    "forbidden tokens inside others": (MergeRules, "allows_containing", allows_none_around, {}),
    "smallest heavy set of all shards": (
        round_driver,
        "_common_size",
        lambda _, segments, heavy: round_driver_size([], segments, heavy),
        {"shard_cap": 12, "segment_budget": 10_000},
    ),
    "smallest heavy set of all buckets": (
        round_driver,
        "_common_size",
        lambda records, _, heavy: round_driver_size(records, [], heavy),
        {"shard_cap": 10_000, "segment_budget": 10},
    ),
    "chains": (local_rounds, "_fixes_by_shard", lambda _: {}, {}),
}


@pytest.mark.parametrize("rule", MUTATIONS)
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, mutant, settings = MUTATIONS[rule]
    assert not is_noticed(range(1000, 1010), settings)
    monkeypatch.setattr(owner, name, mutant)
    assert is_noticed(range(1000, 1600), settings)
