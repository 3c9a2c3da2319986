"""The tokenizer: encoding, decoding, batches, special tokens, truncation, pickling."""

from __future__ import annotations

import threading
import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bpe
from bpe import InputError, SettingsError, Tokenizer
from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.printable_bytes import PRINTABLE_ORDER, from_printable, to_printable
from tests.bpe.small_tokenizer import FIRST_SPECIAL, MERGES, SPECIAL_TOKENS, make, make_nfc

# ---- ids -----------------------------------------------------------------------------------


def test_all_holds_exactly_the_public_names() -> None:
    names = {*bpe.__all__}
    # A fresh module knows its names only once they were asked for, and other tests ask for some.
    assert names == {*bpe._HOMES, "load_tokenizer"}
    assert len(bpe.__all__) == len(names)
    for name in names:
        assert getattr(bpe, name) is not None
    assert bpe.__version__


def test_base_ids_of_hf_are_gpt2s_printable_order() -> None:
    tokenizer = make()
    assert tokenizer.token_bytes(0) == b"!"
    assert tokenizer.token_bytes(220) == b" "
    assert [tokenizer.token_bytes(i) for i in range(256)] == [bytes([b]) for b in PRINTABLE_ORDER]
    order = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    assert list(PRINTABLE_ORDER) == [*order, *range(0x21), *range(0x7F, 0xA1), 0xAD]


@pytest.mark.parametrize("tie_order", ["id", "bytes", "first"])
def test_base_ids_of_other_orders_are_byte_values(tie_order: str) -> None:
    tokenizer = make(tie_order=tie_order)
    assert [tokenizer.token_bytes(i) for i in range(256)] == [bytes([b]) for b in range(256)]
    assert tokenizer.tie_order == tie_order


def test_merges_follow_the_bytes_and_special_tokens_come_last() -> None:
    tokenizer = make()
    assert tokenizer.vocab_size == 256 + len(MERGES) + 3
    assert tokenizer.max_id == tokenizer.vocab_size - 1
    assert tokenizer.merges == MERGES
    assert tokenizer.token_bytes(257) == b" ab"
    assert tokenizer.special_tokens == {
        text: FIRST_SPECIAL + index for index, text in enumerate(SPECIAL_TOKENS)
    }
    assert tokenizer.token_bytes(FIRST_SPECIAL) == b"<|end|>"
    assert tokenizer.training == {"inputs": ["x"]}
    assert tokenizer.scheme.name == "gpt2"
    assert tokenizer.normalizer is None
    assert not tokenizer.lossy


@given(st.binary(max_size=40))
def test_printable_spelling_is_one_to_one_and_holds_no_space(data: bytes) -> None:
    spelled = to_printable(data)
    assert len(spelled) == len(data)
    assert from_printable(spelled) == data
    assert not any(character.isspace() for character in spelled)
    assert from_printable(spelled + " ") is None


# ---- encode and decode ---------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_encode_gives_uint32() -> None:
    ids = make().encode(" ab ab")
    assert ids.dtype == np.uint32
    assert ids.tolist() == [257, 257]
    assert make().encode(b" ab ab").tolist() == [257, 257]
    assert make().encode("").tolist() == []


SAMPLES = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=30).map(str.encode),
    st.lists(
        st.sampled_from([b"a", b"b", b" ", b"\xc3", b"\xa9", b"12", b"\r\n", b"<|end|>", b"'s"]),
        max_size=20,
    ).map(b"".join),
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "scheme", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "none", r"regex:\d|a+"]
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=SAMPLES)
@pytest.mark.usefixtures("backend")
def test_any_bytes_come_back(scheme: str, data: bytes) -> None:
    tokenizer = make(scheme)
    for special_text in ("text", "allow"):
        ids = tokenizer.encode(data, special_text=special_text)
        assert tokenizer.decode(ids) == data
        batch = tokenizer.encode_batch(
            pa.array([data, b"", data], pa.binary()), special_text=special_text
        )
        assert batch.to_pylist() == [ids.tolist(), [], ids.tolist()]


def test_a_lone_surrogate_is_refused_with_its_index() -> None:
    with pytest.raises(InputError, match=r"lone surrogate, '\\udcff', at index 2.*pass bytes"):
        make().encode("ab\udcff")


def test_text_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="text is of type int: pass str or bytes"):
        make().encode(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ids",
    [
        [256, 64],
        (256, 64),
        np.array([256, 64], np.uint16),
        np.array([256, 64], np.uint64),
        pa.array([256, 64], pa.uint16()),
        pa.chunked_array([pa.array([256]), pa.array([64])]),
        pa.array([[256, 64]], pa.large_list(pa.uint32()))[0],
    ],
    ids=lambda ids: type(ids).__name__,
)
@pytest.mark.usefixtures("backend")
def test_decode_takes_integers_of_any_kind(ids: object) -> None:
    assert make().decode(ids) == b"aba"  # type: ignore[arg-type]


@pytest.mark.usefixtures("backend")
def test_decode_takes_an_iterator() -> None:
    assert make().decode(iter([256, 64])) == b"aba"  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [[], np.zeros(0), pa.array([], pa.uint16())], ids=str)
@pytest.mark.usefixtures("backend")
def test_no_ids_decode_to_nothing(ids: object) -> None:
    assert make().decode(ids) == b""  # type: ignore[arg-type]


@pytest.mark.usefixtures("backend")
def test_special_tokens_decode_to_their_text() -> None:
    ids = [FIRST_SPECIAL, 256, FIRST_SPECIAL + 1, FIRST_SPECIAL + 1, 64]
    assert make().decode(ids) == b"<|end|>ab<|end|>!<|end|>!a"


def test_decode_text_replaces_what_is_not_utf8() -> None:
    tokenizer = make()
    ids = tokenizer.encode(b"a\xff\xc3\xa9")
    assert tokenizer.decode_text(ids) == "a\ufffdé"
    with pytest.raises(UnicodeDecodeError):
        tokenizer.decode_text(ids, errors="strict")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2, 9999], r"ids\[2\] is 9999, which is no id of this vocabulary \(267 ids, .* 266\)"),
        ([-1], r"ids\[0\] is -1, which is no id"),
        ([2**40], r"ids\[0\] is 1099511627776, which is no id"),
        ([1, 2**70], r"ids\[1\] is 1180591620717411303424, which is no id"),
        ([1, 2.5], r"ids\[1\] is 2\.5 \(float\): pass integers"),
        ([True], r"ids\[0\] is True \(bool\): pass integers"),
        ([1, None], r"ids\[1\] is None \(NoneType\): pass integers"),
        ([[1], [2]], r"ids has 2 dimensions \(shape \(2, 1\)\): pass one row at a time"),
        ([[1], [2, 3]], r"ids is a list: pass a sequence or 1-d array"),
        (5, r"ids is a int: pass a sequence"),
        (np.array(5), r"ids has 0 dimensions"),
        ("12", r"ids\[0\] is '1' \(str\): pass integers"),
        (pa.array([1, None]), r"ids\[1\] is null"),
        (np.array([2**64 - 1], np.uint64), r"ids\[0\] is 18446744073709551615, which is no id"),
    ],
)
def test_decode_names_position_and_value(ids: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().decode(ids)  # type: ignore[arg-type]


def test_token_bytes_names_an_unknown_id() -> None:
    with pytest.raises(InputError, match=r"id 9999 is no id of this vocabulary \(267 ids"):
        make().token_bytes(9999)


def test_an_id_in_a_gap_is_unknown() -> None:
    model = replace(make().model, added_tokens=special_added_tokens({"<x>": 300}))
    with pytest.raises(InputError, match=r"ids\[0\] is 280, which is no id"):
        Tokenizer(model).decode([280])
    assert Tokenizer(model).decode([300]) == b"<x>"


# ---- special text --------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_special_text_is_ordinary_by_default() -> None:
    ids = make().encode("a<|end|>b")
    assert max(ids) < FIRST_SPECIAL
    assert ids.tolist() == make().encode("a<|end|>b", special_text="text").tolist()


@pytest.mark.usefixtures("backend")
def test_allow_gives_the_longest_special_token() -> None:
    ids = make().encode("a<|end|>!<|end|>b", special_text="allow")
    assert ids.tolist() == [64, FIRST_SPECIAL + 1, FIRST_SPECIAL, 65]


@pytest.mark.usefixtures("backend")
def test_allow_makes_each_segment_a_document_of_its_own() -> None:
    # White space before the end of a document stays together; before a letter it does not.
    tokenizer = Tokenizer.from_merges(
        [(b" ", b" ")], pretokenizer="gpt2", special_tokens=["<|end|>"]
    )
    assert tokenizer.encode("x  x").tolist() == [87, 220, 220, 87]
    assert tokenizer.encode("x  <|end|>x", special_text="allow").tolist() == [87, 256, 257, 87]


def test_reject_names_token_and_byte() -> None:
    with pytest.raises(InputError, match=r"text holds .*'<\|end\|>!' at byte 3.*special_text="):
        make().encode("éx<|end|>!", special_text="reject")
    assert make().encode("ab<|end|", special_text="reject")[0] == 256


def test_reject_names_the_row_of_a_batch() -> None:
    with pytest.raises(InputError, match=r"texts\[2\] holds .*'<pad>' at byte 1"):
        make().encode_batch(pa.array(["a", "", "b<pad>", "<pad>"]), special_text="reject")


@pytest.mark.parametrize("call", ["encode", "encode_batch"])
def test_an_unknown_policy_is_refused(call: str) -> None:
    text = "a" if call == "encode" else pa.array(["a"])
    with pytest.raises(SettingsError, match="special_text is 'maybe': use one of text, allow, rej"):
        getattr(make(), call)(text, special_text="maybe")


# ---- batches -------------------------------------------------------------------------------

TEXTS = [" ab ab", "", "é\r\n", "aaaa<|end|>x", "12"]


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.string(),
        pa.binary(),
        pa.large_string(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
    ],
    ids=str,
)
@pytest.mark.usefixtures("backend")
def test_a_batch_gives_what_encode_gives(arrow_type: pa.DataType) -> None:
    tokenizer = make()
    array = pa.array(TEXTS, pa.string()).cast(arrow_type)
    for special_text in ("text", "allow"):
        expected = [tokenizer.encode(text, special_text=special_text).tolist() for text in TEXTS]
        for texts, wanted in (
            (array, expected),
            (array[1:4], expected[1:4]),
            (array[:0], []),
            (pa.chunked_array([array[:2], array[2:2], array[3:]]), expected[:2] + expected[3:]),
            (pa.chunked_array([], arrow_type), []),
        ):
            encoded = tokenizer.encode_batch(texts, special_text=special_text)
            assert isinstance(encoded, pa.LargeListArray)
            assert encoded.type == pa.large_list(pa.uint16())
            assert encoded.null_count == 0
            assert encoded.to_pylist() == wanted


@pytest.mark.usefixtures("backend")
def test_threads_change_nothing() -> None:
    array = pa.array(TEXTS * 20)
    assert make().encode_batch(array, threads=2).equals(make().encode_batch(array))


@pytest.mark.usefixtures("backend")
def test_ids_are_uint32_where_a_special_tokens_id_is_large() -> None:
    tokenizer = Tokenizer(
        replace(make().model, added_tokens=special_added_tokens({"<|end|>": 65536}))
    )
    for special_text in ("text", "allow"):
        encoded = tokenizer.encode_batch(pa.array(["a<|end|>"]), special_text=special_text)
        assert encoded.type == pa.large_list(pa.uint32())
    assert encoded.to_pylist() == [[64, 65536]]
    assert tokenizer.id_type == pa.uint32()
    largest = Tokenizer(
        replace(make().model, added_tokens=special_added_tokens({"<|end|>": 65535}))
    )
    assert largest.id_type == pa.uint16()


def test_a_null_is_refused_with_its_row() -> None:
    with pytest.raises(InputError, match=r"texts\[1\] is null.*filter it out, or fill it"):
        make().encode_batch(pa.array(["a", None]))
    chunked = pa.chunked_array([pa.array(["a", "b"]), pa.array(["a", None])])
    with pytest.raises(InputError, match=r"texts\[3\] is null"):
        make().encode_batch(chunked)


def test_other_types_are_refused() -> None:
    with pytest.raises(InputError, match="texts is an array of int64: pass one of strings"):
        make().encode_batch(pa.array([1]))


# ---- normalization -------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_nfc_is_lossy_and_normalizes_valid_stretches() -> None:
    tokenizer = make_nfc()
    decomposed = "e\u0301"
    assert tokenizer.lossy
    assert tokenizer.normalizer == "NFC"
    assert tokenizer.encode(decomposed).tolist() == make().encode("é").tolist()
    data = decomposed.encode() + b"\xff" + decomposed.encode() + b"\xcc"
    expected = "é".encode() + b"\xff" + "é".encode() + b"\xcc"
    assert tokenizer.decode(tokenizer.encode(data)) == expected
    batch = tokenizer.encode_batch(pa.array([data, b"a"], pa.binary()))
    assert batch.to_pylist() == [tokenizer.encode(data).tolist(), [64]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet="e\u0301a\u0323é\u212b", max_size=12))
@pytest.mark.usefixtures("backend")
def test_nfc_decodes_to_the_normal_form(text: str) -> None:
    tokenizer = make_nfc()
    assert tokenizer.decode_text(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


@pytest.mark.usefixtures("backend")
def test_nfc_is_of_unicode_16_under_every_python() -> None:
    # U+0897 is a mark since Unicode 16, which Python has from 3.14 on.
    tokenizer, text, normal = make_nfc(), "a\u0897\u0323", "\u1ea1\u0897"
    assert tokenizer.decode_text(tokenizer.encode(text)) == normal
    batch = tokenizer.encode_batch(pa.array(["plain", text]))
    assert tokenizer.decode_batch(batch).to_pylist() == [b"plain", normal.encode()]


def test_nfc_counts_in_the_digest() -> None:
    assert make_nfc().digest != make().digest


# ---- threads and examples ------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_threads_share_one_tokenizer() -> None:
    tokenizer = make()
    results: list[list[int]] = []
    text = " ab aaaa é12 " * 20

    def work() -> None:
        for _ in range(20):
            results.append(tokenizer.encode(text).tolist())  # noqa: PERF401

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 80
    assert all(result == results[0] for result in results)
    assert tokenizer.decode(results[0]) == text.encode()
