"""Look-ups, equality, lists in place of arrays, counts and offsets, on both backends."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bpe
from bpe import InputError, Tokenizer
from bpe.encoding import document_encoder
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.tokenizer_model import TokenizerModel
from tests.bpe.small_tokenizer import FIRST_SPECIAL, MERGES, make, make_nfc

with_backend = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PARTS = [
    "a",
    "aa",
    " ab",
    "é",
    "e\u0301",
    "12",
    "\r\n",
    "<|end|>",
    "<|end|>!",
    "😀",
    "ก็",
    " ",
    "\0",
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
BYTES = st.lists(
    st.sampled_from([*(part.encode() for part in PARTS), b"\xff", b"\xe2\x82"]), max_size=9
)


# ---- look-ups ------------------------------------------------------------------------------


def test_tokens_by_bytes_text_and_id() -> None:
    tokenizer = make()
    assert len(tokenizer) == tokenizer.vocab_size == 259 + len(MERGES)
    assert tokenizer.token_to_id(" ab") == tokenizer.token_to_id(b" ab") == 257
    assert tokenizer.token_to_id("<|end|>") == FIRST_SPECIAL
    assert tokenizer.token_to_id(b"\xff") == 187
    assert tokenizer.token_to_id("12345") is None
    assert tokenizer.id_to_token(257) == b" ab"
    assert tokenizer.id_to_token(10**6) is None
    vocab = tokenizer.get_vocab()
    assert len(vocab) == len(tokenizer)
    assert all(tokenizer.id_to_token(token_id) == data for data, token_id in vocab.items())
    vocab.clear()
    assert tokenizer.get_vocab()
    with pytest.raises(InputError, match="lone surrogate"):
        tokenizer.token_to_id("\ud800")


def test_equality_is_by_digest() -> None:
    first, second = make(), make()
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second, make("cl100k")}) == 2
    assert first != make("cl100k")
    assert first != first.digest


# ---- lists -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_lists_are_taken_where_arrays_are() -> None:
    tokenizer = make()
    texts = ["ab ab", b"\xff", "", "\ud83d\ude00", bytearray(b"aa")]
    array = pa.array([b"ab ab", b"\xff", b"", "😀".encode(), b"aa"], pa.large_binary())
    expected = tokenizer.encode_batch(array)
    assert tokenizer.encode_batch(texts) == expected
    assert tokenizer.encode_batch(tuple(texts)) == expected
    assert tokenizer.encode_batch(text for text in texts) == expected
    assert tokenizer.decode_batch(expected.to_pylist()) == array
    assert tokenizer.decode_batch(
        [np.array([256], np.uint16), [], pa.array([255])]
    ).to_pylist() == [
        b"ab",
        b"",
        tokenizer.decode([255]),
    ]
    assert tokenizer.decode_batch([]).to_pylist() == []
    assert bpe.count_pretokens(["a b", b"a"], "gpt2") == bpe.count_pretokens(
        pa.array(["a b", "a"]), "gpt2"
    )
    found = tokenizer.count_special_text(["<|end|>", b"<|end|>!"])
    assert found["<|end|>"] == found["<|end|>!"] == 1
    assert tokenizer.first_special(["", "x<|end|>"]) == (1, 1, "<|end|>")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one", r"texts is one text: pass a list of texts"),
        (b"one", r"texts is one text"),
        ([b"a", 7], r"texts\[1\] is of type int: pass str or bytes"),
        (["a", None], r"texts\[1\] is of type NoneType"),
        (["\udc00"], r"texts\[0\] holds a lone surrogate"),
        ({"a": 1}, r"texts is a dict: pass an Arrow array, or a list"),
        (3, r"texts is a int"),
    ],
)
def test_lists_that_are_refused(texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().encode_batch(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[1], [2, "x"]], r"ids\[1\]\[1\] is 'x'"),
        ([1, 2], r"ids\[0\] is a int"),
        ("12", r"ids is a str"),
        ([np.array([2**63], np.uint64)], r"ids\[0\] holds 9223372036854775808"),
        ([[1], [10**6]], r"ids\[1\]\[0\] is 1000000"),
    ],
)
def test_id_lists_that_are_refused(ids: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().decode_batch(ids)  # type: ignore[arg-type]


# ---- flat ids and counts ---------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@with_backend
@given(texts=st.lists(BYTES.map(b"".join), max_size=5), policy=st.sampled_from(["text", "allow"]))
def test_flat_ids_and_counts_equal_the_lists(texts: list[bytes], policy: str) -> None:
    tokenizer = make()
    rows = [tokenizer.encode(text, special_text=policy).tolist() for text in texts]
    ids, offsets = tokenizer.encode_flat(texts, special_text=policy)
    assert (ids.dtype, offsets.dtype) == (np.dtype("uint16"), np.dtype("int64"))
    assert len(offsets) == len(texts) + 1
    assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == rows
    counts = tokenizer.count_tokens(texts, special_text=policy)
    assert counts.dtype == np.int64
    assert counts.tolist() == list(map(len, rows))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("block", [1, 5, 10**6])
@pytest.mark.parametrize("threads", [1, 2])
def test_counting_in_blocks(block: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_encoder, "_COUNTED_BYTES", block)
    texts = ["ab ab", "", "e\u0301a", "", "12" * 9, "aaaa", ""]
    for tokenizer in (make(), make_nfc()):
        expected = [len(tokenizer.encode(text)) for text in texts]
        array = pa.chunked_array([["skipped", *texts[:3]], texts[3:]])[1:]
        assert tokenizer.count_tokens(array, threads=threads).tolist() == expected
    with pytest.raises(
        InputError, match=r"texts\[3\] holds the special token '<\|end\|>' at byte 1"
    ):
        make().count_tokens(["ab", "ab", "ab", "a<|end|>"], special_text="reject")


# ---- offsets ---------------------------------------------------------------------------------


def check_offsets(tokenizer: Tokenizer, text: str | bytes, policy: str) -> None:
    data = text.encode() if isinstance(text, str) else text
    characters = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    encoded = tokenizer.encode_with_offsets(text, special_text=policy)
    assert encoded.ids.tolist() == tokenizer.encode(text, special_text=policy).tolist()
    assert encoded.byte_offsets.shape == encoded.character_offsets.shape == (len(encoded), 2)
    assert encoded.byte_offsets.dtype == encoded.character_offsets.dtype == np.int64
    # The place of every byte's character, from the definition.
    places = [
        index
        for index, character in enumerate(characters)
        for _ in character.encode("utf-8", "surrogateescape")
    ]
    done = 0
    for token_id, (start, end), (first, last) in zip(
        encoded.ids.tolist(),
        encoded.byte_offsets.tolist(),
        encoded.character_offsets.tolist(),
        strict=True,
    ):
        assert start == done
        assert data[start:end] == tokenizer.token_bytes(token_id)
        assert (first, last) == (places[start], places[end - 1] + 1)
        done = end
    assert done == len(data)


@pytest.mark.usefixtures("backend")
@with_backend
@given(text=st.one_of(TEXTS, BYTES.map(b"".join)), policy=st.sampled_from(["text", "allow"]))
def test_offsets_are_those_of_the_tokens(text: str | bytes, policy: str) -> None:
    check_offsets(make(), text, policy)


@pytest.mark.usefixtures("backend")
@with_backend
@given(text=TEXTS)
def test_offsets_of_a_normalizing_tokenizer(text: str) -> None:
    tokenizer = make_nfc()
    normal = unicodedata.normalize("NFC", text)
    check_offsets(tokenizer, normal, "allow")
    if text != normal:
        with pytest.raises(InputError, match="pass its normal form"):
            tokenizer.encode_with_offsets(text)


@pytest.mark.usefixtures("backend")
def test_offsets_of_an_added_token_that_takes_white_space() -> None:
    mask = AddedToken("<mask>", 300, lstrip=True, rstrip=True)
    tokenizer = Tokenizer(replace(make().model, added_tokens=[mask]))
    encoded = tokenizer.encode_with_offsets("é  <mask> ab", special_text="allow")
    assert encoded.ids.tolist() == [259, 300, 256]
    assert encoded.byte_offsets.tolist() == [[0, 2], [2, 11], [11, 13]]
    assert encoded.character_offsets.tolist() == [[0, 1], [1, 10], [10, 12]]


@pytest.mark.usefixtures("backend")
def test_offsets_of_an_added_token_found_in_its_normal_form() -> None:
    token = AddedToken("e\u0301", 300, special=False, normalized=True)
    tokenizer = Tokenizer(replace(make().model, normalizer="NFC", added_tokens=[token]))
    encoded = tokenizer.encode_with_offsets("aéb")
    assert encoded.ids.tolist()[1] == 300
    assert encoded.byte_offsets.tolist() == [[0, 1], [1, 3], [3, 4]]


def test_a_surrogate_pair_keeps_its_two_places() -> None:
    encoded = make().encode_with_offsets("a\ud83d\ude00b")
    assert encoded.byte_offsets[[0, -1]].tolist() == [[0, 1], [5, 6]]
    assert encoded.character_offsets[[0, -1]].tolist() == [[0, 1], [3, 4]]


def test_offsets_are_those_of_tokenizers(
    published_models: dict[str, TokenizerModel], tmp_path: Path
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    ours = Tokenizer(published_models["gpt2"])
    ours.to_huggingface(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.post_processor = tokenizers.processors.ByteLevel(trim_offsets=False)
    texts = [
        "The king's café, naïve 你好 😀😀 ก็ดี\r\n\r\n  x",
        "  a\u0301\u0302 ",
        "\u2028“quoted”",
        "",
    ]
    texts += ["🇩🇪👩‍👩‍👧 été" * 3, "ﷺ¼ẞ\u00a0!"]
    for text in texts:
        encoded, known = ours.encode_with_offsets(text), theirs.encode(text)
        assert encoded.ids.tolist() == known.ids
        assert list(map(tuple, encoded.character_offsets.tolist())) == known.offsets
