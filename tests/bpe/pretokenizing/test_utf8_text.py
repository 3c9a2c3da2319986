"""Text handed over as `str`: surrogate pairs are characters, halves of them are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.counting import count_pretokens
from bpe.errors import InputError
from bpe.pretokenizing.utf8_text import utf8_bytes
from bpe.tokenizer import Tokenizer
from bpe.training import train_raw

PAIR = "\ud83d\ude00"
EMOJI = "😀"


@given(st.text(st.characters()))
def test_pairs_are_what_utf16_makes_of_them(text: str) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    halves = "".join(
        chr(int.from_bytes(units[place : place + 2], "little")) for place in range(0, len(units), 2)
    )
    try:
        expected = units.decode("utf-16-le").encode()
    except UnicodeDecodeError:
        with pytest.raises(InputError, match="lone surrogate"):
            utf8_bytes(halves)
    else:
        assert utf8_bytes(halves) == expected


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("ab\ud83d", 2),
        ("\ude00", 0),
        (f"{PAIR}\ude00", 2),
        (f"\ud83d{PAIR}", 0),
        ("a\ude00\ud83d", 1),
    ],
)
def test_half_of_a_pair_is_refused_with_its_index(text: str, index: int) -> None:
    with pytest.raises(InputError, match=rf"text holds a lone surrogate, .* at index {index}, "):
        utf8_bytes(text)


@pytest.mark.usefixtures("backend")
def test_a_pair_is_one_character_wherever_text_is_taken() -> None:
    tokenizer = Tokenizer.from_merges(
        [(b"\xf0", b"\x9f"), (b"\xf0\x9f", b"\x98")], pretokenizer="gpt2"
    )
    ids = tokenizer.encode(f"a {PAIR}")
    assert ids.tolist() == tokenizer.encode(f"a {EMOJI}").tolist()
    assert tokenizer.decode(ids) == f"a {EMOJI}".encode()
    assert count_pretokens(PAIR, "gpt2").equals(count_pretokens(EMOJI, "gpt2"))
    pairs, whole = (train_raw([text * 2], 257).merges for text in (PAIR, EMOJI))
    assert pairs == whole
    tokenizer = Tokenizer.from_merges(
        [*tokenizer.merges, (b"\xf0\x9f\x98", b"\x80")], pretokenizer="gpt2"
    )
    assert tokenizer.token_id(PAIR) == 258


@pytest.mark.usefixtures("backend")
def test_arrays_of_fixed_size_binaries_are_texts() -> None:
    tokenizer = Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2")
    texts = pa.array([b"abc", b"\xff\0a"], pa.binary(3))
    assert tokenizer.encode_batch(texts).to_pylist() == [
        tokenizer.encode(text).tolist() for text in texts.to_pylist()
    ]
