"""Vocabularies without ids for bytes that no valid UTF-8 holds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import InputError, Tokenizer, VocabularyError
from bpe.backends.protocol import Backend
from bpe.backends.values import EncodingModel
from bpe.encoding.missing_bytes import NEVER_IN_UTF8, MissingBytes
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.pretokenizing.schemes import get_scheme

WHOLE = Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2", special_tokens=["<s>"]).model


def without(values: bytes) -> TokenizerModel:
    tokens = {i: data for i, data in WHOLE.tokens.items() if len(data) > 1 or data not in values}
    return replace(WHOLE, tokens=tokens)


def test_the_bytes_are_those_that_python_decodes_nowhere() -> None:
    # Each stands first, second, third or fourth in no encoding of a character.
    starts = [b"", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xe4", b"\xf0\x9f", b"\xf0"]
    ends = [b"", b"\x80", b"\x80\x80", b"\x80\x80\x80", b"\x90\x80\x80", b"\xa0\x80"]

    def is_in_text(value: int) -> bool:
        for text in (start + bytes([value]) + end for start in starts for end in ends):
            try:
                text.decode()
            except UnicodeDecodeError:
                continue
            return True
        return False

    assert bytes(v for v in range(256) if not is_in_text(v)) == NEVER_IN_UTF8


@pytest.mark.usefixtures("backend")
def test_text_without_them_has_the_same_ids() -> None:
    tokenizer, whole = Tokenizer(without(NEVER_IN_UTF8)), Tokenizer(WHOLE)
    for text in ("", "ab é 的 😀 \x00", "<s>ab"):
        for policy in ("text", "allow"):
            ids = tokenizer.encode(text, special_text=policy)
            assert ids.tolist() == whole.encode(text, special_text=policy).tolist()
            assert tokenizer.decode(ids) == text.encode()
    data = b"ab\xe4\xb8 \x80"
    assert tokenizer.decode(tokenizer.encode(data)) == data


@pytest.mark.parametrize("value", NEVER_IN_UTF8)
@pytest.mark.usefixtures("backend")
def test_such_a_byte_is_refused_by_name_and_place(value: int) -> None:
    tokenizer = Tokenizer(without(bytes([value])))
    text = "<s>é ab".encode() + bytes([value]) + b"b"
    place = rf"holds 0x{value:02x} at byte 8, which no valid UTF-8 holds, and for which this vocab"
    for policy in ("text", "allow", "reject"):
        with pytest.raises(InputError, match=f"^text {place}"):
            tokenizer.encode(text.replace(b"<s>", b"<t>"), special_text=policy)
    with pytest.raises(InputError, match=f"^text {place}"):
        tokenizer.encode(text, special_text="allow")
    with pytest.raises(InputError, match=rf"^texts\[2\] {place}"):
        tokenizer.encode_batch(pa.array([b"a", b"<s>", text, text]), special_text="allow")
    sliced = pa.array([b"a", text, b"b", text], pa.large_binary())[2:]
    with pytest.raises(InputError, match=rf"^texts\[1\] {place}"):
        tokenizer.encode_batch(sliced)
    others = NEVER_IN_UTF8.replace(bytes([value]), b"")
    assert tokenizer.decode(tokenizer.encode(others)) == others


@pytest.mark.parametrize("scheme", ["gpt2", "none", "regex:a+"])
def test_encoders_refuse_it_too(scheme: str, backend: Backend) -> None:
    model = without(b"\xff").encoding_model
    encoder = backend.make_encoder(replace(model, scheme=get_scheme(scheme)))
    with pytest.raises(InputError, match="text holds 0xff at byte 1"):
        encoder.encode(b"a\xff")
    with pytest.raises(InputError, match=r"texts\[1\] holds 0xff at byte 0"):
        encoder.encode_array(pa.array([b"a", b"\xff"], pa.large_binary()), threads=2)
    tokens = {token_id: data for token_id, data in model.tokens.items() if data != b"z"}
    bad = EncodingModel(tokens, [], whole_piece=False, scheme=get_scheme(scheme))
    with pytest.raises(VocabularyError, match="byte b'z' has no id"):
        backend.make_encoder(bad)


@pytest.mark.usefixtures("backend")
def test_streams_refuse_it_at_its_place_in_the_document() -> None:
    tokenizer = Tokenizer(without(b"\xc0\xff"))
    encoder = tokenizer.stream_encoder(block_bytes=16)
    encoder.feed(b"ab cd " * 20)
    with pytest.raises(InputError, match="document holds 0xc0 at byte 123"):
        encoder.feed(b"abc\xc0")


@pytest.mark.usefixtures("backend")
def test_such_a_vocabulary_is_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = Tokenizer(without(NEVER_IN_UTF8))
    tokenizer.save(tmp_path / "model")
    assert Tokenizer.load(tmp_path / "model").digest == tokenizer.digest
    tokenizer.to_huggingface(tmp_path / "tokenizer.json")
    vocab = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    assert len(vocab.keys() - {"<s>"}) == 256 + 1 - 13
    again = Tokenizer.from_huggingface(tmp_path / "tokenizer.json")
    assert again.encode("é ab").tolist() == tokenizer.encode("é ab").tolist()


def test_other_bytes_may_not_be_missing() -> None:
    with pytest.raises(VocabularyError, match=r"lacks 14 of the 256 single bytes \(21 c0 c1 f5"):
        without(NEVER_IN_UTF8 + b"!")


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(0, 3))
def test_rows_are_found(texts: list[bytes], start: int) -> None:
    column = pa.array(texts, pa.large_binary())[start:]
    missing = MissingBytes(bytes(range(0xE0, 0x100)))
    found = {
        row: min(i for i, value in enumerate(text) if value >= 0xE0)
        for row, text in enumerate(texts[start:])
        if any(value >= 0xE0 for value in text)
    }
    assert dict(missing.find_rows(column)) == found
