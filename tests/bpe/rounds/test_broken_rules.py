"""Each rule of the rounds is broken once, to see that the tests of equality notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bpe.backends.choice import get_backend
from bpe.backends.values import MergeRules
from bpe.errors import CountTableError
from bpe.rounds import (
    bucket_sums,
    chain_merging,
    local_rounds,
    pair_ranking,
    round_driver,
)
from bpe.rounds.heavy_set import HeavySet
from tests.bpe.rounds.round_cases import (
    check,
    make_case,
)


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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rule", MUTATIONS)
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, mutant, settings = MUTATIONS[rule]
    assert not is_noticed(range(1000, 1010), settings)
    monkeypatch.setattr(owner, name, mutant)
    assert is_noticed(range(1000, 1600), settings)
