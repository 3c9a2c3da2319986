"""Ids far apart: the same on both backends up to 2^31 - 1, and no memory for what is between."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bpe import ModelFileError, Tokenizer, VocabularyError
from bpe.backends.protocol import Backend
from bpe.encoding import tokenizer_model
from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.dense_ids import SparseEncoder, are_dense
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.encoding.vocabulary_checks import MAX_ID
from pipelines.corpus.token_lengths import token_lengths

MERGES = [(b"a", b"b"), (b" ", b"ab"), (b"ab", b" ab")]
TEXTS = [b"ab ab", b"", b"\xffab1 ab ab", b"abab ab" * 50]


def spread(model: TokenizerModel, factor: int, first: int = 0) -> TokenizerModel:
    """The same vocabulary with other ids."""

    def new(token_id: int) -> int:
        return first + token_id * factor

    return replace(
        model,
        tokens={new(token_id): data for token_id, data in model.tokens.items()},
        merges=[(new(left), new(right), new(made)) for left, right, made in model.merges],
        added_tokens=[replace(token, id=new(token.id)) for token in model.added_tokens],
    )


@pytest.fixture
def bounded_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 256 << 20


@pytest.mark.usefixtures("backend", "bounded_memory")
@pytest.mark.parametrize("scheme", ["gpt2", "none", r"regex:\w+| "])
@pytest.mark.parametrize(
    ("factor", "first"),
    [(1, 0), (3, 5), (1, 2**24 - 100), (1, 2**24), (60_000, 0), (1, MAX_ID - 259), (8_000_000, 7)],
)
def test_ids_may_be_anything_up_to_the_largest(scheme: str, factor: int, first: int) -> None:
    plain = Tokenizer.from_merges(MERGES, pretokenizer=scheme, special_tokens=["<e>"])
    tokenizer = Tokenizer(spread(plain.model, factor, first))
    assert tokenizer.max_id == first + factor * 259
    for text in TEXTS:
        wanted = (plain.encode(text).astype(np.int64) * factor + first).tolist()
        ids = tokenizer.encode(text)
        assert (ids.dtype, ids.tolist()) == (np.uint32, wanted)
        assert tokenizer.decode(ids) == text
    wanted = (plain.encode(b"ab<e> ab", special_text="allow") * np.int64(factor) + first).tolist()
    assert tokenizer.encode(b"ab<e> ab", special_text="allow").tolist() == wanted
    assert wanted[1] == tokenizer.max_id
    found = tokenizer.encode_batch(pa.array(TEXTS), threads=2)
    assert found.type == pa.large_list(tokenizer.id_type)
    assert found.to_pylist() == [tokenizer.encode(text).tolist() for text in TEXTS]
    assert tokenizer.decode_batch(found).to_pylist() == TEXTS
    if tokenizer.streams:
        stream = tokenizer.stream_encoder(block_bytes=16)
        parts = [stream.feed(TEXTS[3][:100]), stream.feed(TEXTS[3][100:]), stream.finish()]
        assert np.concatenate(parts).tolist() == tokenizer.encode(TEXTS[3]).tolist()


@pytest.mark.usefixtures("bounded_memory")
@pytest.mark.parametrize(("factor", "first"), [(1, 0), (5000, 3), (1, MAX_ID - 259)])
def test_lengths_of_ids_need_no_place_for_each_id(factor: int, first: int) -> None:
    model = Tokenizer.from_merges(MERGES, pretokenizer="gpt2", special_tokens=["<e>"]).model
    tokenizer = Tokenizer(spread(model, factor, first))
    lengths = token_lengths(tokenizer)
    ids = np.array([0, 255, 256, 257, 258, 259], np.uint32) * np.uint32(factor) + np.uint32(first)
    assert lengths[ids].tolist() == [1, 1, 2, 3, 5, 3]
    assert lengths[int(ids[5])] == 3
    unknown = np.array([ids[5] + 1, 2**32 - 1, first + 260 * factor], np.uint32)
    assert lengths[unknown].tolist() == [-1, -1, -1]
    if factor > 1:
        assert lengths[ids + np.uint32(1)].tolist() == [-1] * 6
    assert lengths[ids[:0]].tolist() == []


def test_ordinary_vocabularies_take_no_extra_step(backend: Backend) -> None:
    tokenizer = Tokenizer.from_merges(MERGES, pretokenizer="gpt2")
    gaps = spread(tokenizer.model, 2, 300).encoding_model
    assert are_dense(gaps.tokens)
    assert not isinstance(backend.make_encoder(gaps), SparseEncoder)


def test_larger_ids_are_refused() -> None:
    model = Tokenizer.from_merges(MERGES, pretokenizer="gpt2").model
    with pytest.raises(VocabularyError, match=r"id 2147483648 is out of range: .* to 2147483647"):
        spread(model, 1, MAX_ID - 257)
    with pytest.raises(VocabularyError, match=r"id 2147483648 is out of range"):
        replace(model, added_tokens=[AddedToken("<e>", 2**31)])


def test_the_number_of_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_model, "MOST_TOKENS", 259)
    Tokenizer.from_merges(MERGES, pretokenizer="gpt2")
    with pytest.raises(VocabularyError, match="has 260 tokens, and at most 259 are supported"):
        Tokenizer.from_merges(MERGES, pretokenizer="gpt2", special_tokens=["<e>"])


def test_files_with_larger_ids_are_refused_with_the_entry(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_merges(MERGES, pretokenizer="gpt2", special_tokens=["<e>"])
    path = tmp_path / "tokenizer.json"
    tokenizer.to_huggingface(path)
    document = json.loads(path.read_text())
    document["model"]["vocab"]["abĠab"] = 2**31
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: entry 'abĠab' has id 2147483648;"):
        Tokenizer.from_huggingface(path)
    document["model"]["vocab"]["abĠab"] = 258
    document["added_tokens"][0]["id"] = 2**32 - 1
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: .*4294967295"):
        Tokenizer.from_huggingface(path)
    ranks = tmp_path / "x.tiktoken"
    Tokenizer.from_merges(MERGES, pretokenizer="gpt2", tie_order="id").to_tiktoken(ranks)
    ranks.write_text(ranks.read_text() + "eHl6 2147483648\n")
    with pytest.raises(ModelFileError, match=r"x\.tiktoken: id 2147483648 is out of range"):
        Tokenizer.from_tiktoken(ranks, pretokenizer="gpt2")
