"""Documents in chunks: whatever the chunks, the ids are those of the whole document."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe import InputError, SettingsError, Tokenizer
from bpe.encoding.stream_encoder import StreamLimitError, are_in_merge_order
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.pretokenizing.schemes import get_scheme

CUT_SCHEMES = ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace"]
SCHEMES = [*CUT_SCHEMES, "none", r"regex:\d|a+"]
UNITS = [b"a", b"b", b"ab", b"aa", b" ", b"'s", b"'re", b"1", b"\n", b"\r\n", b"=", b"\xc3\xa9"]
# Every class of characters that a scheme tells apart, whole and in halves, and some pairs.
SYMBOLS = [
    *(b"s", b"l", b"L", "\u017f".encode(), "\u4e2d".encode(), "\u0301".encode(), b"7"),
    *(b"\r", b"\n", b" ", b"\t", "\u2003".encode(), b"'", b"/", b"!", "\u0664".encode()),
    *(b"\xff", b"\xe4", b"\xad", b"'s", b"'re", b"!\n", b" L", "L\u4e2d".encode(), b" !", b"\n  "),
]


def random_merges(
    rng: random.Random, letters: bytes, longest: int = 9
) -> list[tuple[bytes, bytes]]:
    pool = [bytes([letter]) for letter in letters]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(rng.randrange(1, 30)):
        left, right = rng.choice(pool), rng.choice(pool)
        if left + right not in pool and len(left + right) <= longest:
            merges.append((left, right))
            pool.append(left + right)
    return merges


def stream(tokenizer: Tokenizer, chunks: Iterable[bytes], block_bytes: int = 1) -> list[int]:
    encoder = tokenizer.stream_encoder(block_bytes=block_bytes)
    parts = [encoder.feed(chunk) for chunk in chunks]
    parts.append(encoder.finish())
    assert all(part.dtype == np.uint32 for part in parts)
    return [token_id for part in parts for token_id in part.tolist()]


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    borders = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(borders)]


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(
    seed=st.integers(0, 10**6),
    pieces=st.lists(st.sampled_from(UNITS), max_size=80),
    places=st.lists(st.integers(0, 160), max_size=8),
    block_bytes=st.integers(1, 40),
)
@pytest.mark.usefixtures("backend")
def test_any_chunks(
    scheme: str, seed: int, pieces: list[bytes], places: list[int], block_bytes: int
) -> None:
    merges = random_merges(random.Random(seed), b"ab1=\n '")
    tokenizer = Tokenizer.from_merges(merges, pretokenizer=scheme)
    data = b"".join(pieces)
    expected = tokenizer.encode(data).tolist()
    assert stream(tokenizer, cut(data, places), block_bytes) == expected


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(
    seed=st.integers(0, 10**6),
    letters=st.sampled_from([b"a", b"ab", b"abc"]),
    length=st.integers(0, 400),
    block_bytes=st.integers(1, 60),
)
@pytest.mark.usefixtures("backend")
def test_raw_documents(seed: int, letters: bytes, length: int, block_bytes: int) -> None:
    rng = random.Random(seed)
    tokenizer = Tokenizer.from_merges(random_merges(rng, letters), pretokenizer="none")
    data = bytes(rng.choice(letters) for _ in range(length))
    chunks = [data[i : i + 7] for i in range(0, length, 7)]
    assert stream(tokenizer, chunks, block_bytes) == tokenizer.encode(data).tolist()


@pytest.mark.parametrize("links", [2, 5, 9, 40, 200])
@pytest.mark.usefixtures("backend")
def test_a_byte_that_decides_what_stands_far_before_it(links: int) -> None:
    # Dominoes: of a run of bytes the last two merge first, and so decide all pairs before them.
    merges = [(bytes([place]), bytes([place + 1])) for place in reversed(range(links))]
    tokenizer = Tokenizer.from_merges(merges, pretokenizer="none")
    for length in range(max(1, links - 3), links + 1):
        data = bytes(range(length)) * 3
        expected = tokenizer.encode(data).tolist()
        for block_bytes in (1, 3, 10, 50):
            assert stream(tokenizer, [data], block_bytes) == expected
        assert stream(tokenizer, [data[i : i + 1] for i in range(len(data))]) == expected


@st.composite
def long_runs(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]], list[bytes]]:
    """A text of a few long runs, merges of its bytes, and tokens that no merge reaches."""
    symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=4))
    lengths = st.sampled_from([1, 1, 2, 3, 30, 80, 200])
    runs = draw(st.lists(st.tuples(st.sampled_from(symbols), lengths), min_size=1, max_size=6))
    merges = random_merges(random.Random(draw(st.integers(0, 10**6))), b"".join(symbols), 6)
    pairs = st.tuples(*[st.sampled_from(symbols)] * 2).map(b"".join)
    known = {left + right for left, right in merges}
    whole = [pair for pair in draw(st.lists(pairs, max_size=2, unique=True)) if pair not in known]
    return b"".join(symbol * length for symbol, length in runs), merges, whole


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", [*CUT_SCHEMES, "superbpe"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(case=long_runs(), chunk=st.sampled_from([1, 3, 17, 100]), block_bytes=st.integers(1, 40))
@pytest.mark.usefixtures("backend")
def test_long_pretokens(
    scheme: str,
    case: tuple[bytes, list[tuple[bytes, bytes]], list[bytes]],
    chunk: int,
    block_bytes: int,
) -> None:
    data, merges, whole = case
    model = Tokenizer.from_merges(merges, pretokenizer=scheme).model
    extra = {1000 + place: token for place, token in enumerate(whole)}
    tokenizer = Tokenizer(replace(model, tokens=model.tokens | extra, whole_piece=bool(whole)))
    chunks = [data[i : i + chunk] for i in range(0, len(data), chunk)]
    assert stream(tokenizer, chunks, block_bytes) == tokenizer.encode(data).tolist()


@pytest.mark.parametrize("rest", [b"", b"x", b" x", b"!", b"\n", b"\nx", b"l", b"L", b"'s"])
@pytest.mark.parametrize(
    ("scheme", "front", "unit"),
    [
        *((scheme, b"x\n", b" ") for scheme in ("gpt2", "cl100k", "llama3", "o200k", "qwen2")),
        ("cl100k", b"!\n ", b"\t"),
        ("o200k", b" \xe4\xb8\xad", b"A"),
        ("o200k", b"L\xe4\xb8\xad" * 20, b"AB"),
        ("o200k", b"aL\xe4\xb8\xad", b"A"),
        ("o200k", b"!a'", b"s"),
        ("o200k", b"!!\n", b"/"),
        ("superbpe", b"!!\r", b"/"),
        ("superbpe", b"a b", b" c"),
        ("superbpe", b"a !", b"!"),
    ],
)
@pytest.mark.usefixtures("backend")
def test_what_follows_a_long_pretoken_decides_where_it_ends(
    scheme: str, front: bytes, unit: bytes, rest: bytes
) -> None:
    merges = [(b" ", b" "), (b"A", b"A"), (b"AA", b"A"), (b"  ", b"  "), (b"s", b"s"), (b" ", b"c")]
    merges.append((b"/", b"!"))
    # Tokens across a doubtful border: only the end of the run tells the ids before it.
    across = [(b"\xad", b"A"), (b"\n", b" "), (b"\n", b"\t")]
    data = front + unit * 300 + rest
    for made, limit in ((merges, 100), (across + merges, 10_000)):
        tokenizer = Tokenizer.from_merges(made, pretokenizer=scheme)
        encoder = tokenizer.stream_encoder(limit_bytes=limit, block_bytes=20)
        found = [*encoder.feed(data).tolist(), *encoder.finish().tolist()]
        assert found == tokenizer.encode(data).tolist()


@pytest.fixture(scope="session")
def published_tokenizers(published_models: dict[str, TokenizerModel]) -> dict[str, Tokenizer]:
    """Tokenizers by scheme; those whose vocabulary is not at hand have the one of cl100k."""
    names = {"gpt2": "gpt2", "o200k": "o200k_base"}
    return {
        scheme: Tokenizer(
            replace(published_models[names.get(scheme, "cl100k_base")], scheme=get_scheme(scheme))
        )
        for scheme in ("gpt2", "cl100k", "o200k", "llama3", "none")
    }


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "unit",
    [b"7", b"'s", b"'re", b"a", b"=", b"ha", b" ", b"\r\n", b"!\n", b"aA", b"\xe4\xb8\xad"],
)
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k", "llama3", "none"])
def test_long_runs_of_published_vocabularies(
    scheme: str, unit: bytes, published_tokenizers: dict[str, Tokenizer]
) -> None:
    pytest.importorskip("bpe._native", reason="too slow without the native core")
    tokenizer = published_tokenizers[scheme]
    data = unit * (50_000 // len(unit))
    expected = tokenizer.encode(data).tolist()
    middle = len(data) // 2
    cuts = [[middle + offset] for offset in range(9)]
    for places in [*cuts, list(range(6_400, len(data), 6_400))]:
        encoder = tokenizer.stream_encoder(limit_bytes=25_000, block_bytes=20_000)
        parts = [*map(encoder.feed, cut(data, places)), encoder.finish()]
        assert np.concatenate(parts).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k", "llama3", "none"])
def test_a_book_in_ten_thousand_chunks(
    scheme: str, shared_data: Path, published_tokenizers: dict[str, Tokenizer]
) -> None:
    pytest.importorskip("bpe._native", reason="too slow without the native core")
    with (shared_data / "corpora" / "en200.txt.zst").open("rb") as file:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file)
        data = reader.read(20_971_520)
    tokenizer = published_tokenizers[scheme]
    rng = random.Random(20)
    encoder = tokenizer.stream_encoder(limit_bytes=1 << 20, block_bytes=1 << 16)
    places = sorted(rng.randrange(len(data)) for _ in range(10_000))
    parts = [encoder.feed(chunk) for chunk in cut(data, places)]
    found = np.concatenate([*parts, encoder.finish()])
    assert np.array_equal(found, tokenizer.encode(data))


def test_raw_documents_are_not_kept(published_models: dict[str, TokenizerModel]) -> None:
    pytest.importorskip("bpe._native", reason="too slow without the native core")
    tokenizer = Tokenizer(replace(published_models["gpt2"], scheme=get_scheme("none")))
    rng = random.Random(5)
    for letters in (b"a", b"=", b" ", b"acgt", b"the quick brown fox"):
        encoder = tokenizer.stream_encoder(limit_bytes=5_000, block_bytes=2_000)
        data = bytes(rng.choice(letters) for _ in range(100_000))
        found = [*encoder.feed(data).tolist(), *encoder.finish().tolist()]
        assert found == tokenizer.encode(data).tolist()


@pytest.mark.parametrize(
    ("scheme", "data", "message"),
    [
        ("cl100k", b"one\n" + b" " * 60, r"at byte 3 .* 50 bytes whose tokens depend on what foll"),
        (
            "regex:(?<!x)a+",
            b"ab" * 40,
            r"at byte 0 .* the pre-tokenizer's pattern does not let",
        ),
    ],
)
@pytest.mark.usefixtures("backend")
def test_the_limit_is_named(scheme: str, data: bytes, message: str) -> None:
    # With a token of line end and space it matters whether there is another line end.
    tokenizer = Tokenizer.from_merges([(b"\n", b" ")], pretokenizer=scheme)
    encoder = tokenizer.stream_encoder(limit_bytes=50, block_bytes=8)
    with pytest.raises(StreamLimitError, match=message + r".*; raise limit_bytes"):
        encoder.feed(data)


@pytest.mark.usefixtures("backend")
def test_merges_in_another_order_are_kept_until_the_end() -> None:
    base = Tokenizer.from_merges([(b"a", b"b"), (b"ab", b"c")], pretokenizer="none").model
    model = replace(base, merges=base.merges[::-1])
    assert are_in_merge_order(base.merges)
    assert not are_in_merge_order(model.merges)
    tokenizer = Tokenizer(model)
    data = b"abcab" * 30
    assert stream(tokenizer, [data]) == tokenizer.encode(data).tolist()
    with pytest.raises(InputError, match="merges are not in a usable order; raise limit_bytes"):
        tokenizer.stream_encoder(limit_bytes=50).feed(data)


@pytest.mark.usefixtures("backend")
def test_whole_pieces_are_those_of_short_documents_alone() -> None:
    base = Tokenizer.from_merges([(b"a", b"b")], pretokenizer="none").model
    tokenizer = Tokenizer(replace(base, tokens=base.tokens | {300: b"abba"}, whole_piece=True))
    assert stream(tokenizer, [b"ab", b"ba"]) == [300]
    for times in range(2, 30):
        data = b"abba" * times
        assert stream(tokenizer, [data]) == tokenizer.encode(data).tolist()


def test_what_cannot_be_streamed() -> None:
    tokenizer = Tokenizer.from_merges([], pretokenizer="gpt2")
    with pytest.raises(SettingsError, match="limit_bytes is 0"):
        tokenizer.stream_encoder(limit_bytes=0)
    with pytest.raises(SettingsError, match=r"normalized \(NFC\)"):
        Tokenizer(replace(tokenizer.model, normalizer="NFC")).stream_encoder()
    encoder = tokenizer.stream_encoder()
    encoder.finish()
    with pytest.raises(InputError, match="finished"):
        encoder.feed(b"a")
