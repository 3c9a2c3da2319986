"""Best-fit-decreasing in groups equals the textbook's, item by item."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.encoding.best_fit import best_fit_decreasing


def item_by_item(lengths: list[int], room: int) -> list[int]:
    """Room left in each bin, sorted."""
    left: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [bin_ for bin_, rest in enumerate(left) if rest >= length]
        if not fitting:
            fitting = [len(left)]
            left.append(room)
        left[min(fitting, key=lambda bin_: left[bin_])] -= length
    return sorted(left)


@settings(deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda room: st.tuples(st.just(room), st.lists(st.integers(1, room), max_size=80))
    )
)
def test_bins_are_filled_as_item_by_item(case: tuple[int, list[int]]) -> None:
    room, lengths = case
    bins = best_fit_decreasing(np.array(lengths, np.int64), room)
    assert len(bins) == len(lengths)
    if not lengths:
        return
    filled = np.bincount(bins, lengths).astype(int)
    # No number of a bin is skipped.
    assert filled.min() > 0
    assert sorted(room - filled) == item_by_item(lengths, room)


def test_a_perfect_fit_is_found() -> None:
    lengths = np.array([6, 5, 4, 3, 2], np.int64)
    bins = best_fit_decreasing(lengths, 10)
    assert sorted(np.bincount(bins, lengths)) == [10, 10]
