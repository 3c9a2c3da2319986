"""The native encoder takes added tokens and what stands between them together, in batches."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from bpe.backends.choice import get_backend
from bpe.encoding.added_tokens import AddedToken, Find
from bpe.pretokenizing.schemes import get_scheme
from bpe.reference.encoding import ReferenceEncoder
from tests.bpe.encoding.test_added_tokens import PARTS, PLAIN, make


@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k", "whitespace", "superbpe", "none"])
@pytest.mark.parametrize("find", [Find.ADDED, Find.ADDED | Find.SPECIALS])
def test_many_short_segments_are_encoded_as_the_specification_says(scheme: str, find: Find) -> None:
    rng = random.Random(scheme)
    tokens = [AddedToken(" " * count, 300 + count, special=False) for count in range(2, 9)]
    tokens += [AddedToken("<s>", 320), AddedToken("ab", 256, special=False, normalized=True)]
    tokens += [AddedToken("||", 321, special=False, lstrip=True, rstrip=True)]
    tokens += [AddedToken("<w>", 322, special=False, single_word=True), AddedToken("-" * 40, 323)]
    model = replace(make(tokens).model, scheme=get_scheme(scheme)).encoding_model
    rare = [b"\0", b"\xff", b"word" * 20, b"x" * 5000, b"1" * 300, b"-" * 41]
    usual = [
        *map(str.encode, PARTS),
        b"||",
        b"<w>",
        b"   ",
        b"return",
        b" if",
        b"\n    ",
        b"<s>",
        b"self.",
    ]
    native, reference = get_backend("native").make_encoder(model), ReferenceEncoder(model)
    for size in (40, 400, 4000):
        parts = [rng.choice(rare if rng.random() < 0.01 else usual) for _ in range(size)]
        document = pa.array([b"".join(parts), b"  ", b"".join(parts[:9])], pa.large_binary())
        expected = reference.encode_array(document, find=find)
        for _ in range(2):  # with an empty cache, and a full one
            assert native.encode_array(document, find=find).equals(expected)


def edge_texts() -> list[bytes]:
    """Added tokens at every place of a block of 64 bytes, at the end, and around full batches."""
    hits = [b"  ", b"<s>", b"-" * 40, b" <w> \n "]
    texts = [
        b"y" * shift + hit + b"a b1 " * 12 + hit + tail
        for shift in range(64)
        for hit in hits
        for tail in (b"", b"a")
    ]
    texts += [hit * 600 + b" a" + hit for hit in hits]
    texts += [(b"self.a = 1" + hit) * 90 for hit in hits]
    # A batch has 512 pre-tokens, and takes no more segments when there is room for less than 128.
    texts += [b" a" * count + b"  " + b" b<s>" * 70 for count in (*range(382, 388), 511, 512, 513)]
    return texts


@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k", "whitespace"])
def test_added_tokens_at_edges_are_encoded_as_the_specification_says(scheme: str) -> None:
    tokens = [AddedToken("  ", 300, special=False), AddedToken("<s>", 301)]
    tokens += [AddedToken("-" * 40, 302), AddedToken("<w>", 70_000, lstrip=True, rstrip=True)]
    texts, find = edge_texts(), Find.ADDED | Find.SPECIALS
    for added in (tokens, tokens[:3]):  # ids of 32 bits and of 16
        model = replace(make(added).model, scheme=get_scheme(scheme)).encoding_model
        native, reference = get_backend("native").make_encoder(model), ReferenceEncoder(model)
        # Behind the last of all texts nothing may be read: each way of ending is there once.
        for column in (texts, texts[:1], texts[1:2], texts[-1:]):
            documents = pa.array(column, pa.large_binary())
            expected = reference.encode_array(documents, find=find)
            assert native.encode_array(documents, find=find).equals(expected)


def test_more_added_tokens_than_have_a_short_way() -> None:
    count = (1 << 16) + 2
    tokens = [AddedToken(f"<{number}>", 300 + number) for number in range(count)]
    encoder = get_backend("native").make_encoder(make(tokens).model.encoding_model)
    numbers = [1, count - 1, 2, count - 2, count - 3] * 20
    text = b"".join(b"<%d> a" % number for number in numbers)
    found = encoder.encode_array(pa.array([text, b"a" * 99]), find=Find.ADDED | Find.SPECIALS)
    space_a = PLAIN.encode(" a").tolist()
    assert found.to_pylist()[0] == [i for n in numbers for i in (300 + n, *space_a)]
