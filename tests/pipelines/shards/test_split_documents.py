"""Splits: what can be one, and which documents go where."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import SettingsError
from pipelines.shards.split_documents import Splitter
from pipelines.storage.output_names import parse_splits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train=0.99,validation=0.02", "add up to 1.01"),
        ("train=0.99", "add up to 0.99"),
        ("train=x,b=1", "'train' has the share 'x'; give"),
        ("train=nan,b=1", "'train' has the share 'nan'; give"),
        ("train,val", "'train' has the share ''; give .* such as train=0.9,val=0.1"),
        ("train=0,b=1", "train=0: a share is more than 0"),
        ("train=-1,b=2", "train=-1: a share is more than 0"),
        ("a=0.5,A=0.5", "not all different"),
        ("a/b=1", "'a/b' cannot be a split's name"),
        ("_a=1", "'_a' cannot be a split's name"),
        ("..=1", "cannot be a split's name"),
        ("=1", "'' cannot be a split's name"),
        ("__beam-bpe__=1", "cannot be a split's name"),
        ("", "cannot be a split's name"),
    ],
)
def test_what_cannot_be_honoured_is_refused(text: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        parse_splits(text)


def test_ten_tenths_are_one() -> None:
    assert len(parse_splits(",".join(f"s{number}=0.1" for number in range(10)))) == 10


def test_shares_of_documents_are_those_asked_for() -> None:
    splitter = Splitter(parse_splits("train=0.9, test=0.07,validation=0.03"), 4)
    names = pa.array([f"{number % 3}:{number * 7}" for number in range(50_000)])
    shares = np.bincount(splitter.assign(names)) / 50_000
    assert shares == pytest.approx([0.9, 0.07, 0.03], abs=0.006)


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=20), st.integers(0, 9))
def test_a_document_goes_where_its_id_says_whatever_else_there_is(
    names: list[str], seed: int
) -> None:
    splitter = Splitter(parse_splits("a=0.5,b=0.5"), seed)
    together = splitter.assign(pa.array(names, pa.string())).tolist()
    alone = [int(splitter.assign(pa.array([name], pa.string()))[0]) for name in names]
    assert together == alone


def test_another_seed_is_another_choice() -> None:
    names = pa.array([str(number) for number in range(1000)])
    splits = parse_splits("a=0.5,b=0.5")
    same = Splitter(splits, 1).assign(names) == Splitter(splits, 2).assign(names)
    assert 400 < same.sum() < 600
