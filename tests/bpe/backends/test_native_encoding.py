"""The encoder's border to Python: columns, threads, warm caches."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.backends.values import EncodingModel
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.schemes import SCHEME_NAMES, get_scheme
from bpe.reference.encoding import ReferenceEncoder

pytest.importorskip("bpe._native", reason="the native core is not built")
native_backend = pytest.importorskip("bpe.backends.native_backend")

PARTS = [b"a", b" the", b"\x00", b" ", b"\n", b"'s", b"12345", "诗歌".encode(), b"\xff", b"=" * 15]
PARTS += [b" sixteen-letters", b"t" * 40, b" president", "é́".encode(), b"I'LL", b"\r\n"]


def binary(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def make_encoder(model: EncodingModel) -> Any:
    return native_backend.NativeBackend().make_encoder(model)


def with_scheme(model: EncodingModel, name: str) -> EncodingModel:
    return EncodingModel(model.tokens, model.merges, model.whole_piece, get_scheme(name))


@pytest.fixture(scope="module")
def gpt2(published_models: dict[str, TokenizerModel]) -> EncodingModel:
    return published_models["gpt2"].encoding_model


@pytest.fixture(scope="module")
def text(data_dir: Any) -> bytes:
    found: bytes = (data_dir / "tiny_shakespeare.txt").read_bytes()
    return found


@pytest.fixture(scope="module")
def encoder_pairs(gpt2: EncodingModel) -> dict[str, tuple[Any, ReferenceEncoder]]:
    pairs = {}
    for name in (*SCHEME_NAMES, r"regex:\w+|(?<=a)."):
        model = with_scheme(gpt2, name)
        pairs[name] = (make_encoder(model), ReferenceEncoder(model))
    return pairs


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_ids_equal_the_specification(
    encoder_pairs: dict[str, tuple[Any, ReferenceEncoder]], data: st.DataObject
) -> None:
    ours, specification = encoder_pairs[data.draw(st.sampled_from(list(encoder_pairs)))]
    rows = data.draw(st.lists(st.lists(st.sampled_from(PARTS), max_size=20).map(b"".join)))
    padded = binary([b"before", *rows, b"after"])
    texts = padded[1:-1]
    expected = specification.encode_array(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_backend, "_SPLIT_BYTES", 9)
        for threads in (1, 2, 3):
            found = ours.encode_array(texts, threads=threads)
            found.validate(full=True)
            assert found.equals(expected)
    for row in rows:
        ids = ours.encode(row)
        assert ids.dtype == np.uint32
        assert ids.tolist() == specification.encode(row).tolist()


def test_values_are_wide_where_an_id_is(gpt2: EncodingModel) -> None:
    assert make_encoder(gpt2).encode_array(binary([b"a"])).type == pa.large_list(pa.uint16())
    narrow = EncodingModel(gpt2.tokens | {65535: b"zzzzzz"}, gpt2.merges, True, gpt2.scheme)
    found = make_encoder(narrow).encode_array(binary([b"zzzzzz"]))
    assert found.type == pa.large_list(pa.uint16())
    assert found.to_pylist() == [[65535]]
    wide = EncodingModel(gpt2.tokens | {65536: b"zzzzzz"}, gpt2.merges, True, gpt2.scheme)
    found = make_encoder(wide).encode_array(binary([b"zzzzzz", b"a"]))
    assert found.type == pa.large_list(pa.uint32())
    assert found.to_pylist() == [[65536], [64]]


def test_threads_share_the_work_in_any_order(gpt2: EncodingModel, text: bytes) -> None:
    encoder = make_encoder(gpt2)
    rows = binary(text.splitlines(keepends=True) * 4)
    expected = encoder.encode_array(rows)
    whole = encoder.encode_array(binary([b"", text * 9, b"", text]))
    for threads in (2, 5):
        assert encoder.encode_array(rows, threads=threads).equals(expected)
        again = encoder.encode_array(binary([b"", text * 9, b"", text]), threads=threads)
        again.validate(full=True)
        assert again.equals(whole)


def test_one_encoder_serves_many_python_threads(gpt2: EncodingModel, text: bytes) -> None:
    encoder = make_encoder(gpt2)
    rows = text.splitlines(keepends=True)
    expected = encoder.encode_array(binary(rows)).to_pylist()
    failures: list[int] = []

    def work(seed: int) -> None:
        order = random.Random(seed).sample(range(len(rows)), 2000)
        found = encoder.encode_array(binary([rows[i] for i in order]), threads=1 + seed % 2)
        if found.to_pylist() != [expected[i] for i in order]:
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_ids_outlive_their_encoder(gpt2: EncodingModel, text: bytes) -> None:
    encoder = make_encoder(gpt2)
    kept = encoder.encode_array(binary([text]))
    copy = kept.to_pylist()
    del encoder
    # Released id buffers are used again: a buffer that is still held must not be among them.
    for _ in range(3):
        make_encoder(gpt2).encode_array(binary([text[::-1]]))
    assert kept.to_pylist() == copy


def test_arguments_are_checked(gpt2: EncodingModel) -> None:
    encoder = make_encoder(gpt2)
    with pytest.raises(SettingsError, match="threads"):
        encoder.encode_array(binary([b"a"]), threads=0)
    with pytest.raises(InputError, match="element 0 is null"):
        encoder.encode_array(pa.array([None], pa.large_binary()))
    codec = encoder._encoder
    texts = binary([b"ab"])
    for ends, firsts, message in (
        ([1], [0, 1], "do not end where it does"),
        ([2, 1], [0, 2], "ascend"),
        ([2], [0, 2], "first_pretokens"),
        ([2], [0], "first_pretokens"),
    ):
        columns = (pa.array(ends, pa.int64()), pa.array(firsts, pa.int64()))
        with pytest.raises(InputError, match=message):
            codec.encode_split_documents(texts, *columns)
