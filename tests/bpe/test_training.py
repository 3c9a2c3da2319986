"""Training: the incremental trainer equals the specification, and says why it stops."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend
from bpe.backends.values import MAX_COUNT, TIE_ORDERS, MergeList, MergeRules
from bpe.counting import count_pretokens
from bpe.errors import BpeError, CountTableError, InputError, SettingsError
from bpe.reference.naive import naive_merges
from bpe.training import train, train_raw

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
PRINTABLE += [value for value in range(256) if value not in PRINTABLE]

with_backend = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def binary(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def learn_words(backend: Backend, words: dict[bytes, int], rules: MergeRules) -> MergeList:
    counts = pa.array(list(words.values()), pa.int64())
    firsts, position = [], 0
    for word in words:
        firsts.append(position)
        position += len(word)
    # Handed over in another order than that of the first positions.
    order = pa.array(sorted(range(len(words)), key=lambda index: list(words)[index]), pa.int64())
    return backend.train_words(
        binary(list(words)).take(order),
        counts.take(order),
        pa.array(firsts, pa.int64()).take(order),
        rules,
    )


RUNS = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"ab", b" ", b"\xc3"]), st.integers(1, 7)), max_size=6
).map(lambda runs: b"".join(symbol * length for symbol, length in runs))
LIMITS = st.tuples(
    st.integers(0, 30),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 5)),
    st.frozensets(st.sampled_from([b"ab", b"aa", b"aba", b" a", b"aaaa"]), max_size=2),
)


@pytest.mark.parametrize("tie_order", TIE_ORDERS)
@with_backend
@given(documents=st.lists(RUNS, max_size=4), limits=LIMITS)
def test_raw_training_equals_counting_anew(
    backend: Backend,
    tie_order: str,
    documents: list[bytes],
    limits: tuple[int, int, int | None, frozenset[bytes]],
) -> None:
    max_merges, min_frequency, max_token_bytes, forbidden = limits
    rules = MergeRules(max_merges, tie_order, min_frequency, max_token_bytes, forbidden)
    found = backend.train_raw(binary(documents), rules)
    assert found == naive_merges([(document, 1) for document in documents], rules)


@pytest.mark.parametrize("tie_order", TIE_ORDERS)
@with_backend
@given(words=st.dictionaries(RUNS.filter(bool), st.integers(1, 9), max_size=6), limits=LIMITS)
def test_word_training_equals_counting_anew(
    backend: Backend,
    tie_order: str,
    words: dict[bytes, int],
    limits: tuple[int, int, int | None, frozenset[bytes]],
) -> None:
    max_merges, min_frequency, max_token_bytes, forbidden = limits
    rules = MergeRules(max_merges, tie_order, min_frequency, max_token_bytes, forbidden)
    assert learn_words(backend, words, rules) == naive_merges(list(words.items()), rules)


@pytest.mark.parametrize(
    ("tie_order", "merges"),
    [
        ("hf", [(b"a", b"z"), (b"a", b" "), (b"b", b"a ")]),
        ("id", [(b" ", b"a"), (b"a", b" a"), (b"b", b"a a")]),
        ("bytes", [(b" ", b"a"), (b" a", b"z"), (b"a", b" az")]),
        ("first", [(b"b", b"a"), (b"ba", b" "), (b"ba ", b"a")]),
    ],
)
@pytest.mark.usefixtures("backend")
def test_tie_orders_of_a_raw_text(tie_order: str, merges: list[tuple[bytes, bytes]]) -> None:
    tokenizer = train_raw([b"ba az"], 256 + 3, tie_order=tie_order, min_frequency=1)
    assert tokenizer.merges == merges


@pytest.mark.parametrize("tie_order", ["hf", "id", "bytes"])
@pytest.mark.parametrize("is_first", [True, False])
def test_every_byte_has_its_place_among_ties(
    backend: Backend, tie_order: str, *, is_first: bool
) -> None:
    pairs = [bytes([value, 0x20] if is_first else [0x20, value]) for value in range(256)]
    rules = MergeRules(256, tie_order, min_frequency=1)
    documents = pa.array(sorted(pairs, reverse=True), pa.large_binary())
    order = PRINTABLE if tie_order == "hf" else range(256)
    wanted = [pair for value in order for pair in pairs if value == pair[not is_first]]
    found = backend.train_raw(documents, rules)
    assert [left + right for left, right in found.merges] == wanted


def test_overlapping_pairs_count(backend: Backend) -> None:
    found = learn_words(backend, {b"aaaa": 2, b"bc": 5}, MergeRules(2))
    assert found.merges == [(b"a", b"a"), (b"b", b"c")]
    assert found.counts == [6, 5]


@pytest.mark.usefixtures("backend")
def test_training_stops_when_nothing_is_left(caplog: pytest.LogCaptureFixture) -> None:
    counts = count_pretokens(b"ab ab ab", "gpt2")
    with caplog.at_level(logging.WARNING, logger="bpe.training"):
        tokenizer = train(counts, 300, pretokenizer="gpt2", min_frequency=1)
    assert tokenizer.merges == [(b"a", b"b"), (b" ", b"ab")]
    assert tokenizer.vocab_size == 258
    assert tokenizer.training["stop_reason"] == "exhausted"
    assert "stopped at 258 of 300 tokens: no pair is left" in caplog.text


@pytest.mark.usefixtures("backend")
def test_training_stops_below_min_frequency(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="bpe.training"):
        tokenizer = train({b"ab": 3, b"cd": 1}, 300, pretokenizer="gpt2")
    assert tokenizer.merges == [(b"a", b"b")]
    assert tokenizer.training["stop_reason"] == "min_frequency"
    assert tokenizer.training["last_merge_count"] == 3
    assert "rarer than min_frequency=2" in caplog.text


@pytest.mark.usefixtures("backend")
def test_vocab_size_counts_bytes_merges_and_special_tokens() -> None:
    words = {b"abcd": 5, b"abce": 4}
    tokenizer = train(words, 260, pretokenizer="gpt2", special_tokens=["<s>", "</s>"])
    assert len(tokenizer.merges) == 2
    assert tokenizer.vocab_size == 260
    assert tokenizer.special_tokens == {"<s>": 258, "</s>": 259}
    assert tokenizer.training["stop_reason"] == "vocab_size"
    empty = train(words, 258, pretokenizer="gpt2", special_tokens=["<s>", "</s>"])
    assert empty.merges == []


@pytest.mark.usefixtures("backend")
def test_no_merge_spells_a_special_token() -> None:
    tokenizer = train({b"<s>": 9, b"<sx": 4}, 300, pretokenizer="gpt2", special_tokens=["<s>"])
    assert b"<s>" not in {left + right for left, right in tokenizer.merges}
    assert (b"<", b"s") in tokenizer.merges
    assert (b"<s", b"x") in tokenizer.merges


@pytest.mark.usefixtures("backend")
def test_max_token_bytes_bounds_every_token() -> None:
    unbounded = train({b"abcdefgh": 9}, 300, pretokenizer="gpt2")
    assert max(len(left + right) for left, right in unbounded.merges) == 8
    bounded = train({b"abcdefgh": 9}, 300, pretokenizer="gpt2", max_token_bytes=3)
    assert max(len(left + right) for left, right in bounded.merges) == 2


def test_counts_above_32_bits_and_at_the_limit(backend: Backend) -> None:
    words = {b"ab": 2**40, b"cd": 2**33, b"ef": MAX_COUNT}
    found = learn_words(backend, words, MergeRules(3))
    assert found.merges == [(b"e", b"f"), (b"a", b"b"), (b"c", b"d")]
    assert found.counts == [MAX_COUNT, 2**40, 2**33]


@pytest.mark.parametrize(
    "words", [{b"ab": MAX_COUNT, b"abc": 1}, {b"aaaa": 2**62}, {b"aa": 2**62, b"xaa": 2**62}]
)
def test_a_pair_count_above_the_limit_is_refused(backend: Backend, words: dict[bytes, int]) -> None:
    with pytest.raises(CountTableError, match=str(MAX_COUNT)):
        learn_words(backend, words, MergeRules(3))


@pytest.mark.parametrize("count", [0, -3])
def test_counts_start_at_one(backend: Backend, count: int) -> None:
    with pytest.raises(CountTableError, match=f"ab.*{count}"):
        learn_words(backend, {b"xy": 4, b"ab": count}, MergeRules(3))


def test_a_word_twice_is_refused(backend: Backend) -> None:
    counts = pa.array([1, 1], pa.int64())
    with pytest.raises(CountTableError, match="ab"):
        backend.train_words(binary([b"ab", b"ab"]), counts, None, MergeRules(3))


def test_first_needs_positions(backend: Backend) -> None:
    counts = pa.array([1], pa.int64())
    with pytest.raises(SettingsError, match="first_positions=True"):
        backend.train_words(binary([b"ab"]), counts, None, MergeRules(3, "first"))


def test_nothing_to_train_on(backend: Backend) -> None:
    empty = MergeList([], [], "exhausted")
    assert backend.train_raw(binary([]), MergeRules(3)) == empty
    assert backend.train_raw(binary([b"", b"a"]), MergeRules(3)) == empty
    none = pa.array([], pa.int64())
    assert backend.train_words(binary([]), none, None, MergeRules(3)) == empty
    assert backend.train_words(binary([]), none, None, MergeRules(0)).stop_reason == "vocab_size"


def test_progress_ends_with_the_number_of_merges(backend: Backend) -> None:
    calls: list[tuple[int, int]] = []
    words = {bytes([one, other]): 5 for one in range(20) for other in range(20, 40)}
    positions = pa.array(range(len(words)), pa.int64())
    found = backend.train_words(
        binary(list(words)),
        pa.array(list(words.values()), pa.int64()),
        positions,
        MergeRules(150),
        lambda made, asked: calls.append((made, asked)),
    )
    assert calls[-1] == (len(found.merges), 150) == (150, 150)
    assert calls == sorted(calls)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"vocab_size": 255}, ["255", "256"]),
        ({"vocab_size": 257, "special_tokens": ["a!", "b!"]}, ["257", "258", "2 special tokens"]),
        ({"special_tokens": ["a!", "a!"]}, ["'a!'", "twice"]),
        ({"special_tokens": [""]}, ["empty"]),
        ({"special_tokens": "<s>"}, ["list"]),
        ({"tie_order": "lex"}, ["'lex'", "hf, id, bytes, first"]),
        ({"min_frequency": 0}, ["min_frequency is 0", "at least 1"]),
        ({"max_token_bytes": 0}, ["max_token_bytes is 0", "at least 1"]),
        ({"pretokenizer": "gpt5"}, ["'gpt5'", "cl100k"]),
        ({"counts": {"ab": 3}}, ["'ab'", "bytes"]),
        ({"counts": {b"ab": 1.5}}, ["ab", "1.5", "integers"]),
        ({"counts": {b"ab": 2**63}}, ["ab", str(MAX_COUNT)]),
        ({"counts": pa.table({"word": ["ab"]})}, ["no column 'count'"]),
        ({"counts": pa.table({"word": ["ab"], "count": [None]})}, ["'count'", "nulls"]),
        ({"counts": pa.table({"word": ["ab"], "count": ["x"]})}, ["'count'", "int64"]),
    ],
)
def test_settings_that_cannot_be_honoured(arguments: dict[str, object], words: list[str]) -> None:
    settled = {"counts": {b"ab": 3}, "vocab_size": 300, "pretokenizer": "gpt2", **arguments}
    with pytest.raises(BpeError) as caught:
        train(**settled)  # type: ignore[arg-type]
    assert isinstance(caught.value, InputError)
    missing = [word for word in words if word not in str(caught.value)]
    assert not missing, str(caught.value)


def test_counts_of_another_scheme_are_refused() -> None:
    counts = count_pretokens(b"some text", "gpt2")
    with pytest.raises(CountTableError, match=r"scheme 'gpt2'.*'cl100k'"):
        train(counts, 300, pretokenizer="cl100k")


@pytest.mark.usefixtures("backend")
def test_a_table_made_elsewhere_is_taken() -> None:
    table = pa.table({"count": pa.array([3, 4], pa.int32()), "word": ["ab", "cd"]})
    assert train(table, 300, pretokenizer="gpt2").merges == [(b"c", b"d"), (b"a", b"b")]
    chunked = pa.concat_tables(
        [table, pa.table({"count": pa.array([9]), "word": ["xy"]})], promote_options="permissive"
    )
    assert train(chunked, 257, pretokenizer="gpt2").merges == [(b"x", b"y")]


def test_raw_documents_may_be_text_bytes_or_arrow() -> None:
    expected = train_raw(["abab", b"ab"], 258).merges
    assert expected == [(b"a", b"b")]
    assert train_raw(pa.array(["abab", "ab"]), 258).merges == expected
    with pytest.raises(SettingsError, match="list"):
        train_raw("abab", 258)
    with pytest.raises(InputError, match="index 1"):
        train_raw(["a\ud800"], 258)


def test_training_record_keeps_what_the_caller_adds() -> None:
    tokenizer = train(
        {b"ab": 3}, 257, pretokenizer="gpt2", training_record={"inputs": ["corpus.txt"]}
    )
    assert tokenizer.training["inputs"] == ["corpus.txt"]
    assert tokenizer.training["vocab_size"] == 257


@pytest.mark.usefixtures("backend")
def test_raw_documents_end_at_special_tokens_where_they_are_allowed() -> None:
    texts = ["ab<s>ab ab<s>", "<s>", "ba<s>b"]
    options: dict[str, Any] = {"min_frequency": 1, "special_tokens": ["<s>"]}
    cut = train_raw(texts, 280, special_text="allow", **options)
    parts = train_raw(["ab", "ab ab", "ba", "b"], 280, **options)
    assert cut.merges == parts.merges
    assert train_raw(texts, 280, **options).merges != parts.merges
    with pytest.raises(InputError, match="document 0 holds the special token '<s>' at byte 2"):
        train_raw(texts, 280, special_text="reject", **options)
    clean = train_raw(["ab", "ab ab", "ba", "b"], 280, special_text="reject", **options)
    assert clean.merges == parts.merges
    with pytest.raises(SettingsError, match="'skip'"):
        train_raw(texts, 280, special_text="skip", **options)
