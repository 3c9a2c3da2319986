"""Sennrich's BPE: golden merges and pieces, both backends, a naive recount, files."""

from __future__ import annotations

import io
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.counting import count_pretokens
from bpe.engines.sennrich_content import SennrichContent
from bpe.engines.sennrich_library import SennrichLibrary
from bpe.errors import ModelFileError, SettingsError
from bpe.tokenizer import Tokenizer
from bpe.training import train


def golden(data_dir: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (data_dir / "recipes" / f"sennrich_{name}.json").read_bytes()
    )
    return found


def learn(counts: Any, size: int, end_mark: str = "attached", **options: Any) -> Tokenizer:
    return train(
        counts,
        merges=size,
        pretokenizer="spaces",
        recipe="sennrich",
        recipe_options={"end_mark": end_mark},
        **options,
    )


def library(tokenizer: Tokenizer) -> SennrichLibrary:
    found = tokenizer.model.library
    assert isinstance(found, SennrichLibrary)
    return found


def merges(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    return list(library(tokenizer).content.merges)


@pytest.mark.parametrize("backend", ["native", "python"])
def test_golden_codes_and_pieces(
    backend: str, data_dir: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPE_BACKEND", backend)
    expected = golden(data_dir, "tiny_500")
    text = tiny.read_bytes()
    table = count_pretokens(text, "spaces")
    distinct = sum(bool(word.strip(b" \n")) for word in table["word"].to_pylist())
    assert distinct == expected["distinct_words"]
    tokenizer = learn(table, 500)
    assert [list(pair) for pair in merges(tokenizer)] == expected["codes"]
    assert tokenizer.training["last_merge_count"] == expected["counts"][-1]
    for case in expected["encode"]:
        assert library(tokenizer).pieces(case["line"]) == case["segmented"]
    if backend == "native":
        assert tokenizer.count_tokens([text]).tolist() == [expected["pieces_of_whole_text"]]
        assert len(library(tokenizer).pieces(text.decode()).split()) == len(tokenizer.encode(text))


@pytest.mark.parametrize("backend", ["native", "python"])
@pytest.mark.parametrize(
    ("case", "end_mark", "tie_order"),
    [
        ("separate_mark_tie_first", "separate", "first"),
        ("separate_mark_tie_greatest", "separate", "greatest"),
        ("attached_mark_tie_greatest_subword_nmt", "attached", "greatest"),
    ],
)
def test_the_print_shop(
    case: str,
    end_mark: str,
    tie_order: str,
    backend: str,
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BPE_BACKEND", backend)
    shop = golden(data_dir, "print_shop")
    words = {word.encode(): count for word, count in shop["words"].items()}
    tokenizer = learn(words, 6, end_mark, tie_order=tie_order)
    expected = shop[case]
    assert [list(pair) for pair in merges(tokenizer)] == [row[:2] for row in expected["merges"]]
    assert tokenizer.training["last_merge_count"] == expected["merges"][-1][2]
    if "alphabet" in expected:
        alphabet = library(tokenizer).content.tokens[1 : 1 + len(expected["alphabet"])]
        assert list(alphabet) == expected["alphabet"]
        assert tokenizer.vocab_size == 1 + expected["symbols_after"]
    for word, pieces in expected.get("words", {}).items():
        assert [tokenizer.id_to_token(i).decode() for i in tokenizer.encode(word)] == pieces
    if end_mark == "attached":
        assert library(tokenizer).pieces("imprint") == expected["imprint"]
    else:
        shown = [tokenizer.id_to_token(i).decode() for i in tokenizer.encode("imprint")]
        assert shown == [piece if piece != "m" else "<unk>" for piece in expected["imprint"]]


TEXT = st.text("abé世c\u2603\t", min_size=1, max_size=7)


def naive_codes(words: dict[str, int], end_mark: str, count: int) -> list[tuple[str, str]]:
    """Everything counted anew for each merge; the greatest pair wins among equals."""
    text = [
        ([*word[:-1], f"{word[-1]}</w>"] if end_mark == "attached" else [*word, "</w>"], uses)
        for word, uses in words.items()
    ]
    found: list[tuple[str, str]] = []
    while len(found) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for symbols, uses in text:
            for pair in pairwise(symbols):
                pairs[pair] += uses
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        found.append(best)
        text = [(merged(symbols, best), uses) for symbols, uses in text]
    return found


def merged(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    made: list[str] = []
    for symbol in symbols:
        if made and (made[-1], symbol) == pair and not made[-1].startswith("\0"):
            made[-1] = "\0" + "".join(pair)  # the sign keeps it from merging again
        else:
            made.append(symbol)
    return [symbol.removeprefix("\0") for symbol in made]


def naive_pieces(word: str, codes: list[tuple[str, str]], end_mark: str) -> list[str]:
    symbols = [*word[:-1], f"{word[-1]}</w>"] if end_mark == "attached" else [*word, "</w>"]
    for pair in codes:
        symbols = merged(symbols, pair)
    return symbols


@settings(deadline=None, max_examples=200)
@given(
    words=st.dictionaries(TEXT, st.integers(1, 9), min_size=1, max_size=9),
    others=st.lists(st.text("abéüc世\u2603😀\t\u2602", min_size=1, max_size=7), max_size=5),
    end_mark=st.sampled_from(["attached", "separate"]),
)
def test_random_corpora_against_a_naive_recount(
    words: dict[str, int], others: list[str], end_mark: str
) -> None:
    tokenizer = learn({word.encode(): uses for word, uses in words.items()}, 12, end_mark)
    codes = naive_codes(words, end_mark, 12)
    assert merges(tokenizer) == codes
    known = set(library(tokenizer).content.tokens)
    every = [*words, *others]
    ids = tokenizer.encode(f"  {' '.join(every)}\r\n")
    expected = [piece for word in every for piece in naive_pieces(word, codes, end_mark)]
    shown = [piece if piece in known else "<unk>" for piece in expected]
    assert [tokenizer.id_to_token(i).decode() for i in ids.tolist()] == shown
    if "<unk>" not in shown:
        assert tokenizer.decode(ids).decode() == " ".join(every)
    assert library(tokenizer).pieces(" ".join(every)).replace("@@ ", "") == " ".join(every)


def test_pieces_are_those_of_subword_nmt() -> None:
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe")
    words = {"thé": 5, "theme": 4, "them": 3, "世界": 7, "a": 2, "aaaa": 9}
    tokenizer = learn({word.encode(): uses for word, uses in words.items()}, 9)
    theirs = apply_bpe.BPE(io.StringIO(library(tokenizer).content.render_codes().decode()))
    for line in ("thé them theme", " themes 世界世界 a aaaaaaa \u2603", "x  aa\ttheme "):
        assert library(tokenizer).pieces(line) == theirs.process_line(line)


def test_files_hold_the_same_and_load_again(tiny: Path, tmp_path: Path) -> None:
    table = count_pretokens(tiny.read_bytes()[:50_000], "spaces")
    tokenizer = learn(table, 50, special_tokens=["<|x|>"])
    tokenizer.save(tmp_path / "model")
    codes = (tmp_path / "model" / "codes").read_text().splitlines()
    assert codes[0] == "#version: 0.2"
    assert [tuple(line.split(" ")) for line in codes[1:]] == merges(tokenizer)
    loaded = Tokenizer.load(tmp_path / "model")
    loaded.check_files(tmp_path / "model")
    assert loaded.digest == tokenizer.digest
    texts = ["so <|x|>it is", "", "  ", "ends so"]
    assert loaded.encode_batch(texts, special_text="allow").to_pylist() == [
        [*loaded.encode("so").tolist(), loaded.special_tokens["<|x|>"], *loaded.encode("it is")],
        [],
        [],
        loaded.encode("ends so").tolist(),
    ]


def test_a_long_text_has_the_ids_of_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = learn({b"abc": 5, b"cab": 3}, 4)
    text = "abc  cab\nbca " * 50
    expected = tokenizer.encode(text).tolist()
    monkeypatch.setattr("bpe.engines.sennrich_library._CHUNK_BYTES", 7)
    array = pa.array([text, "abc", "", "c" * 40, text])
    assert tokenizer.encode_batch(array).to_pylist() == [
        expected,
        tokenizer.encode("abc").tolist(),
        [],
        tokenizer.encode("c" * 40).tolist(),
        expected,
    ]


def test_words_that_cannot_be_trained_on_are_counted() -> None:
    tokenizer = learn({b"ab": 5, b"\xff": 2, b"a</w>b": 3, b" ": 9, b"\n\n": 1}, 1)
    assert (tokenizer.training["left_out_words"], tokenizer.training["left_out_uses"]) == (2, 5)
    assert tokenizer.decode(tokenizer.encode(b"ab a\xff")) == b"ab a<unk>"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"pretokenizer": "whitespace"}, "whitespace"),
        ({"recipe_options": {"end_mark": "none"}}, "end_mark"),
        ({"special_tokens": ["a"]}, "'a'"),
        ({"tie_order": "hf"}, "hf"),
        ({"tie_order": "first", "counts": pa.table({"word": [b"a"], "count": [1]})}, "first"),
        ({"merges": None, "vocab_size": 2}, "at least 3"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    usual = {"counts": {b"aab": 3}, "merges": 2, "pretokenizer": "spaces"}
    with pytest.raises(SettingsError, match=named):
        train(**{**usual, **options}, recipe="sennrich")


SYMBOLS = st.sampled_from(["a", "b", "b</w>", "</w>", "<", "/w>", "ab", "ab</w>", "世", "世</w>"])


@settings(deadline=None)
@given(
    end_mark=st.sampled_from(["attached", "separate"]),
    tokens=st.lists(SYMBOLS, unique=True),
    merges=st.lists(st.tuples(SYMBOLS, SYMBOLS), max_size=3),
)
def test_a_file_of_any_tokens_is_refused_or_encodes(
    end_mark: str, tokens: list[str], merges: list[tuple[str, str]]
) -> None:
    made = dict.fromkeys([*tokens, *("".join(pair) for pair in merges)])
    content = SennrichContent(end_mark, ("<unk>", *made), tuple(merges))
    try:
        engine = SennrichLibrary(content.render())
    except ModelFileError:
        return
    for word in ("ab", "abb", "世b", "b世世", "</w>", "c"):
        pieces = naive_pieces(word, merges, end_mark)
        if "</w>" not in made:  # a mark that no word was trained with is nothing
            pieces = [piece for piece in pieces if piece != "</w>"]
        expected = [engine.content.tokens.index(p) if p in made else 0 for p in pieces]
        assert engine.encode([word], specials=False, threads=1)[0].tolist() == expected


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "other"}, "format"),
        ({"end_mark": 1}, "end_mark"),
        ({"tokens": ["a"]}, "tokens"),
        ({"tokens": ["<unk>", "a b"]}, "blank"),
        ({"tokens": ["<unk>", "\ud800"]}, "surrogate"),
        ({"merges": [["a", "x"]]}, "merges"),
        ({"merges": [["a", "b</w>"], ["a", "b</w>"]]}, "merges"),
        ({"merges": 5}, "merges"),
        ({"merges": []}, "no merge makes"),
        ({"tokens": ["<unk>", "a", "b</w>", "ab</w>", "abc"]}, "no merge makes"),
        ({"end_mark": "separate"}, "merges"),
        (
            {
                "tokens": ["<unk>", "a", "b</w>", "ab</w>", "ab</w>a"],
                "merges": [["a", "b</w>"], ["ab</w>", "a"]],
            },
            "merges",
        ),
        ({"special_tokens": ["a"]}, "twice"),
    ],
)
def test_a_damaged_file_is_refused_by_member(change: dict[str, Any], named: str) -> None:
    document = json.loads(library(learn({b"ab": 5}, 1)).content.render())
    with pytest.raises(ModelFileError, match=named):
        SennrichLibrary(json.dumps({**document, **change}).encode())
