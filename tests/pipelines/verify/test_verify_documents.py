"""Spans of ids and windows of documents, as `verify` follows them."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.verify.verify_documents import _insert, _Seen


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_spans_are_joined_and_never_overlap(spans: list[tuple[int, int]]) -> None:
    found: list[tuple[int, int]] = []
    covered: set[int] = set()
    for start, length in spans:
        ids = set(range(start, start + length))
        if not ids:
            continue
        assert _insert(found, start, start + length) == (not ids & covered)
        if not ids & covered:
            covered |= ids
        assert {each for span in found for each in range(*span)} == covered
        assert all(left[1] < right[0] for left, right in itertools.pairwise(found))


@settings(max_examples=60)
@given(st.data())
def test_a_document_that_comes_twice_is_found_in_any_window(data: st.DataObject) -> None:
    windows = [[10 * window + place for place in range(6)] for window in range(5)]
    batches: list[list[int]] = []
    for window in windows:
        order = data.draw(st.permutations(window))
        batches += [order[:4], order[4:]]
    seen = _Seen(window=6)
    for batch in batches:
        assert not seen.add(np.array(batch, np.int64), len(batch), "none").any()
    again = data.draw(st.sampled_from([place for window in windows for place in window]))
    assert seen.add(np.array([again, 60], np.int64), 2, "none").tolist() == [True, False]
