"""Unigram: golden pieces, seeds against a plain count, fields, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.counting import count_pretokens
from bpe.errors import CountTableError, SettingsError
from bpe.formats.sentencepiece_model import parse_sentencepiece
from bpe.recipes.registry import RecipeSettings
from bpe.recipes.unigram import most_seeds, select_words, train_with_seeds
from bpe.recipes.unigram_seeds import (
    add_substrings,
    count_substrings,
    join_seeds,
    keep_to,
    pick_seeds,
    training_words,
)
from bpe.tokenizer import Tokenizer
from bpe.training import train

sentencepiece = pytest.importorskip("sentencepiece")

DATA = Path(__file__).resolve().parents[2] / "data"
COUNTS = st.dictionaries(
    st.text("ab\u00e9\U0001f600", min_size=1, max_size=9), st.integers(1, 5), min_size=1, max_size=9
)
TEXTS = st.lists(st.text("the adnq \n\t\u00e9\u2581", max_size=25), max_size=6)


@cache
def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "recipes" / "unigram_seeds.json").read_text())
    return found


@cache
def tiny_counts() -> pa.Table:
    return count_pretokens([(DATA / "tiny_shakespeare.txt").read_bytes()], "whitespace")


@cache
def trained(size: int = 2000, **options: Any) -> Tokenizer:
    return train(
        tiny_counts(), size, pretokenizer="whitespace", recipe="unigram", recipe_options=options
    )


@cache
def small() -> Tokenizer:
    counts = count_pretokens([(DATA / "tiny_shakespeare.txt").read_bytes()[:50_000]], "whitespace")
    return train(
        counts, 400, pretokenizer="whitespace", recipe="unigram", special_tokens=["<|end|>"]
    )


def pieces(tokenizer: Tokenizer) -> list[list[Any]]:
    model = parse_sentencepiece(tokenizer.model.content, "the model")  # type: ignore[union-attr]
    return [[piece.text, piece.score] for piece in model.pieces]


def plain_seeds(words: dict[str, int], longest: int) -> list[tuple[str, int]]:
    """The rule of the seeds, by full counts."""
    uses: Counter[str] = Counter()
    followers: dict[str, set[str]] = {}
    for word, count in words.items():
        text = "\u2581" + word
        for start in range(len(text)):
            for end in range(start + 2, min(start + longest, len(text)) + 1):
                uses[text[start:end]] += count
                followers.setdefault(text[start:end], set()).add(text[end : end + 1])
    kept = [
        (piece, count)
        for piece, count in uses.items()
        if count >= 2 and (len(followers[piece]) > 1 or followers[piece] == {""})
    ]
    return sorted(kept, key=lambda row: (-row[1] * len(row[0]), row[0].encode()))


def rows(seeds: pa.Table) -> list[tuple[str, int]]:
    return [
        (row["word"].decode(), row["count"]) for row in seeds.select(["word", "count"]).to_pylist()
    ]


def test_pieces_and_ids_are_golden(tmp_path: Path) -> None:
    tokenizer = trained()
    assert pieces(tokenizer) == golden()["pieces"]
    for row in golden()["encode"]:
        assert tokenizer.encode(row["text"]).tolist() == row["ids"]
    lines = (DATA / "tiny_shakespeare.txt").read_text().split("\n")
    encoded = tokenizer.encode_batch(lines)
    assert len(encoded.flatten()) == golden()["tokens_of_all_lines"]
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer.to_huggingface(tmp_path / "tokenizer.json")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    found = library.encode_batch(lines, add_special_tokens=False)
    assert [each.ids for each in found] == encoded.to_pylist()


@pytest.mark.slow
def test_without_seeds_pieces_are_those_of_sentencepiece_alone(shared_data: Path) -> None:
    plain = json.loads((shared_data / "recipes" / "unigram_plain.json").read_text())
    taken = RecipeSettings("unigram", "whitespace", (2000,))
    table = tiny_counts()
    chosen = select_words(
        pa.concat_arrays(table["word"].chunks), pa.concat_arrays(table["count"].chunks), taken
    )
    made = train_with_seeds(chosen, add_substrings([]), taken, training_record={})[2000]
    assert pieces(made) == plain["pieces"]
    for row in plain["encode"]:
        assert made.encode(row["text"]).tolist() == row["ids"]


def test_seeds_are_golden() -> None:
    taken = RecipeSettings("unigram", "whitespace", (2000,))
    table = tiny_counts()
    chosen = select_words(
        pa.concat_arrays(table["word"].chunks), pa.concat_arrays(table["count"].chunks), taken
    )
    total = add_substrings(list(count_substrings(chosen.words, chosen.counts, 16)))
    seeds = pick_seeds(total, most_seeds(chosen, taken))
    assert len(seeds) == golden()["seeds"]
    assert [list(row) for row in rows(seeds)[:20]] == golden()["seeds_first"]


@given(words=COUNTS, longest=st.integers(2, 6), cut=st.integers(0, 9), most=st.integers(0, 12))
def test_seeds_are_those_of_a_full_count_however_words_are_divided(
    words: dict[str, int], longest: int, cut: int, most: int
) -> None:
    texts = pa.array(list(words), pa.large_string())
    counts = pa.array(list(words.values()), pa.int64())
    parts = [
        table
        for part in (slice(0, cut), slice(cut, None))
        for table in count_substrings(texts[part], counts[part], longest)
    ]
    total = add_substrings(parts)
    expected = plain_seeds(words, longest)[:most]
    assert rows(pick_seeds(total, most)) == expected
    # Buckets hold whole substrings, and each gives its best.
    odd = pa.array([len(word) % 3 == 1 for word in total["word"].to_pylist()], pa.bool_())
    halves = [total.filter(odd), total.filter(pa.compute.invert(odd))]
    assert rows(join_seeds([pick_seeds(half, most) for half in halves], most)) == expected


def test_words_that_cannot_be_trained_on_are_counted() -> None:
    rows = {
        b"good": 5,
        "\u00e9".encode(): 2,
        b"  \n": 7,
        "\u3000".encode(): 7,
        b"x" * 4192: 1,
        b"x" * 4193: 1,
        b"\xff": 2,
        b"a\tb": 4,
        "a\u2581".encode(): 8,
        "\u2585".encode(): 16,
        b"n\0l": 32,
    }
    found = training_words(
        pa.array(list(rows), pa.large_binary()), pa.array(list(rows.values()), pa.int64())
    )
    assert found.words.to_pylist() == ["good", "\u00e9", "x" * 4192]
    assert found.counts.to_pylist() == [5, 2, 1]
    assert (found.left_out_words, found.left_out_uses) == (6, 63)


@given(words=COUNTS, most=st.integers(1, 9), least=st.integers(1, 3))
def test_the_most_frequent_words_are_chosen(words: dict[str, int], most: int, least: int) -> None:
    table = [word.encode() for word in words]
    counts = pa.array(list(words.values()), pa.int64())
    taken = RecipeSettings(
        "unigram", "whitespace", (99,), min_frequency=least, options={"max_words": most}
    )
    ranked = sorted(table, key=lambda word: (-words[word.decode()], word))[:most]
    kept = sorted(word for word in ranked if words[word.decode()] >= least)
    if not kept:
        with pytest.raises(CountTableError, match="no word is left"):
            select_words(pa.array(table, pa.large_binary()), counts, taken)
        return
    chosen = select_words(pa.array(table, pa.large_binary()), counts, taken)
    assert [word.encode() for word in chosen.words.to_pylist()] == kept
    assert chosen.left_out_words == len(words) - len(kept)
    assert sum(chosen.counts.to_pylist()) + chosen.left_out_uses == sum(words.values())
    least_kept = min(words[word.decode()] for word in kept)
    last = max(word for word in kept if words[word.decode()] == least_kept)
    whole = training_words(pa.array(table, pa.large_binary()), counts)
    again = keep_to(whole, (least_kept, last))
    assert sorted(again.words.to_pylist()) == sorted(chosen.words.to_pylist())


@given(texts=TEXTS)
@settings(max_examples=60)
def test_texts_are_encoded_field_by_field(texts: list[str]) -> None:
    tokenizer = small()
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.model.content  # type: ignore[union-attr]
    )
    blank = processor.piece_to_id("\u2581")
    expected = [
        [i for part in text.split(" ") for i in (processor.encode(part) if part else [blank])]
        if text
        else []
        for text in texts
    ]
    assert tokenizer.encode_batch(texts).to_pylist() == expected
    assert [tokenizer.encode(text).tolist() for text in texts] == expected
    assert tokenizer.count_tokens(texts).tolist() == list(map(len, expected))
    for text, ids in zip(texts, expected, strict=True):
        if not np.isin(ids, [0]).any() and "\u2581" not in text:
            assert tokenizer.decode(ids) == text.encode()


def test_a_trained_model_is_saved_with_both_files(tmp_path: Path) -> None:
    tokenizer = small()
    assert tokenizer.special_tokens == {"<s>": 1, "</s>": 2, "<|end|>": 3}
    tokenizer.save(tmp_path / "model")
    loaded = Tokenizer.load(tmp_path / "model")
    sent = pickle.loads(pickle.dumps(tokenizer))
    assert loaded == sent == tokenizer
    loaded.check_files(tmp_path / "model")
    text = "ROMEO, my lord<|end|>what?"
    ids = loaded.encode(text, special_text="allow").tolist()
    assert 3 in ids
    assert 3 not in loaded.encode(text).tolist()
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    plain = "First Citizen:  we are"
    assert library.encode(plain).ids == loaded.encode(plain).tolist()
    assert library.decode(loaded.encode(plain).tolist()) == plain


def test_training_again_gives_the_same_file() -> None:
    again = train(
        count_pretokens([(DATA / "tiny_shakespeare.txt").read_bytes()[:50_000]], "whitespace"),
        400,
        pretokenizer="whitespace",
        recipe="unigram",
        special_tokens=["<|end|>"],
    )
    assert again.digest == small().digest
    assert again.model.to_bytes() == small().model.to_bytes()


def test_options_reach_the_trainer() -> None:
    counts = {b"alpha": 9, b"alphabet": 7, b"beta12": 5, b"gamma": 4, b"al": 3}
    made = train(
        counts,
        278,
        pretokenizer="whitespace",
        recipe="unigram",
        recipe_options={
            "byte_fallback": True,
            "user_defined_symbols": ["phab"],
            "split_digits": True,
            "max_sentencepiece_length": 4,
        },
    )
    texts = [text for text, _ in pieces(made)]
    assert "phab" in texts
    assert "<0xFF>" in texts
    assert max(len(text) for text in texts if not text.startswith("<")) <= 4
    assert made.decode(made.encode("\u4e16\n\tbeta")) == "\u4e16\n\tbeta".encode()
    assert made.training["user_defined_symbols"] == ["phab"]
    with pytest.raises(Exception, match=r"tokenizer\.json"):
        made.to_huggingface("unwritten.json")


def test_what_cannot_be_trained_is_refused() -> None:
    for size, options, message in (
        (99_999, {}, "sentencepiece does not train it"),
        (3, {}, "sentencepiece does not train it"),
    ):
        with pytest.raises(SettingsError, match=message):
            train(
                {b"ab": 3},
                size,
                pretokenizer="whitespace",
                recipe="unigram",
                recipe_options=options,
            )
    with pytest.raises(SettingsError, match="use whitespace"):
        train({b"ab": 3}, 9, pretokenizer="gpt2", recipe="unigram")
    with pytest.raises(CountTableError, match="no word is left"):
        train({b"  ": 3}, 9, pretokenizer="whitespace", recipe="unigram")
