"""Added tokens are found as `tokenizers` finds them, and by both backends alike."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import InputError, SettingsError, Tokenizer, VocabularyError
from bpe.backends.choice import get_backend
from bpe.encoding.added_tokens import AddedSearch, AddedToken, Find
from bpe.encoding.printable_bytes import to_printable
from bpe.formats.tokenizer_json import render_tokenizer_json
from bpe.pretokenizing.schemes import get_scheme
from bpe.pretokenizing.unicode_tables import CLASS_RANGES, WORD_EXCEPTIONS

# One part of a text, or of a token: they meet, overlap, and are white space and words.
PARTS = [
    "a",
    "ab",
    "<",
    ">",
    "|",
    " ",
    "  ",
    "\n",
    "\u3000",
    "\u00a0",
    "é",
    "e",
    "\u0301",
    "1",
    "½",
]
MORE_PARTS = ["½", "_", "-", "\u200d", "中", "\U0001f130", "\x00", "x"]
FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")


PLAIN = Tokenizer.from_merges([(b"a", b"b"), (b" ", b"a"), (b" ", b" ")], pretokenizer="gpt2")


def make(tokens: list[AddedToken], normalizer: str | None = None) -> Tokenizer:
    return Tokenizer(replace(PLAIN.model, added_tokens=tokens, normalizer=normalizer))


@st.composite
def added_tokens(draw: Any) -> list[AddedToken]:
    texts = draw(
        st.lists(
            st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("".join),
            min_size=1,
            max_size=6,
            unique_by=lambda text: unicodedata.normalize("NFC", text),
        )
    )
    flags = st.sampled_from([(), (), *((flag,) for flag in FLAGS), FLAGS[:2], FLAGS[1:3]])
    # What vocab.json spells as an ordinary token has its id.
    spelled = {to_printable(data): token_id for token_id, data in PLAIN.model.tokens.items()}
    return [
        AddedToken(
            text,
            spelled.get(text, 300 + index),
            **dict.fromkeys(FLAGS, False) | dict.fromkeys(draw(flags), True),
        )
        for index, text in enumerate(texts)
    ]


texts = st.lists(st.sampled_from(PARTS + MORE_PARTS), max_size=12).map("".join)


def reference(tokenizer: Tokenizer) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    document = json.loads(render_tokenizer_json(tokenizer.model))
    return tokenizers.Tokenizer.from_str(json.dumps(document))


@pytest.mark.usefixtures("backend")
@given(data=st.data(), normalizer=st.sampled_from([None, "NFC"]))
@settings(max_examples=100)
def test_ids_are_those_of_the_library(data: Any, normalizer: str | None) -> None:
    tokens = data.draw(added_tokens())
    tokenizer = make(tokens, normalizer)
    theirs = reference(tokenizer)
    for text in data.draw(st.lists(texts, min_size=1, max_size=4)):
        for policy, as_text in (("text", True), ("allow", False)):
            theirs.encode_special_tokens = as_text
            try:
                expected = theirs.encode(text, add_special_tokens=False).ids
            except BaseException as error:
                if "bad split" in str(error):  # tokens that take each other's white space
                    continue
                raise
            assert tokenizer.encode(text, special_text=policy).tolist() == expected
            batch = tokenizer.encode_batch(pa.array(["", text, "x"]), special_text=policy)
            assert batch.to_pylist()[1] == expected


@given(
    data=st.data(),
    parts=st.lists(
        st.sampled_from(
            [b"a", b"<", b" ", b"\xc3", b"\xa9", b"\xe3\x80", b"\x80", b"\xff", b"\xf0\x9f"]
        )
    ),
)
@settings(max_examples=100)
def test_bytes_that_are_no_text_are_cut_alike(data: Any, parts: list[bytes]) -> None:
    model = make(data.draw(added_tokens())).model.encoding_model
    text = b"".join(parts)
    native = get_backend().make_encoder(model)
    for find in (Find.ADDED, Find.ADDED | Find.SPECIALS):
        for only in (Find.NOTHING, Find.FIRST, Find.SECOND):
            found = AddedSearch(model.added_tokens).cut(text, find | only)
            assert native.cut(text, find | only) == found


def test_an_invalid_byte_is_neither_word_nor_white_space() -> None:
    word = AddedToken("<w>", 300, special=False, single_word=True)
    strip = AddedToken("<s>", 301, special=False, lstrip=True, rstrip=True)
    search = AddedSearch([word, strip])
    assert search.cut(b"\xc3<w>\xa9", Find.ADDED) == [(0, 1, None), (1, 4, 300), (4, 5, None)]
    assert search.cut("é<w>".encode(), Find.ADDED) == [(0, 5, None)]
    found = search.cut(b"\xe3\x80 <s> \x85", Find.ADDED)
    assert found == [(0, 2, None), (2, 7, 301), (7, 8, None)]


@pytest.mark.parametrize("flag", ["single_word", "lstrip", "rstrip"])
def test_words_and_white_space_are_those_of_the_library(flag: str) -> None:
    token = AddedToken("<<", 300, **{flag: True})
    theirs = reference(make([token]))
    ours = [
        get_backend().make_encoder(make([token]).model.encoding_model),
        AddedSearch([token]),
    ]
    # Where a class or an exception begins or ends; between these nothing changes.
    spans = " ".join([*CLASS_RANGES.values(), WORD_EXCEPTIONS]).replace("-", " ").split()
    borders = {int(border, 16) + shift for border in spans for shift in (-1, 0, 1)}
    points = sorted(point for point in borders if not 0xD800 <= point < 0xE000)
    for first in range(0, len(points), 200):
        # Behind each token a character that is neither, so that only the one at hand matters.
        characters = map(chr, points[first : first + 200])
        text = "".join(
            f"!{character}<<!" if flag != "rstrip" else f"!<<{character}!"
            for character in characters
        )
        encoded = theirs.encode(text, add_special_tokens=False)
        places = [
            span
            for span, token_id in zip(encoded.offsets, encoded.ids, strict=True)
            if token_id == 300
        ]
        for searcher in ours:
            cuts = searcher.cut(text.encode(), Find.ADDED | Find.SPECIALS)
            lengths = [end - start for start, end, token_id in cuts if token_id == 300]
            assert lengths == [len(text[start:end].encode()) for start, end in places]


def test_the_first_pass_comes_before_the_normal_form() -> None:
    # As in the library's own documentation: a token of the normal form may be cut by another.
    tokenizer = make(
        [
            AddedToken("<|x|>", 300),
            AddedToken("b<", 301, special=False, normalized=True),
            AddedToken("<|im_end|>", 302),
            AddedToken("<|im_end|>\n", 303, special=False, normalized=True),
        ]
    )
    allow = lambda text: tokenizer.encode(text, special_text="allow").tolist()  # noqa: E731
    assert allow("ab<|x|>") == [256, 300]
    assert allow("ab<|y") == [64, 301, *tokenizer.encode("|y").tolist()]
    assert allow("<|im_end|>\n") == [302, *tokenizer.encode("\n").tolist()]
    assert tokenizer.encode("<|im_end|>\n").tolist() == [303]


@pytest.mark.usefixtures("backend")
def test_only_special_tokens_obey_the_policy() -> None:
    tokenizer = make([AddedToken("<s>", 300), AddedToken("<t>", 301, special=False)])
    ordinary = tokenizer.encode("<s>").tolist()
    assert len(ordinary) == 3
    assert tokenizer.encode("<t><s>").tolist() == [301, *ordinary]
    assert tokenizer.encode("<t><s>", special_text="allow").tolist() == [301, 300]
    assert tokenizer.encode("<t>", special_text="reject").tolist() == [301]
    with pytest.raises(InputError, match=r"texts\[1\] holds the special token '<s>' at byte 3"):
        tokenizer.encode_batch(pa.array(["<t>", "<t><s>"]), special_text="reject")
    assert tokenizer.decode([301, 300]) == b"<t><s>"


@pytest.mark.usefixtures("backend")
def test_a_users_pattern_cuts_between_added_tokens() -> None:
    tokenizer = make([AddedToken("<s>", 300), AddedToken("  ", 301, special=False)])
    tokenizer = Tokenizer(replace(tokenizer.model, scheme=get_scheme(r"regex:\w+\s?")))
    ids = tokenizer.encode_batch(pa.array(["ab  ab<s>", "", "  "]), special_text="allow")
    assert ids.to_pylist() == [[256, 301, 256, 300], [], [301]]


def test_threads_share_a_long_document_with_added_tokens() -> None:
    tokens = [AddedToken(" " * count, 300 + count, special=False) for count in range(2, 9)]
    tokenizer = make([*tokens, AddedToken("b  a", 290, special=False)])
    text = ("ab  ab" + " " * 13 + "x\n" + "b  a" * 3) * 400_000
    texts = pa.array([text, "ab", text[:100]], pa.large_binary())
    one = tokenizer.encode_batch(texts)
    assert tokenizer.encode_batch(texts, threads=2).equals(one)
    assert tokenizer.decode_batch(one).to_pylist()[0] == text.encode()


def test_what_cannot_be_looked_for_is_refused() -> None:
    with pytest.raises(VocabularyError, match="has 5000 bytes, and 4096 are the most"):
        make([AddedToken("x" * 5000, 300)])
    with pytest.raises(VocabularyError, match="'<a>' is there twice"):
        make([AddedToken("<a>", 300), AddedToken("<a>", 301)])
    with pytest.raises(VocabularyError, match="'e\u0301x' and 'éx' have the same normal form"):
        make(
            [
                AddedToken(text, token_id, normalized=True)
                for text, token_id in (("éx", 300), ("e\u0301x", 301))
            ],
            "NFC",
        )


# ---- in parts ------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@given(data=st.data(), normalizer=st.sampled_from([None, "NFC"]))
@settings(max_examples=60)
def test_special_texts_are_counted_as_encoding_finds_them(
    data: Any, normalizer: str | None
) -> None:
    tokens = data.draw(added_tokens())
    tokenizer = make(tokens, normalizer)
    documents = ["", *data.draw(st.lists(texts, max_size=3)), "ab<|"]
    encoded = tokenizer.encode_batch(pa.array(documents), special_text="allow").values.to_pylist()
    found = tokenizer.count_special_text(pa.array(documents))
    assert list(found) == [token.text for token in tokenizer.added_tokens if token.special]
    for token in tokens:
        if token.special and token.id >= 300:  # below are the ids that merges make, too
            assert found[token.text] == encoded.count(token.id)


@pytest.mark.usefixtures("backend")
def test_a_longer_token_hides_a_special_one_that_is_counted() -> None:
    longer = AddedToken("<s>!", 301, special=False)
    tokenizer = make([AddedToken("<s>", 300), longer])
    texts = pa.array(["a<s>!", "<s>!<s><s>", ""])
    assert tokenizer.count_special_text(texts) == {"<s>": 2}
    assert tokenizer.encode("<s>!", special_text="reject").tolist() == [301]


def plain_flags(tokens: list[AddedToken]) -> list[AddedToken]:
    """The same tokens without flags that look around, and without bytes that are others' ids."""
    return [
        replace(token, lstrip=False, rstrip=False, single_word=False)
        for token in tokens
        if token.text.isascii()
    ]


@pytest.mark.usefixtures("backend")
@given(data=st.data(), policy=st.sampled_from(["text", "allow"]), block=st.integers(1, 9))
@settings(max_examples=40)
def test_a_stream_cut_anywhere_has_the_same_ids(data: Any, policy: str, block: int) -> None:
    tokenizer = make(plain_flags(data.draw(added_tokens())))
    text = (data.draw(texts) * 3).encode()
    expected = tokenizer.encode(text, special_text=policy).tolist()
    for size in (1, 2, 5, 100):
        stream = tokenizer.stream_encoder(special_text=policy, block_bytes=block)
        parts = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert [i for part in [*parts, stream.finish()] for i in part.tolist()] == expected


@given(
    data=st.data(),
    policy=st.sampled_from(["text", "allow"]),
    scheme=st.sampled_from(["gpt2", "cl100k", "o200k", "whitespace"]),
)
@settings(max_examples=100)
def test_a_document_cut_at_any_mark_has_the_same_ids(data: Any, policy: str, scheme: str) -> None:
    tokens = plain_flags(data.draw(added_tokens()))
    tokenizer = Tokenizer(replace(make(tokens).model, scheme=get_scheme(scheme)))
    text = (data.draw(texts) * 2).encode()
    finder = tokenizer.cut_finder(policy)
    expected = tokenizer.encode(text, special_text=policy).tolist()
    cuts = {finder.first_cut(text, mark, final=True) for mark in range(len(text))}
    for end in range(1, len(text)):
        # Of a document of which so much is known.
        cuts |= {finder.last_safe_boundary(text[:end]), finder.first_cut(text, 0, final=False)}
    for cut in cuts - {None}:
        parts = tokenizer.encode(text[:cut], special_text=policy).tolist()
        assert parts + tokenizer.encode(text[cut:], special_text=policy).tolist() == expected


def test_runs_of_spaces_stream_in_bounded_memory() -> None:
    tokens = [AddedToken(" " * count, 300 + count, special=False) for count in range(2, 32)]
    tokenizer = make(tokens)
    text = b"x" + b" " * 300_000 + b"y"
    stream = tokenizer.stream_encoder(limit_bytes=20_000, block_bytes=5_000)
    parts = [stream.feed(text[at : at + 4_000]) for at in range(0, len(text), 4_000)]
    ids = np.concatenate([*parts, stream.finish()])
    assert ids.tolist() == tokenizer.encode(text).tolist()
    assert max(map(len, parts)) < 500
    boundary = tokenizer.cut_finder().last_safe_boundary(text[:200_000])
    assert boundary is not None
    assert boundary > 199_000


def test_tokens_that_look_around_keep_documents_whole() -> None:
    tokenizer = make([AddedToken("<m>", 300, lstrip=True), AddedToken("<w>", 301)])
    assert tokenizer.streams
    assert tokenizer.cut_finder().can_cut
    assert not tokenizer.lossy
    assert not tokenizer.can_stream("allow")
    assert not tokenizer.cut_finder("allow").can_cut
    assert tokenizer.is_lossy("allow")
    with pytest.raises(SettingsError, match="added token '<m>' depends on the text around it"):
        tokenizer.stream_encoder(special_text="allow")


def test_a_token_that_decodes_to_another_text_is_declared() -> None:
    # tokenizers gives "é" the id of the byte that vocab.json spells é, and decodes it to that byte.
    byte = int(PLAIN.encode(b"\xe9")[0])
    tokenizer = make([AddedToken("é", byte, special=False)])
    assert tokenizer.encode("é").tolist() == [byte]
    assert tokenizer.decode([byte]) == b"\xe9"
    assert tokenizer.lossy
    assert not tokenizer.streams


@given(
    data=st.data(),
    parts=st.lists(st.sampled_from(["a", "aa", "a" * 15, "a" * 40, "b", "bb", "c", "\0"])),
)
@settings(max_examples=60)
def test_runs_of_a_byte_are_cut_as_the_specification_says(data: Any, parts: list[str]) -> None:
    names = ["aa", "aaa", "a" * 17, "a" * 40, "ac", "aab", "bb", "bbbb", "bba", "cc", "\0\0"]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    model = make([AddedToken(n, 300 + i) for i, n in enumerate(chosen)]).model.encoding_model
    text, find = "".join(parts).encode(), Find.ADDED | Find.SPECIALS
    found = AddedSearch(model.added_tokens).cut(text, find)
    assert get_backend("native").make_encoder(model).cut(text, find) == found


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("ab\t\t", [256, 260]), ("<x> \t\tb", [259, 65]), ("\t \t\tb\t", [260, 65, 260])],
)
def test_white_space_that_a_token_took_makes_no_other(text: str, expected: list[int]) -> None:
    tokens = [
        AddedToken("<x>", 259, rstrip=True),
        AddedToken("\t", 260, special=False, lstrip=True, rstrip=True),
    ]
    assert make(tokens).encode(text, special_text="allow").tolist() == expected
    theirs = reference(make(tokens)).encode(text, add_special_tokens=False).ids
    assert theirs == expected


def cut_streamed(tokenizer: Tokenizer, text: bytes, end: int) -> list[bytes]:
    """A text, and the rest of it, divided where a stream that knows so much of it is divided."""
    cut = tokenizer.cut_finder("reject").streamed_cut(text[:end])
    return [text[:cut], text[cut:]]


TAKERS = [AddedToken("qz", 300, lstrip=True, rstrip=True), AddedToken("\u00a0", 301, lstrip=True)]


def first_of(tokenizer: Tokenizer, parts: list[bytes]) -> tuple[int, str] | None:
    found = tokenizer.first_special(pa.array(parts, pa.large_binary()))
    return found and (sum(map(len, parts[: found[0]])) + found[1], found[2])


@pytest.mark.usefixtures("backend")
def test_a_streamed_cut_uncovers_no_special_token() -> None:
    covers = AddedToken("<s>!", 301, special=False)
    across = AddedToken("x<", 302, special=False, normalized=True)
    tokenizer = make([AddedToken("s>", 300), covers, across])
    text = b"ax<s>!" * 9
    for end in range(len(text)):
        parts = cut_streamed(tokenizer, text, end)
        assert all(parts) or end < 20
        assert first_of(tokenizer, parts) is None


def test_a_streamed_cut_keeps_characters_and_line_ends_whole() -> None:
    tokenizer = make([AddedToken("<s>", 300), AddedToken("<t>", 301, special=False)])
    for text in ("é\r\n中<t>".encode() * 9, b"\r\n" * 20):
        for end in range(len(text)):
            left, right = cut_streamed(tokenizer, text, end)
            assert left.decode() + right.decode() == text.decode()
            assert not (left.endswith(b"\r") and right.startswith(b"\n"))


@pytest.mark.usefixtures("backend")
@given(data=st.data())
@settings(max_examples=60)
def test_streamed_parts_are_rejected_as_the_whole_is(data: Any) -> None:
    # White space that a token takes moves its start, and nothing else.
    tokens = [replace(t, lstrip=False, rstrip=False) for t in data.draw(added_tokens())]
    tokenizer = make(tokens)
    text = (data.draw(texts) * 4).encode()
    expected = first_of(tokenizer, [text])
    if tokenizer.model.whole_document_token("reject") is None:  # others are not streamed
        for end in range(len(text)):
            assert first_of(tokenizer, cut_streamed(tokenizer, text, end)) == expected


@pytest.mark.parametrize(
    ("scheme", "tokens", "text"),
    [
        # A word character on the other side of the cut.
        ("gpt2", [AddedToken("qz", 300, single_word=True)], "x qz1 x"),
        ("cl100k", [AddedToken("qz", 300, single_word=True)], "x 1qz x"),
        ("gpt2", [AddedToken("\x01", 300, single_word=True)], "x a\x01 x"),
        # White space that is a token, unless the one before takes it.
        ("gpt2", TAKERS, "x qz\u00a0 x"),
        ("superbpe", TAKERS, "x qz\n\n\u00a0x\ny"),
        ("superbpe", TAKERS, "x\n \n qz x\ny"),
    ],
)
def test_special_text_is_seen_in_ranges_as_in_the_whole(
    scheme: str, tokens: list[AddedToken], text: str
) -> None:
    model = replace(PLAIN.model, added_tokens=tokens, scheme=get_scheme(scheme))
    tokenizer = Tokenizer(model)
    data = (text * 3).encode()
    first = first_of(tokenizer, [data])
    counts = tokenizer.count_special_text(pa.array([data]))
    finder = tokenizer.cut_finder("reject")
    cuts = {finder.first_cut(data, mark, final=True) for mark in range(len(data))} - {None}
    assert cuts
    for cut in cuts:
        parts = [data[:cut], data[cut:]]
        assert first_of(tokenizer, parts) == first
        assert tokenizer.count_special_text(pa.array(parts)) == counts
    for mark in range(len(data)):
        for end in range(mark, len(data)):
            early = finder.first_cut(data[:end], mark, final=False)
            assert early in (None, finder.first_cut(data, mark, final=True))
