"""Merge rounds equal greedy training: merges, counts, and all tokens after each round."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.backends.values import MergeRules
from bpe.errors import CountTableError, SettingsError
from bpe.rounds.local_rounds import RoundSettings, train_in_rounds
from tests.bpe.rounds.round_cases import (
    Case,
    check,
    make_case,
    make_shards,
    random_settings,
    to_ids,
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("part", range(4))
def test_random_strings(backend: Backend, part: int) -> None:
    for seed in range(part * 40, (part + 1) * 40):
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


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("letters", "longest"), [(1, 14), (2, 5), (3, 4), (4, 2)])
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


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("tie_order", "max_units"),
    [
        ("hf", 10_000),
        ("id", 0),
        ("bytes", 10_000),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)
            for each in (("hf", 0), ("id", 10_000), ("bytes", 0))
        ),
    ],
)
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
