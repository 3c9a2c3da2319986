"""Pre-tokenizers of tokenizer.json: chains as model families publish them, and random ones."""

from __future__ import annotations

import json
import lzma
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import SCHEME_NAMES, Tokenizer, get_scheme
from tests.bpe.tokenizer_documents import (
    byte_level,
    compare,
    document_of,
    documents,
    sequence,
    split,
    texts,
)

pytest.importorskip("tokenizers", reason="the library that chains are compared with")

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_KIMI = (
    r"[\p{Han}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]+{_CONTRACTIONS}?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_EXAONE = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?:\p{{Join_Control}}\p{{L}})*)+"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
_DIGITS = {"type": "Digits", "individual_digits": True}
_FAMILIES = {
    "deepseek-llm": sequence(
        split(r"[\r\n]"),
        split(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺ]+"),
        split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
        split(r"\s+$"),
        split("[一-龥ࠀ-一가-\ud7ff]+"),
        _DIGITS,
        byte_level(),
    ),
    "starcoder": sequence(_DIGITS, byte_level(use_regex=True)),
    "tekken": sequence(split(_TEKKEN), byte_level()),
    "kimi": sequence(split(_KIMI), byte_level()),
    "exaone": sequence(split(_EXAONE), byte_level()),
    "bloom": sequence(split(_BLOOM), byte_level()),
    "galactica": sequence(
        {**split("", "MergedWithNext"), "pattern": {"String": " "}},
        _DIGITS,
        {"type": "Punctuation", "behavior": "Isolated"},
        byte_level(use_regex=True),
    ),
    "words": sequence({"type": "WhitespaceSplit"}, byte_level()),
    "gpt2 with a space before": byte_level(use_regex=True, add_prefix_space=True),
}
_MERGES = [
    *((b"t", b"h"), (b"th", b"e"), (b" ", b"the"), (b"1", b"2"), (b"12", b"3"), (b".", b"\n")),
    *((b" ", b" "), (b"\xe6", b"\xbc"), (b"\xe6\xbc", b"\xa2"), (b"(", b")"), (b" ", b"1")),
]
_EXAMPLES = [
    "The  the THE's 12345 x123,456.78\r\n\n  the\t漢字12 the, かなカナ “quoted” (the)  ",
    "।नमस्ते、 é e\u0301x\u200dy \u00bd Ⅻ٣٤ foo_bar/baz!!\n",
    " the",
    "!\n \n  ",
    "",
]


@pytest.mark.parametrize("family", _FAMILIES)
def test_chains_of_families_give_the_ids_of_their_library(family: str, backend: str) -> None:
    del backend
    document = document_of(_FAMILIES[family], _MERGES)
    tokenizer = compare(document, _EXAMPLES)
    is_lossy = family in ("words", "gpt2 with a space before")
    assert tokenizer.lossy == is_lossy
    data = b"\xff the 12\xe6\xbc \xa2\xf0\x9f"
    if not is_lossy:
        assert tokenizer.decode(tokenizer.encode(data)) == data
    assert tokenizer.decode_batch(tokenizer.encode_batch(_EXAMPLES)).to_pylist() == [
        tokenizer.decode(tokenizer.encode(text)) for text in _EXAMPLES
    ]


def test_text_that_is_dropped_is_missing_and_all_else_is_there(backend: str) -> None:
    del backend
    document = document_of(sequence({"type": "WhitespaceSplit"}, byte_level()), _MERGES)
    tokenizer = compare(document, _EXAMPLES)
    assert tokenizer.scheme.name == r'chain:[["\\s","removed",false]]'
    assert tokenizer.decode(tokenizer.encode(b"the \xff 12\n")) == b"the\xff12"


def test_a_chain_is_stored_and_loaded(tmp_path: Path, backend: str) -> None:
    del backend
    for index, pre_tokenizer in enumerate(_FAMILIES.values()):
        tokenizer = compare(document_of(pre_tokenizer, _MERGES), [])
        tokenizer.save(tmp_path / str(index))
        loaded = Tokenizer.from_directory(tmp_path / str(index))
        assert loaded.digest == tokenizer.digest
        assert loaded.scheme == tokenizer.scheme
        assert loaded.lossy == tokenizer.lossy


def test_what_is_a_named_scheme_becomes_that() -> None:
    gpt2 = split(get_scheme("gpt2").pattern)
    for pre_tokenizer in (
        sequence(byte_level(use_regex=True)),
        sequence(sequence(sequence(byte_level(use_regex=True)))),
        sequence({**gpt2, "behavior": "Removed", "invert": True}, byte_level()),
    ):
        assert compare(document_of(pre_tokenizer, _MERGES), _EXAMPLES).scheme.name == "gpt2"


@pytest.mark.parametrize("name", [name for name in SCHEME_NAMES if name != "superbpe"])
def test_named_schemes_are_written_as_published_and_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.from_merges([(b"t", b"h")], pretokenizer=name).to_huggingface(path)
    pre_tokenizer = json.dumps(json.loads(path.read_text())["pre_tokenizer"])
    assert "V1" not in pre_tokenizer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tokenizer.from_huggingface(path).scheme.name == name


def test_the_way_that_steps_are_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    steps = sequence(split(r"a(?=bc)"), split(r"\p{N}"), byte_level())
    path.write_text(json.dumps(document_of(steps, _MERGES)))
    with pytest.warns(UserWarning, match="they are read as chain:STEPS, which the Python package"):
        Tokenizer.from_huggingface(path)


@settings(max_examples=60, deadline=None)
@given(documents(), st.lists(texts(), min_size=1, max_size=4))
def test_random_files_give_the_ids_of_the_library(
    document: dict[str, Any], examples: list[str]
) -> None:
    compare(document, examples)


@pytest.mark.exhaustive
@settings(max_examples=100_000, deadline=None, database=None)
@given(documents(), st.lists(texts(), min_size=1, max_size=4))
def test_very_many_random_files_give_the_ids_of_the_library(
    document: dict[str, Any], examples: list[str]
) -> None:
    compare(document, examples)


@pytest.mark.parametrize("family", ["deepseek-v4"])
def test_published_chains_give_the_ids_of_their_library(family: str, shared_data: Path) -> None:
    packed = (shared_data / "zoo" / "files" / family / "tokenizer.json.xz").read_bytes()
    lines = (shared_data / "zoo" / "expected" / f"{family}.jsonl").read_text().splitlines()
    cases = [json.loads(line) for line in lines]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tokenizer = compare(json.loads(lzma.decompress(packed)), [case["text"] for case in cases])
    for case in cases:
        assert tokenizer.encode(case["text"], special_text="allow").tolist() == case["ids"]
