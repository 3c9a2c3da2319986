"""WordPiece by likelihood: golden merges, the specification against the native trainer, files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.choice import get_backend
from bpe.backends.recipe_values import WordPieceRules
from bpe.counting import count_pretokens
from bpe.errors import CountTableError, SettingsError
from bpe.pretokenizing.schemes import get_scheme
from bpe.recipes.wordpiece import SPECIALS
from bpe.tokenizer import Tokenizer
from bpe.training import read_counts, train

pytest.importorskip("bpe._native", reason="the native core is not built")
pytest.importorskip("tokenizers")

NAMES = (
    "bert_5_1_id",
    "bert_200_1_id",
    "bert_200_5_id",
    "bert_200_5_first",
    "bert_1000_1_id",
    "whitespace_200_1_id",
)


def golden(data_dir: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (data_dir / "recipes" / f"wordpiece_{name}.json").read_bytes()
    )
    return found


@pytest.fixture(scope="module")
def tables(tiny: Path) -> dict[str, pa.Table]:
    text = tiny.read_bytes()
    return {
        name: count_pretokens(text, name, first_positions=True) for name in ("bert", "whitespace")
    }


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "native") for name in NAMES), ("bert_5_1_id", "python")]
)
def test_golden_merges(
    name: str, backend: str, data_dir: Path, tables: dict[str, pa.Table]
) -> None:
    expected = golden(data_dir, name)
    table = tables[expected["pre_tokenizer"]]
    rules = WordPieceRules(
        10**6,
        expected["merges_asked"],
        expected["min_frequency"],
        expected["tie_order"],
        reserved=SPECIALS,
    )
    columns = read_counts(table, get_scheme(expected["pre_tokenizer"]))
    learned = get_backend(backend).train_wordpiece(*columns, rules)
    assert [list(merge) for merge in learned.merges] == expected["merges"]
    assert learned.tokens == expected["vocab"]
    assert learned.left_out_words == 0


@pytest.mark.parametrize("name", ["bert_200_5_id", "bert_1000_1_id", "whitespace_200_1_id"])
def test_golden_encoding(
    name: str, data_dir: Path, tables: dict[str, pa.Table], tiny: Path
) -> None:
    expected = golden(data_dir, name)
    tokenizer = train(
        tables[expected["pre_tokenizer"]],
        merges=expected["merges_asked"],
        pretokenizer=expected["pre_tokenizer"],
        recipe="wordpiece",
        min_frequency=expected["min_frequency"],
    )
    for case in expected["encode"]:
        ids = tokenizer.encode(case["word"])
        assert [tokenizer.id_to_token(i).decode() for i in ids.tolist()] == case["tokens"]
    assert tokenizer.count_tokens([tiny.read_bytes()]).tolist() == [
        expected["tokens_of_whole_text"]
    ]


WORDS = st.dictionaries(
    st.one_of(
        st.text("ab#", max_size=7).map(str.encode),
        st.text("aé世 \u3000#[UNK]", max_size=6).map(str.encode),
        st.sampled_from([b"[UNK]", b"\xff", b" ", b"##a", b"a##"]),
    ),
    st.one_of(st.integers(1, 4), st.integers(1, 2**56)),
    max_size=12,
)


@settings(deadline=None, max_examples=300)
@given(
    words=WORDS,
    tie_order=st.sampled_from(["id", "bytes", "first"]),
    min_frequency=st.sampled_from([1, 2, 5]),
    longest=st.sampled_from([3, 100]),
    alphabet=st.sampled_from([None, 1, 2]),
    max_tokens=st.sampled_from([0, 8, 1000]),
)
def test_the_native_trainer_is_the_specification(
    words: dict[bytes, int],
    tie_order: str,
    min_frequency: int,
    longest: int,
    alphabet: int | None,
    max_tokens: int,
) -> None:
    rules = WordPieceRules(
        max_tokens, 30, min_frequency, tie_order, SPECIALS, ("aa",), longest, alphabet
    )
    columns = read_counts(words, get_scheme("bert"))
    expected = get_backend("python").train_wordpiece(*columns, rules)
    assert get_backend("native").train_wordpiece(*columns, rules) == expected


@pytest.mark.parametrize("backend", ["python", "native"])
def test_scores_beyond_64_bits_are_compared_exactly(backend: str) -> None:
    # (2^60 + 1) / (2^60 + 1)^2 and 2^60 / (2^60)^2 are the same as doubles.
    words = {b"ab": 2**60 + 1, b"cd": 2**60, b"ef": 2**60 + 2}
    rules = WordPieceRules(100, 3, 1)
    columns = read_counts(words, get_scheme("bert"))
    learned = get_backend(backend).train_wordpiece(*columns, rules)
    assert [merge[0] for merge in learned.merges] == ["c", "a", "e"]


@pytest.mark.parametrize("backend", ["python", "native"])
def test_counts_beyond_63_bits_are_refused(backend: str) -> None:
    columns = read_counts({b"abc": 2**62}, get_scheme("bert"))
    with pytest.raises(CountTableError, match="occurs more than"):
        get_backend(backend).train_wordpiece(*columns, WordPieceRules(100, 3))


def test_files_hold_the_same_and_load_again(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    tokenizer = train(
        tables["bert"], 400, pretokenizer="bert", recipe="wordpiece", special_tokens=["<|x|>"]
    )
    assert tokenizer.vocab_size == 400
    assert tokenizer.special_tokens["<|x|>"] == 399
    tokenizer.save(tmp_path / "model")
    lines = (tmp_path / "model" / "vocab.txt").read_bytes().split(b"\n")
    assert lines[:5] == [name.encode() for name in SPECIALS]
    assert lines[399:] == [b"<|x|>", b""]
    loaded = Tokenizer.load(tmp_path / "model")
    loaded.check_files(tmp_path / "model")
    assert loaded.digest == tokenizer.digest
    assert pickle.loads(pickle.dumps(train_small())).digest == train_small().digest
    text = "What, ho! ünknown\u2603 wörd"
    assert loaded.encode(text).tolist() == tokenizer.encode(text).tolist()
    (tmp_path / "model" / "vocab.txt").write_bytes(b"[PAD]\n")
    with pytest.raises(Exception, match=r"vocab\.txt"):
        Tokenizer.load(tmp_path / "model")


def train_small() -> Tokenizer:
    return train({b"hug": 10, b"hugs": 5}, merges=2, pretokenizer="bert", recipe="wordpiece")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"vocab_size": 20}, "at least 117"),
        ({"merges": 2, "pretokenizer": "gpt2"}, "gpt2"),
        ({"merges": 2, "special_tokens": ["[UNK]"]}, "UNK"),
        ({"merges": 2, "special_tokens": ["a"]}, "'a'"),
        ({"merges": 2, "tie_order": "hf"}, "hf"),
        ({"merges": 2, "recipe_options": {"max_word_chars": 0}}, "max_word_chars"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    options: dict[str, Any], named: str, tables: dict[str, pa.Table]
) -> None:
    given_options = {"pretokenizer": "bert", **options}
    counts = tables["bert"] if given_options["pretokenizer"] == "bert" else {b"ab": 1}
    with pytest.raises(SettingsError, match=named):
        train(counts, recipe="wordpiece", **given_options)
