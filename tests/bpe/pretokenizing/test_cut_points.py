"""Certain cuts and safe boundaries: pieces have the pre-tokens of the whole."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.encoding.special_tokens import SpecialTokens
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import SCHEME_NAMES, Scheme, get_scheme

CUTTING = [name for name in SCHEME_NAMES if name != "none"]
# Representatives of every class and of every character that a pattern names: a contraction's
# letters, both cases, long s, a letter without case, a mark, CR and LF, spaces of several kinds,
# apostrophe, slash, other punctuation, digits, a bad byte and the halves of characters.
SYMBOLS = [
    *(b"s", b"l", b"L", b"A", b"q", "\u017f".encode(), "\u4e2d".encode(), "\u0301".encode()),
    *(b"\r", b"\n", b" ", b"\t", "\u2003".encode(), b"'", b"/", b"!", b"7", "\u0664".encode()),
    *(b"\xff", b"\xe4", b"\xb8", b"\xad"),
]
TEXTS = st.lists(st.sampled_from(SYMBOLS), max_size=12).map(b"".join)
RUNS = st.lists(
    st.tuples(st.sampled_from([*SYMBOLS, b"'s", b"'re", b"12", b"!\n"]), st.integers(1, 9)),
    max_size=6,
).map(lambda runs: b"".join(symbol * length for symbol, length in runs))


def all_cuts(finder: CutFinder, data: bytes) -> set[int]:
    found = (finder.first_cut(data, start, final=True) for start in range(len(data)))
    return {cut for cut in found if cut is not None}


@pytest.mark.parametrize("name", CUTTING)
@pytest.mark.parametrize("length", [2, 3])
def test_exhaustive_short_strings_split_at_cuts_as_whole(name: str, length: int) -> None:
    scheme = get_scheme(name)
    finder = CutFinder(scheme)
    for symbols in itertools.product(SYMBOLS, repeat=length):
        data = b"".join(symbols)
        whole = scheme.split(data)
        for cut in all_cuts(finder, data):
            assert scheme.split(data[:cut]) + scheme.split(data[cut:]) == whole, (data, cut)


@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=80, deadline=None)
@given(data=st.one_of(TEXTS, RUNS))
def test_cut_everywhere_equals_whole(name: str, data: bytes) -> None:
    scheme = get_scheme(name)
    cuts = sorted(all_cuts(CutFinder(scheme), data))
    pieces = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]
    assert [word for piece in pieces for word in scheme.split(piece)] == scheme.split(data)


@st.composite
def texts_with_specials(draw: st.DrawFn) -> tuple[bytes, bytes, list[bytes]]:
    """A text, more text that may follow it, and special tokens that occur in the two together."""
    data, rest = draw(st.one_of(TEXTS, RUNS)), draw(TEXTS)
    whole = data + rest
    spans = st.tuples(st.integers(0, max(0, len(whole) - 1)), st.integers(1, 5))
    tokens = {whole[at : at + length] for at, length in draw(st.lists(spans, max_size=2))}
    # Special tokens are text: halves of characters drop out.
    return (
        data,
        rest,
        sorted({token.decode("utf-8", "ignore").encode() for token in tokens} - {b""}),
    )


def table_of(specials: list[bytes]) -> SpecialTokens:
    return SpecialTokens({token.decode(): index for index, token in enumerate(specials)})


def pieces_of(scheme: Scheme, specials: list[bytes], data: bytes) -> list[bytes]:
    """Pre-tokens and special tokens, where special tokens cut documents."""
    table = table_of(specials)
    pieces: list[bytes] = []
    for start, end, token in table.split(data):
        pieces += scheme.split(data[start:end]) if token is None else [data[start:end]]
    return pieces


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=80, deadline=None)
@given(case=texts_with_specials())
def test_first_cut_knows_only_what_follows_the_mark(
    name: str, case: tuple[bytes, bytes, list[bytes]]
) -> None:
    first, rest, specials = case
    data = first + rest
    finder = CutFinder(get_scheme(name), specials)
    for start in range(len(data)):
        cut = finder.first_cut(data, start, final=True)
        tail_cut = finder.first_cut(data[start:], 0, final=True)
        assert cut == (None if tail_cut is None else start + tail_cut)
        assert cut == finder.first_cut(memoryview(data), start, final=True)
        for end in range(start, len(data) + 1):
            partial = finder.first_cut(data[:end], start, final=False)
            assert partial in {None, cut}


@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=80, deadline=None)
@given(case=texts_with_specials())
def test_cuts_leave_special_tokens_and_pre_tokens_as_they_are(
    name: str, case: tuple[bytes, bytes, list[bytes]]
) -> None:
    data, rest, specials = case
    scheme = get_scheme(name)
    finder = CutFinder(scheme, specials, special_text="allow")
    whole = pieces_of(scheme, specials, data + rest)
    for cut in all_cuts(finder, data + rest):
        left, right = (data + rest)[:cut], (data + rest)[cut:]
        assert pieces_of(scheme, specials, left) + pieces_of(scheme, specials, right) == whole
    boundary = finder.last_safe_boundary(data)
    if boundary is not None:
        left, right = data[:boundary], data[boundary:] + rest
        assert pieces_of(scheme, specials, left) + pieces_of(scheme, specials, right) == whole


def hits(specials: list[bytes], *pieces: bytes) -> dict[str, int]:
    return table_of(specials).count(pa.array(pieces, pa.large_binary()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=80, deadline=None)
@given(case=texts_with_specials())
def test_cuts_leave_pre_tokens_and_hits_as_they_are_where_special_tokens_are_text(
    name: str, case: tuple[bytes, bytes, list[bytes]]
) -> None:
    data, rest, specials = case
    scheme = get_scheme(name)
    finder = CutFinder(scheme, specials)
    boundary = finder.last_safe_boundary(data)
    for cut in all_cuts(finder, data + rest) | ({boundary} - {None}):
        left, right = (data + rest)[:cut], (data + rest)[cut:]
        assert scheme.split(left) + scheme.split(right) == scheme.split(data + rest)
        assert hits(specials, left, right) == hits(specials, data + rest)


def test_first_cut_is_the_lowest_one_and_excludes_the_mark() -> None:
    finder = CutFinder(get_scheme("gpt2"))
    assert finder.first_cut(b"ab cd ef", 0, final=True) == 2
    assert finder.first_cut(b"ab cd ef", 1, final=True) == 2
    assert finder.first_cut(b"ab cd ef", 2, final=True) == 5
    assert finder.first_cut(b"ab", 0, final=True) is None


@pytest.mark.parametrize("size", [4090, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("letter", ["a", "\u4e2d", "\U0001d400"])
def test_first_cut_far_from_the_mark(size: int, letter: str) -> None:
    run = (letter * size).encode()
    finder = CutFinder(get_scheme("cl100k"))
    assert finder.first_cut(run + b"1 x", 0, final=True) == len(run)
    assert finder.first_cut(b"\x80" * 3 + run + b"1 x", 0, final=False) == len(run) + 3
    assert finder.first_cut(run, 0, final=True) is None


def test_schemes_without_certain_cuts() -> None:
    for name in ("none", r"regex:\w+"):
        finder = CutFinder(get_scheme(name))
        assert not finder.can_cut
        assert finder.first_cut(b"ab cd", 0, final=True) is None
        assert finder.last_safe_boundary(b"ab cd") is None


def test_cuts_keep_out_of_special_tokens() -> None:
    data = b"one <|a b|> two"
    special = b"<|a b|>"
    finder = CutFinder(get_scheme("gpt2"), [special])
    cuts = all_cuts(finder, data)
    inside = range(data.index(special) + 1, data.index(special) + len(special))
    assert cuts
    assert not cuts & set(inside)
    assert all_cuts(CutFinder(get_scheme("gpt2")), data) & set(inside)


@pytest.mark.parametrize("name", CUTTING)
@settings(max_examples=80, deadline=None)
@given(data=st.one_of(TEXTS, RUNS), rest=TEXTS)
def test_safe_boundary_stays_whatever_follows(name: str, data: bytes, rest: bytes) -> None:
    scheme = get_scheme(name)
    boundary = CutFinder(scheme).last_safe_boundary(data)
    if boundary is not None:
        assert 0 < boundary < len(data)
        pieces = scheme.split(data[:boundary]) + scheme.split(data[boundary:] + rest)
        assert pieces == scheme.split(data + rest)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CUTTING)
def test_safe_boundaries_of_short_strings_exhaustively(name: str) -> None:
    scheme = get_scheme(name)
    finder = CutFinder(scheme)
    joining = [b"l", b"L", b"\xe4\xb8\xad", b"\xcc\x81", b"'"]
    parting = [b" ", b"\n", b"/", b"!", b"7", b"\xff"]
    rests = [b"".join(pair) for pair in itertools.product([*joining, b"!", b""], repeat=2)]
    texts = itertools.chain(
        itertools.product([*joining, b"!"], repeat=4),
        itertools.product(joining + parting, repeat=3),
    )
    for symbols in texts:
        data = b"".join(symbols)
        boundary = finder.last_safe_boundary(data)
        if boundary is None:
            continue
        for rest in rests:
            pieces = scheme.split(data[:boundary]) + scheme.split(data[boundary:] + rest)
            assert pieces == scheme.split(data + rest), (data, boundary, rest)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("cl100k", b"7"),
        ("llama3", b"7"),
        ("qwen2", b"7"),
        ("o200k", b"7"),
        ("o200k", b"x's"),
        ("o200k", b"x're"),
    ],
)
def test_runs_without_certain_cut_have_safe_boundaries(name: str, unit: bytes) -> None:
    data = unit * 1000
    finder = CutFinder(get_scheme(name))
    assert finder.first_cut(data, 0, final=True) is None
    boundary = finder.last_safe_boundary(data)
    assert boundary is not None
    assert boundary >= len(data) - 8
