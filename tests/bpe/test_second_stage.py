"""SuperBPE: the lists of its own trainer, its cuts, and its limits."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import SettingsError, Tokenizer, count_pretokens, get_scheme, train, train_raw
from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.backends.values import MergeRules, count_words_in
from bpe.encoding.printable_bytes import PRINTABLE_ORDER
from bpe.rounds.local_rounds import RoundSettings, train_in_rounds
from bpe.rounds.shard_state import ShardState
from bpe.second_stage import (
    SUPERBPE,
    begin_second_stage,
    stage_tokens,
    train_second_stage,
)

DATA = Path(__file__).resolve().parents[1] / "data"
Merges = list[tuple[bytes, bytes]]


@cache
def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "merges" / f"{name}.json").read_text())
    return found


def golden_merges(key: str) -> Merges:
    stored = golden("superbpe_tiny")[key]
    return [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in stored]


def tiny() -> bytes:
    return (DATA / "tiny_shakespeare.txt").read_bytes()


def lines() -> pa.LargeBinaryArray:
    # That trainer reads files by the line, and keeps the lines' ends.
    return pa.array(tiny().splitlines(keepends=True), pa.large_binary())


def first_scheme() -> str:
    return "regex:" + str(golden("superbpe_tiny")["stage1_regex"])


def first_stage() -> Tokenizer:
    inherited = golden("superbpe_tiny")["inherited_merges"]
    return Tokenizer.from_merges(
        golden_merges("stage1_merges")[:inherited], pretokenizer=first_scheme()
    )


@pytest.mark.usefixtures("backend")
def test_the_first_stage_of_superbpe() -> None:
    expected = golden_merges("stage1_merges")
    found = train(
        count_pretokens(lines(), first_scheme()),
        256 + len(expected),
        pretokenizer=first_scheme(),
        min_frequency=1,
    )
    assert len(expected) == 1435
    assert found.merges == expected


@pytest.mark.slow
@pytest.mark.usefixtures("backend")
def test_the_second_stage_of_superbpe() -> None:
    expected = golden_merges("stage2_merges_all")
    # One document or one for each line: the scheme cuts at the ends of lines in any case.
    found = train_second_stage(
        count_pretokens(tiny(), "superbpe"), first_stage(), 256 + len(expected), min_frequency=1
    )
    assert len(expected) == 2435
    assert found.merges == expected
    assert found.scheme.name == "superbpe"
    assert found.training["inherited_merges"] == 1199
    assert found.training["max_words"] == 4
    assert found.training["forbidden_parts"] == [": "]


def test_the_second_stage_in_rounds(backend: Backend) -> None:
    # The specification is slow: it goes through a part of the text, and the list of that.
    is_native = backend.name == "native"
    table = count_pretokens(tiny() if is_native else tiny()[:20_000], "superbpe")
    stage = first_stage()
    state = begin_second_stage(
        table["word"].combine_chunks().cast(pa.large_binary()),
        table["count"].combine_chunks(),
        stage,
        backend=backend,
    )
    found = train_in_rounds(
        split_words(state, 3),
        MergeRules(1236, "hf", 1 if is_native else 3, max_words=4, forbidden_parts=(b": ",)),
        tokens=stage_tokens(stage),
        settings=RoundSettings(segment_budget=20_000),
        backend=backend,
    )
    expected = golden_merges("stage2_merges_all")
    if not is_native:
        expected = train_second_stage(table, stage, 256 + 2435, min_frequency=3).merges
    assert found.merges == expected[1199:]
    assert len(found.merges) > 80


def split_words(state: ShardState, shards: int) -> list[ShardState]:
    assert state.weights is not None
    size = -(-len(state.sequences) // shards)
    return [
        ShardState(state.sequences[start : start + size], state.weights[start : start + size])
        for start in range(0, len(state.sequences), size)
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("stage", "key", "scheme"),
    [("stage1_1500", "stage1_merges", None), ("stage2_2500", "stage2_merges_all", "superbpe")],
)
@pytest.mark.usefixtures("backend")
def test_the_ids_of_superbpe(stage: str, key: str, scheme: str | None) -> None:
    expected = golden("superbpe_tiny_encode")[stage]
    tokenizer = Tokenizer.from_merges(golden_merges(key), pretokenizer=scheme or first_scheme())
    for text, example in expected["examples"].items():
        assert renumber(tokenizer.encode(text)).tolist() == example["ids"]
    ids = renumber(tokenizer.encode(tiny()))
    assert len(ids) == expected["tokens_in_tiny"]
    assert hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest() == expected["ids_sha256_u32le"]


def renumber(ids: np.ndarray) -> np.ndarray:
    """Ids over the 65 bytes of that text, in the same order, out of ids over all bytes."""
    present = set(tiny())
    places = np.cumsum([0, *(byte in present for byte in PRINTABLE_ORDER)])
    assert places[-1] == 65
    return np.where(ids < 256, places[np.minimum(ids, 255)], ids.astype(np.int64) - 256 + 65)


# ---- cuts ----------------------------------------------------------------------------------


def split_by_definition(text: str) -> list[str]:
    """Line by line, what the published pattern matches, and what stands between."""
    pattern = regex.compile(golden("superbpe_tiny")["stage2_regex"])
    pieces: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        position = 0
        for match in pattern.finditer(line):
            pieces += [line[position : match.start()], match.group()]
            position = match.end()
        pieces.append(line[position:])
    return [piece for piece in pieces if piece]


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("ab1\u00b2! ,/\r\n\t\u00e9\u0301\u4e2d"), max_size=20))
def test_the_scheme_is_the_published_pattern_line_by_line(text: str) -> None:
    assert get_scheme("superbpe").split_text(text) == split_by_definition(text)


def test_the_scheme_on_a_text() -> None:
    text = tiny().decode()
    assert get_scheme("superbpe").split_text(text) == split_by_definition(text)


# ---- limits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "words"),
    [(b"", 0), (b" ", 0), (b"a", 1), (b" of the", 2), (b"a  b ", 2), (b",\n", 1), (b"\t", 1)],
)
def test_words_of_a_token(token: bytes, words: int) -> None:
    assert count_words_in(token) == words


@pytest.mark.usefixtures("backend")
def test_no_token_has_more_words() -> None:
    documents = [b"to be or not to be or not to be or not to be " * 4]
    free = train_raw(documents, 400)
    bound = train_raw(documents, 400, max_words=2)
    assert max(count_words_in(left + right) for left, right in free.merges) > 4
    assert max(count_words_in(left + right) for left, right in bound.merges) == 2
    assert bound.training["max_words"] == 2


@pytest.mark.usefixtures("backend")
def test_no_token_contains_a_forbidden_part() -> None:
    words = {b"KING: the king: is": 9, b": ": 9}
    free = train(words, 300, pretokenizer="none")
    bound = train(words, 300, pretokenizer="none", forbidden_parts=(b": ", b"ng"))
    assert any(b": " in left + right for left, right in free.merges)
    assert not any(part in a + b for a, b in bound.merges for part in (b": ", b"ng"))
    assert (b"G", b":") in bound.merges


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(SettingsError, match="an empty part"):
        MergeRules(1, forbidden_parts=(b"a", b""))


def test_max_words_starts_at_one() -> None:
    with pytest.raises(SettingsError, match="max_words is 0: it must be at least 1"):
        MergeRules(1, max_words=0)


# ---- going on from a first stage -----------------------------------------------------------


WORDS = {b"so it is: it is so": 9, b"it": 4}


def small_stage() -> Tokenizer:
    return train({b"so": 9, b" it": 9, b" is": 9}, 260, pretokenizer="gpt2")


@pytest.mark.usefixtures("backend")
def test_specials_and_tie_order_are_kept() -> None:
    stage = train(
        {b"so": 9, b" it": 9, b" is": 9},
        261,
        pretokenizer="gpt2",
        tie_order="bytes",
        special_tokens=["<|end|>"],
    )
    found = train_second_stage(WORDS, stage, 263)
    assert found.special_tokens == {"<|end|>": 262}
    assert found.tie_order == "bytes"
    assert found.merges[:4] == stage.merges
    assert len(found.merges) == 6


@pytest.mark.parametrize(("frequency", "reason"), [(1, "exhausted"), (10, "min_frequency")])
@pytest.mark.usefixtures("backend")
def test_the_record_says_why_it_stopped(frequency: int, reason: str) -> None:
    found = train_second_stage(WORDS, small_stage(), 400, min_frequency=frequency)
    assert found.training["stop_reason"] == reason
    assert not any(b": " in left + right for left, right in found.merges)


def test_a_smaller_vocabulary_than_the_first_stage_is_refused() -> None:
    with pytest.raises(SettingsError, match="the first stage alone makes 260 tokens"):
        train_second_stage(WORDS, small_stage(), 258)


def test_a_first_stage_in_another_order_is_refused() -> None:
    model = small_stage().model
    moved = replace(
        model,
        tokens={number + 5: token for number, token in model.tokens.items()},
        merges=[(left + 5, right + 5, made + 5) for left, right, made in model.merges],
    )
    with pytest.raises(SettingsError, match="not the 256 bytes and the merges in their order"):
        train_second_stage(WORDS, Tokenizer(moved), 300)


def test_a_table_of_another_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="superbpe"):
        train_second_stage(count_pretokens(b"so it is", "gpt2"), small_stage(), 300)


def test_words_of_one_token_are_left_out() -> None:
    state = begin_second_stage(
        pa.array([b"so", b"so it"], pa.large_binary()),
        pa.array([3, 4], pa.int64()),
        small_stage(),
        backend=get_backend("python"),
    )
    assert state.sequences.to_pylist() == [[257, 259]]
    assert state.weights.to_pylist() == [4]


def test_the_published_limits() -> None:
    assert SUPERBPE.max_words == 4
    assert SUPERBPE.forbidden_parts == (b": ",)
