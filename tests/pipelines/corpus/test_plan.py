"""Plans: every byte in exactly one range, nothing but the input decides, JSON and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import SettingsError
from pipelines.corpus.listing.inputs import InputFile, ReadOptions
from pipelines.corpus.plan import UNITS_WANTED, Unit, make_plan


def input_file(index: int, size: int, compression: str = "none") -> InputFile:
    name = f"{index:03d}"
    return InputFile(index, f"/in/{name}", size, f"{size}-1", "text", compression, name)


FILES = st.lists(
    st.tuples(st.integers(0, 300), st.sampled_from(["none", "gzip"])), min_size=1, max_size=8
)


@given(FILES, st.integers(1, 400), st.integers(1, 100_000))
def test_units_cover_every_byte_once_in_order(
    sizes: list[tuple[int, str]], range_bytes: int, unit_bytes: int
) -> None:
    files = [input_file(index, *size) for index, size in enumerate(sizes)]
    plan = make_plan(files, ReadOptions(range_bytes=range_bytes), unit_bytes=unit_bytes)
    assert [unit.index for unit in plan.units] == list(range(len(plan.units)))
    covered: dict[int, list[tuple[int, int | None]]] = {}
    for unit in plan.units:
        assert unit.ranges
        for range_ in unit.ranges:
            covered.setdefault(range_.file.index, []).append((range_.start, range_.end))
    assert list(covered) == list(range(len(files)))
    for file in files:
        ranges = covered[file.index]
        if file.compression != "none":
            assert ranges == [(0, None)]
            continue
        assert ranges[0][0] == 0
        assert ranges[-1][1] == file.size
        for (_, end), (start, _) in pairwise(ranges):
            assert end == start
            assert start % range_bytes == 0
    assert sum(unit.stored_bytes for unit in plan.units) == plan.total_bytes


def test_units_reach_their_size_and_small_inputs_are_shared_out() -> None:
    options = ReadOptions(range_bytes=1 << 20)
    large = make_plan([input_file(0, 10 << 30)], options, unit_bytes=64 << 20)
    sizes = [unit.stored_bytes for unit in large.units]
    assert min(sizes[:-1]) > 63 << 20
    assert max(sizes) <= 64 << 20
    assert len(large.units[0].ranges) == 1
    small = make_plan([input_file(0, 16 << 20)], options, unit_bytes=64 << 20)
    assert len(small.units) == 16


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.integers(1, 100))
def test_small_inputs_make_few_units_whatever_the_ranges(
    sizes: list[int], range_bytes: int
) -> None:
    files = [input_file(index, size) for index, size in enumerate(sizes)]
    options = ReadOptions(range_bytes=range_bytes)
    assert len(make_plan(files, options).units) <= UNITS_WANTED + 1


def test_small_ranges_of_one_file_are_shared_out_evenly() -> None:
    plan = make_plan([input_file(0, 2600)], ReadOptions(range_bytes=17))
    sizes = [unit.stored_bytes for unit in plan.units]
    assert len(sizes) == UNITS_WANTED
    assert max(sizes[:-1]) - min(sizes[:-1]) <= 17


def test_a_range_is_a_unit_where_ranges_are_large() -> None:
    size = 1_115_394
    for ranges in (1, 2, 13):
        options = ReadOptions(range_bytes=-(-size // ranges))
        assert len(make_plan([input_file(0, size)], options).units) == ranges


def test_a_plan_depends_on_files_and_settings_alone() -> None:
    files = [input_file(0, 100), input_file(1, 50)]
    plan = make_plan(files, ReadOptions())
    assert plan == make_plan(list(files), ReadOptions())
    others = [
        make_plan(files[:1], ReadOptions()),
        make_plan(files, ReadOptions(range_bytes=7)),
        make_plan(files, ReadOptions(text_field="body")),
        make_plan(files, ReadOptions(), unit_bytes=9),
        make_plan([files[0], input_file(1, 51)], ReadOptions()),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 6


@given(FILES)
def test_a_unit_comes_back_from_json(sizes: list[tuple[int, str]]) -> None:
    files = [input_file(index, *size) for index, size in enumerate(sizes)]
    for unit in make_plan(files, ReadOptions(range_bytes=64), unit_bytes=128).units:
        text = unit.to_json()
        assert Unit.from_json(text) == unit
        assert Unit.from_json(text.encode()) == unit
        assert "\n" not in text
        assert json.loads(text)["index"] == unit.index


@pytest.mark.parametrize("command", ["train", "encode", "plan"])
def test_names_that_are_not_utf8_are_refused_before_work(
    command: str, model_dir: Path, tmp_path: Path, run: Callable[..., Any]
) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.txt")
    path.write_bytes(b"x")
    options = {"train": ("--vocab-size", 300), "encode": ("--tokenizer", model_dir), "plan": ()}
    output = tmp_path / "out"
    where = () if command == "plan" else ("--output", output)
    done = run(command, "--input", path, *options[command], *where)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert r"bad\xff.txt: " in done.err
    assert "rename" in done.err
    assert not done.out
    assert not output.exists()


def test_only_utf8_names_are_planned() -> None:
    with pytest.raises(SettingsError, match=r"/in/caf\\xe9: .*not UTF-8"):
        make_plan([InputFile(0, "/in/caf\udce9", 3, "x", "text", "none", "")], ReadOptions())
    file = InputFile(0, "/in/café \n日本", 3, "x", "text", "none", "café \n日本")
    unit = make_plan([file], ReadOptions()).units[0]
    assert Unit.from_json(unit.to_json().encode("ascii")) == unit


def test_units_of_no_size_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least 1"):
        make_plan([input_file(0, 1)], ReadOptions(), unit_bytes=0)
