"""Symbol mode reproduces the print-shop example under every tie order and both scores."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from bpe.errors import InputError, SettingsError
from bpe.symbols import train_symbols

WORDS = {"press": 8, "pressed": 3, "printer": 4, "printed": 5, "printing": 6}


@pytest.mark.parametrize("score", ["count", "wordpiece"])
@pytest.mark.parametrize(
    ("rule", "tie_order"), [("first", "first"), ("lex", "bytes"), ("id", "id")]
)
def test_print_shop(data_dir: Path, score: str, rule: str, tie_order: str) -> None:
    stored = json.loads((data_dir / "merges" / "printshop.json").read_text())
    run = stored["runs"][f"{score}/{rule}"]
    model = train_symbols(WORDS, len(run["merges"]), tie_order=tie_order, score=score)
    assert model.alphabet == stored["base_symbols"]
    assert [list(pair) for pair in model.merges] == [step["pair"] for step in run["merges"]]
    assert model.counts == [step["count"] for step in run["merges"]]
    assert model.split("imprint", rounds=6) == run["imprint_after_6"]
    assert model.split("imprint", rounds=6, marked=False) == run["imprint_after_6_nomark"]
    by_round = [model.split("printing", rounds=k) for k in range(len(run["printing_by_round"]))]
    assert by_round == run["printing_by_round"]


def test_characters_outside_the_alphabet() -> None:
    model = train_symbols(WORDS, 6)
    with pytest.raises(InputError, match=r"'m' of word 'imprint'"):
        model.encode(["imprint"])
    encoded = model.encode(["imprint", "mum"], unknown="unk")
    assert encoded.unknown == Counter({"m": 3, "u": 1})
    assert encoded.ids.count(model.unknown_id) == 4
    assert model.decode(encoded.ids, unknown="?") == "i?print ???"


def test_ids_and_text() -> None:
    model = train_symbols(WORDS, 12)
    encoded = model.encode(["printing", "press"])
    assert [model.vocabulary[index] for index in encoded.ids] == ["printing", "</w>", "press</w>"]
    assert model.decode(encoded.ids) == "printing press"
    assert not encoded.unknown


def test_stops_when_no_pair_is_left_or_frequent() -> None:
    assert train_symbols({"ab": 1}, 10).merges == [("a", "b"), ("ab", "</w>")]
    assert train_symbols({"ab": 1}, 10, min_frequency=2).merges == []
    assert train_symbols({"aaaa": 1}, 1).counts == [3]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"tie_order": "hf"}, "'hf'"),
        ({"score": "x"}, "'x'"),
        ({"max_merges": -1}, "max_merges=-1"),
        ({"min_frequency": 0}, "min_frequency=0"),
        ({"end_mark": ""}, "end_mark=''"),
    ],
)
def test_settings_that_cannot_be_honoured(arguments: dict[str, object], word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        train_symbols(**{"words": {"ab": 1}, "max_merges": 3, **arguments})  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="'drop'"):
        train_symbols({"ab": 1}, 3).encode(["ab"], unknown="drop")


def test_words_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="end mark"):
        train_symbols({"a</w>b": 1}, 3)
    with pytest.raises(InputError, match="count 0"):
        train_symbols({"ab": 0}, 3)
