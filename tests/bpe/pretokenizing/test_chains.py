"""Chains of steps cut as the `tokenizers` library cuts; their specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import count_pretokens, get_scheme
from bpe.errors import SettingsError
from bpe.pretokenizing.chains import BEHAVIORS, Step, render_steps
from bpe.pretokenizing.schemes import DIGITS, chain_scheme

tokenizers = pytest.importorskip("tokenizers", reason="the library that chains are compared with")

_PATTERNS = (
    *(r"\p{N}", r"\p{N}{1,3}", r"\s+", r" ", r"[a-c]+", r"b", r"[^a ]", r"a|ab", r"\s+(?!\S)"),
    *(r"[^\r\n\p{L}\p{N}]?\p{L}+", r"a*", r"(?=b)", r"(?i:b)c?"),
)
_TEXTS = st.text(st.sampled_from("aAbBc 12\n.é½\u3042\U0001f600"), max_size=12)
_STEPS = st.builds(Step, st.sampled_from(_PATTERNS), st.sampled_from(BEHAVIORS), st.booleans())


def split_by_library(steps: tuple[Step, ...], text: str) -> list[str]:
    """Pieces that Hugging Face's library makes with the same steps."""
    made: list[Any] = [
        tokenizers.pre_tokenizers.Split(
            tokenizers.Regex(step.pattern), step.behavior, invert=step.invert
        )
        for step in steps
    ]
    pieces = tokenizers.pre_tokenizers.Sequence(made).pre_tokenize_str(text)
    return [piece for piece, _ in pieces]


@settings(max_examples=200, deadline=None)
@given(st.lists(_STEPS, min_size=1, max_size=4).map(tuple), _TEXTS)
def test_a_chain_cuts_as_the_library_does(steps: tuple[Step, ...], text: str) -> None:
    expected = split_by_library(steps, text)
    assert chain_scheme(steps).split_text(text) == expected


def test_a_chain_is_known_by_its_spec() -> None:
    steps = (Step(r"\p{N}{1,3}", "isolated"), Step("é+", "contiguous", invert=True))
    scheme = chain_scheme(steps)
    assert scheme.name == r'chain:[["\\p{N}{1,3}","isolated",false],["é+","contiguous",true]]'
    assert get_scheme(scheme.name) == scheme
    assert scheme.steps == steps
    assert not scheme.is_named
    assert not scheme.drops_text


@pytest.mark.parametrize("name", ["gpt2", "o200k", "none"])
def test_a_chain_that_is_a_named_scheme_becomes_that_one(name: str) -> None:
    scheme = get_scheme(name)
    assert get_scheme(f"chain:{render_steps(scheme.steps)}") == scheme
    inverted = [Step(step.pattern, "isolated", invert=True) for step in scheme.steps]
    assert chain_scheme(inverted) == scheme
    if scheme.steps:
        assert chain_scheme([Step(scheme.pattern, "removed", invert=True)]) == scheme


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("[", "is no JSON"),
        ("{}", "is no list of at most 20 steps"),
        (json.dumps([["a", "isolated", False]] * 21), "at most 20 steps"),
        ('[["a","isolated"]]', "step 0 is no list of a pattern, a behavior"),
        ('[["a","isolated",false],["a","dropped",false]]', "step 1 is no list"),
        ('[["","isolated",false]]', "step 0 is no list"),
        ('[["(","removed",false]]', "does not compile"),
        ("[" * 30_000, "is no JSON"),
        ("[" * 60_000, "at most 50,000 are allowed"),
    ],
)
def test_a_spec_that_is_no_chain_is_refused(rows: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        get_scheme(f"chain:{rows}")


def test_invalid_bytes_pass_a_chain(backend: str) -> None:
    del backend
    spec = chain_scheme([Step(r"\p{N}", "isolated"), Step(r" ?\p{L}+", "isolated")]).name
    data = b"\xffab 12\xe4\xbd x"
    assert get_scheme(spec).split(data) == [b"\xff", b"ab", b" ", b"1", b"2", b"\xe4\xbd", b" x"]
    assert sum(count_pretokens([data], spec)["count"].to_pylist()) == 7


@pytest.mark.parametrize("how", DIGITS)
def test_numbers_are_set_apart_before_a_scheme(how: str, data_dir: Path, backend: str) -> None:
    del backend
    golden = json.loads((data_dir / "cases" / "digits.json").read_bytes())[how]
    assert golden["regex"] == DIGITS[how]
    alone = get_scheme(f"digits:{how}:none")
    assert alone.steps == (Step(DIGITS[how], "isolated"),)
    for text, pieces in golden["examples"]:
        assert alone.split_text(text) == pieces
    for scheme in ("gpt2", "cl100k"):
        spec = f"digits:{how}:{scheme}"
        for text, pieces in golden[f"before_{scheme}"]:
            assert get_scheme(spec).split_text(text) == pieces
            words = count_pretokens([text], spec)["word"].to_pylist()
            assert words == sorted({piece.encode() for piece in pieces})
        assert get_scheme(get_scheme(spec).name) == get_scheme(spec)


def test_numbers_are_those_of_our_unicode_version() -> None:
    scheme = get_scheme("digits:single:gpt2")
    assert scheme.unicode_version == get_scheme("gpt2").unicode_version
    # The first is a number since Unicode 16; U+11DE0 since Unicode 17, so that it is none here.
    assert scheme.split_text("x\U00010d40\U00010d41") == ["x", "\U00010d40", "\U00010d41"]
    assert scheme.split_text("\U00011de0\U00011de1") == ["\U00011de0\U00011de1"]


@pytest.mark.parametrize("spec", ["digits:two:gpt2", "digits:single:digits:left3:gpt2", "digits:"])
def test_another_way_to_set_numbers_apart_is_refused(spec: str) -> None:
    with pytest.raises(SettingsError, match="one of single, left3, right3, once"):
        get_scheme(spec)
    with pytest.raises(SettingsError, match="unknown pre-tokenizer ''"):
        get_scheme("digits:single:")
