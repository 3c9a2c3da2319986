"""Pre-tokens: lossless for any bytes, and those of tiktoken for every code point."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import SettingsError
from bpe.pretokenizing import unicode_classes
from bpe.pretokenizing.schemes import SCHEME_NAMES, get_scheme

ANY_BYTES = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(str.encode),
    st.lists(
        st.sampled_from([b"'s", b"'LL", b" ", b"\n", b"\r\n", b"x", b"12", b"\xff", b"\xe4\xb8"]),
        max_size=20,
    ).map(b"".join),
)


@pytest.mark.parametrize("spec", [*SCHEME_NAMES, r"regex:\w+", r"regex:(?<=a)b|x*"])
@given(data=ANY_BYTES)
def test_split_is_lossless_and_has_no_empty_piece(spec: str, data: bytes) -> None:
    pieces = get_scheme(spec).split(data)
    assert b"".join(pieces) == data
    assert all(pieces)


@pytest.mark.parametrize("spec", SCHEME_NAMES)
@given(text=st.text(st.characters(max_codepoint=127), max_size=60))
def test_ascii_text_is_split_the_same_beside_other_text(spec: str, text: str) -> None:
    # ASCII text takes a shorter way; a code point elsewhere in the document must not matter.
    scheme = get_scheme(spec)
    alone = scheme.split((text + "\nx").encode())
    beside = scheme.split((text + "\nx\u00e9").encode())
    assert b"".join(alone[:-1]) == b"".join(beside[:-1])
    assert alone[:-1] == beside[:-1]


@pytest.mark.parametrize(
    ("spec", "text", "pieces"),
    [
        ("gpt2", "We're 42 ok!", ["We", "'re", " 42", " ok", "!"]),
        ("gpt2", "WE'RE", ["WE", "'", "RE"]),
        ("cl100k", "WE'RE 12345", ["WE", "'RE", " ", "123", "45"]),
        ("cl100k", "it\u2019s '\u017fx", ["it", "\u2019s", " '", "\u017fx"]),
        ("cl100k", "it'\u017fx", ["it", "'\u017f", "x"]),
        ("o200k", "WE'RE it's HelloWorld", ["WE'RE", " it's", " Hello", "World"]),
        ("o200k", "e\u0301a !\n/x", ["e\u0301a", " !\n/", "x"]),
        ("llama3", "WE'RE 12345", ["WE", "'RE", " ", "123", "45"]),
        ("qwen2", "it's 123", ["it", "'s", " ", "1", "2", "3"]),
        ("whitespace", " a  b\tc", [" ", "a", "  ", "b", "\t", "c"]),
        ("none", "all of it", ["all of it"]),
        ("cl100k", "a\n  ", ["a", "\n  "]),
        ("gpt2", "a\n  ", ["a", "\n  "]),
        ("llama3", "a\n  ", ["a", "\n", "  "]),
        ("o200k", "a\n  ", ["a", "\n", "  "]),
        ("gpt2", "a  b", ["a", " ", " b"]),
        (r"regex:\d+", "ab12cd", ["ab", "12", "cd"]),
        (r"regex:x*", "abxxc", ["ab", "xx", "c"]),
        ("gpt2", "", []),
        ("none", "", []),
    ],
)
def test_examples(spec: str, text: str, pieces: list[str]) -> None:
    assert get_scheme(spec).split(text.encode()) == [piece.encode() for piece in pieces]


def test_bytes_that_are_no_utf8_are_of_class_other() -> None:
    data = b"\xffit's \xe4\xb8\xad\xe4\xb8 1\x80\x80"
    assert get_scheme("gpt2").split(data) == [
        *(b"\xff", b"it", b"'s", b" \xe4\xb8\xad", b"\xe4\xb8", b" 1", b"\x80\x80")
    ]
    assert get_scheme("cl100k").split(b"\xffit") == [b"\xffit"]
    # An encoded surrogate is no character either.
    assert get_scheme("gpt2").split(b"a\xed\xa0\x80b") == [b"a", b"\xed\xa0\x80", b"b"]


def test_scheme_says_which_unicode_it_uses() -> None:
    assert get_scheme("o200k").unicode_version == "16.0.0"
    assert get_scheme(r"regex:\w").unicode_version.startswith("regex ")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gpt4", ["'gpt4'", "cl100k", "regex:PATTERN"]),
        ("", ["''", "regex:PATTERN"]),
        ("regex:", ["no pattern"]),
        ("regex:(", ["'regex:('", "does not compile"]),
    ],
)
def test_unknown_schemes_are_refused_with_the_remedy(spec: str, words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        get_scheme(spec)
    assert all(word in str(caught.value) for word in words)


def tiktoken_with(ranks: dict[bytes, int], scheme: str) -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    pattern = get_scheme(scheme).pattern
    return tiktoken.Encoding(scheme, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def test_gpt2_pattern_is_tiktokens() -> None:
    openai_public = pytest.importorskip("tiktoken_ext.openai_public")
    assert get_scheme("gpt2").pattern == openai_public.r50k_pat_str


def published_ranks(data_dir: Path, name: str) -> dict[bytes, int]:
    lines = gzip.decompress((data_dir / "vocab" / f"{name}.tiktoken.gz").read_bytes()).split(b"\n")
    pairs = (line.split() for line in lines if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@pytest.mark.parametrize(("scheme", "name"), [("cl100k", "cl100k_base"), ("o200k", "o200k_base")])
def test_pieces_of_nasty_inputs_have_tiktokens_ids(data_dir: Path, scheme: str, name: str) -> None:
    encoding = tiktoken_with(published_ranks(data_dir, name), scheme)
    checked = 0
    for line in (data_dir / "cases" / "nasty_inputs.jsonl").read_text().splitlines():
        case: dict[str, Any] = json.loads(line) if line else {"valid_utf8": False}
        if case["valid_utf8"]:
            pieces = get_scheme(scheme).split(base64.b64decode(case["b64"]))
            ids = [index for piece in pieces for index in encoding._encode_single_piece(piece)]
            assert ids == case["ids"][name], case["name"]
            checked += 1
    assert checked > 80


# Contexts of a code point, `@`. A token is made of every character beside it with any byte, so
# that a border between the two shows in the tokens.
CONTEXTS = ("a@a\n", "1@1\n", "!@ ", "a'@a\n", "A@1")
NEIGHBOURS = b"a1!' \nA"

# The first and the last code point of each run of one class, and every 31st of the others.
ENDS_OF_CLASSES = sorted(
    {
        *range(0x80, 0x32000, 31),
        0x10FFFF,
        *(
            code_point
            for first, last, _ in unicode_classes._RANGES
            for code_point in (first - 1, first, last, last + 1)
            if code_point >= 0x80
        ),
    }
)


def visible_borders(ids: npt.NDArray[np.uint32], marks: npt.NDArray[np.int64]) -> Any:
    ends = np.cumsum(np.where(ids < 256, 1, 2))
    return np.isin(marks, ends)


@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize(
    "points",
    [
        pytest.param(ENDS_OF_CLASSES, id="ends of classes"),
        pytest.param(range(0x80, 0x110000), marks=pytest.mark.exhaustive, id="all"),
    ],
)
def test_every_code_point_in_context_as_in_tiktoken(scheme: str, points: Sequence[int]) -> None:
    ranks = {bytes([value]): value for value in range(256)}
    # Only bytes of the code point under test are above 7F.
    for one in NEIGHBOURS:
        for other in range(0x80, 0x100):
            ranks[bytes([one, other])] = len(ranks)
            ranks[bytes([other, one])] = len(ranks)
    encoding = tiktoken_with(ranks, scheme)
    for start in range(0, len(points), 0x8000):
        code_points = [
            code_point
            for code_point in points[start : start + 0x8000]
            if not 0xD800 <= code_point < 0xE000
        ]
        text = "".join(
            context.replace("@", chr(code_point))
            for code_point in code_points
            for context in CONTEXTS
        )
        data = text.encode()
        values = np.frombuffer(data, np.uint8)
        # Borders of the code points: where a byte above 7F has a neighbour below.
        marks = np.flatnonzero((values[1:] >= 0x80) != (values[:-1] >= 0x80)) + 1
        theirs = visible_borders(encoding.encode_to_numpy(text, disallowed_special=()), marks)
        pieces = get_scheme(scheme).split(data)
        ours = np.isin(marks, np.cumsum([len(piece) for piece in pieces]))
        differing = marks[theirs != ours]
        assert not len(differing), data[differing[0] - 8 : differing[0] + 8].decode(
            "utf-8", "replace"
        )


@lru_cache(maxsize=3)
def tiktoken_with_all_ascii_pairs(scheme: str) -> Any:
    ranks = {bytes([value]): value for value in range(256)}
    for one in range(128):
        for other in range(128):
            ranks[bytes([one, other])] = len(ranks)
    return tiktoken_with(ranks, scheme)


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.characters(max_codepoint=127), max_size=30))
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "o200k"])
def test_ascii_text_as_in_tiktoken(scheme: str, text: str) -> None:
    encoding = tiktoken_with_all_ascii_pairs(scheme)
    pieces = get_scheme(scheme).split(text.encode())
    ids = [index for piece in pieces for index in encoding._encode_single_piece(piece)]
    assert ids == encoding.encode(text, disallowed_special=())
