"""Special tokens: where they are found, how they are counted, and what they may not be."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import InputError, VocabularyError

SPECIALS = SpecialTokens({"<a>": 300, "<a>b": 301, "<|ünï|>": 302})


def test_the_leftmost_then_longest_is_taken() -> None:
    data = b"x<a>b<a>c<a"
    assert SPECIALS.split(data) == [(0, 1, None), (1, 5, 301), (5, 8, 300), (8, 11, None)]


def test_segments_of_nothing_are_left_out() -> None:
    assert SPECIALS.split(b"") == []
    assert SPECIALS.split(b"<a><a>") == [(0, 3, 300), (3, 6, 300)]


def test_offsets_are_bytes() -> None:
    assert SPECIALS.find("é<|ünï|>".encode()) == (2, 11, 302)
    assert SPECIALS.find(b"<a><a>", 1) == (3, 6, 300)
    assert SPECIALS.find(b"none") is None


def test_without_special_tokens_all_is_text() -> None:
    assert not SpecialTokens({})
    assert SpecialTokens({}).split(b"<a>") == [(0, 3, None)]
    assert SpecialTokens({}).rows_with_hits(pa.array([b"<a>"], pa.large_binary())) == []
    assert SpecialTokens({}).max_bytes == 0


@given(st.lists(st.sampled_from(["<a>", "<a>b", "<", "a>", "b", "é", "<|ünï|>"]), max_size=12))
def test_segments_cover_the_document(parts: list[str]) -> None:
    data = "".join(parts).encode()
    segments = SPECIALS.split(data)
    assert b"".join(data[start:end] for start, end, _ in segments) == data
    assert all(start < end for start, end, _ in segments)


TYPES = (
    pa.string(),
    pa.binary(),
    pa.large_string(),
    pa.large_binary(),
    pa.string_view(),
    pa.binary_view(),
)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("arrow_type", TYPES, ids=str)
def test_counts_are_per_token_and_ignore_nulls(arrow_type: pa.DataType) -> None:
    texts = pa.array(["<a>b <a>", None, "", "none", "<a><a>"], pa.string()).cast(arrow_type)
    assert SPECIALS.count(texts) == {"<a>": 3, "<a>b": 1, "<|ünï|>": 0}
    assert SPECIALS.count(texts[3:]) == {"<a>": 2, "<a>b": 0, "<|ünï|>": 0}


@pytest.mark.usefixtures("backend")
@given(st.lists(st.sampled_from(["", "<", "<a", "<a>", "a>b", ">", "b", "x<a>b"]), max_size=10))
def test_rows_with_hits_are_those_that_hold_one(texts: list[str]) -> None:
    # Neighbours may spell a special token together; that is no hit.
    array = pa.array(["skipped", *texts], pa.large_binary())[1:]
    expected = [row for row, text in enumerate(texts) if "<a>" in text]
    assert SPECIALS.rows_with_hits(array) == expected


@pytest.mark.one_in(4)
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("more", [0, 2000])
@given(data=st.lists(st.sampled_from([b"<a>", b"<", b"a>", b".", b"\xff", b"\0", b"\n"])))
def test_counts_are_those_of_bytes_in_any_bytes(data: list[bytes], more: int) -> None:
    texts = ["<a>", "\0\n", "é|", *(f"<{number}>" for number in range(more))]
    specials = SpecialTokens({text: number for number, text in enumerate(texts)})
    whole = b"".join(data)
    found = specials.count(pa.array([b"<a>", whole, b"<a"], pa.large_binary())[1:])
    assert found == {text: whole.count(text.encode()) for text in texts}


def test_what_was_used_can_be_sent_to_another_process() -> None:
    assert SPECIALS.count(pa.array(["<a>"]))["<a>"] == 1
    again = pickle.loads(pickle.dumps(SPECIALS))
    assert again.count(pa.array(["<a><a>"]))["<a>"] == 2


def test_two_with_one_id_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"'<a>' and '<b>' both have id 5"):
        SpecialTokens({"<a>": 5, "<b>": 5})


def test_an_empty_one_is_refused() -> None:
    with pytest.raises(VocabularyError, match="a special token is empty"):
        SpecialTokens({"": 5})


def test_one_that_utf8_cannot_write_is_refused() -> None:
    with pytest.raises(VocabularyError, match="lone surrogate at index 1"):
        SpecialTokens({"<\ud800>": 5})


def test_one_that_is_no_str_is_refused() -> None:
    with pytest.raises(InputError, match=r"b'<a>' is of type bytes: write it as str"):
        SpecialTokens({b"<a>": 5})  # type: ignore[dict-item]


def test_a_token_that_spells_one_is_refused_by_name() -> None:
    with pytest.raises(VocabularyError, match=r"token 7 \(b'<a>'\) spells .*'<a>'.*rename"):
        SPECIALS.check_against({7: b"<a>"})


def test_a_token_whose_printable_spelling_is_one_is_refused() -> None:
    # In vocab.json the token b" the" is written Ġthe, as the special token would be.
    specials = SpecialTokens({"Ġthe": 9})
    assert b" the" in specials.forbidden_bytes
    with pytest.raises(VocabularyError, match=r"token 7 \(b' the'\) spells .*'Ġthe'"):
        specials.check_against({7: b" the"})


def test_an_id_in_use_is_refused() -> None:
    with pytest.raises(VocabularyError, match=r"'<a>' has id 300, which is token b'x'"):
        SPECIALS.check_against({300: b"x"})
