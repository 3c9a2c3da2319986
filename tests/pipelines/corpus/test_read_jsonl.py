"""Rows of JSON lines decoded a block at a time are those that are decoded one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.jsonl import read_jsonl
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.row_blocks import RowBlock, find_terminators

GOOD = b'{"text":"a","id":1}'
# Lines that a decoder which takes line feeds for white space could put together in other ways.
LINES = (
    GOOD,
    GOOD + GOOD,
    GOOD + b"\r",
    b' {"id": "x", "text": "\\ud83d\\ude00"} ',
    b'{"text":"a","id":[{}',
    b'{"text":"a","id":{}',
    b'{"b":2},{"c":3}]}',
    b'{"text":"b","id":2,"more":{}}',
    b'{}],"id":3}',
    b'{"text":',
    b'"c","id":4}',
    b'{"text":"no end',
    b'{"text":"\xff","id":5}',
    b'{"id":6,"text":"d","bytes":"\xff"}',
    b'{"id":123456789012345678901234567890,"text":"e"}',
    b"",
    b"{",
    b"}",
    b"nonsense",
)


def block_of(lines: list[bytes]) -> RowBlock:
    data = b"".join(line + b"\n" for line in lines)
    ends = find_terminators(data, b"\n")
    starts = np.concatenate([[0], ends[:-1] + 1])
    return RowBlock(memoryview(data), 0, starts, ends, 1, last_is_cut=False)


def one_by_one(decoder: Any, lines: list[bytes]) -> list[tuple[str, Any]] | None:
    """Text and id of each line; None if one is not good."""
    try:
        rows = [decoder.decode(line) for line in lines if line.decode()]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return [(decoder.text(row), decoder.id(row)) for row in rows]


def check(lines: list[bytes]) -> bool:
    decoder = read_jsonl._RowDecoder(ReadOptions(id_field="id"))
    rows = decoder.decode_block(block_of(lines))
    if rows is None:
        return False
    assert [(decoder.text(row), decoder.id(row)) for row in rows] == one_by_one(decoder, lines)
    return True


def test_any_three_lines_are_those_read_one_by_one() -> None:
    taken = sum(check(list(lines)) for lines in itertools.product(LINES, repeat=3))
    assert taken >= 3**3


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*LINES, GOOD, GOOD]), min_size=1, max_size=12))
def test_any_lines_are_those_read_one_by_one(lines: list[bytes]) -> None:
    check(lines)


def read(path: Path) -> Iterator[tuple[str, str]]:
    options = ReadOptions(id_field="id", on_bad_record="skip")
    plan = make_plan(list_inputs([str(path)], options), options)
    for unit in plan.units:
        rejects = Rejects(unit, options)
        for batch in read_unit(unit, options, CutFinder(get_scheme("gpt2")), rejects):
            yield from zip(batch["document_id"].to_pylist(), batch["text"].to_pylist(), strict=True)


def test_a_block_with_and_one_without_a_bad_row_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b'{"id": %d, "text": "t%d"}' % (i, i) for i in range(5)]
    lines += [b'{"id": "%d", "text": "t"}' % (1 << 70), b'{"id": -7, "text": ""}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    whole = list(read(tmp_path / "a.jsonl"))
    assert [name for name, _ in whole] == ["0", "1", "2", "3", "4", str(1 << 70), "-7"]
    monkeypatch.setattr(read_jsonl._RowDecoder, "decode_block", lambda *_: None)
    assert list(read(tmp_path / "a.jsonl")) == whole
