"""Compiled schemes: automata find what the `regex` module and the `tokenizers` library find."""

from __future__ import annotations

import re
from itertools import accumulate

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe import SCHEME_NAMES, SettingsError, get_scheme
from bpe.formats.huggingface_patterns import to_huggingface_pattern
from bpe.pretokenizing.chains import Step, split_by_steps
from bpe.pretokenizing.code_points import complement, intersect, named_set, single, union
from bpe.pretokenizing.compiled_chain import compile_chain
from bpe.pretokenizing.pattern_syntax import UnsupportedPatternError, parse_pattern
from bpe.pretokenizing.schemes import Scheme, chain_scheme

NAMED = [name for name in SCHEME_NAMES if get_scheme(name).compiled]
ALPHABET = "aAzs' \t\r\n12½é日本あ!/.,(|\u0301ǅʰſ…\u3000"
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=14)
# Of ASCII, of which every library knows the same.
PLAIN_TEXTS = st.text(st.sampled_from("aAbBc 12\n'.\r\t"), max_size=12)

SETS = st.sampled_from(
    ["a", "b", r"\s", r"\p{N}", r"\p{L}", r"[^\s\p{L}]", "[ab]", r"[^a\n]", "(?i:b)", "."]
)
LOOKS = st.sampled_from([r"(?!\S)", "(?=b)", r"(?![a\s])", r"(?![\s\S])"])
COUNTS = st.sampled_from(["", "", "?", "*", "+", "{2}", "{1,3}", "+?", "??", "{0,2}?"])
PARTS = st.tuples(SETS, COUNTS).map("".join)
SEQUENCES = st.lists(st.one_of(PARTS, PARTS, PARTS, LOOKS), min_size=1, max_size=4).map("".join)
PATTERNS = st.recursive(
    SEQUENCES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(inner, SEQUENCES).map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(inner, COUNTS).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=4,
)
BEHAVIORS = st.sampled_from(
    ["isolated", "isolated", "contiguous", "merged_with_next", "merged_with_previous"]
)
STEPS = st.builds(Step, PATTERNS, BEHAVIORS, st.booleans())


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def native_split(scheme: Scheme, text: str, batch: int) -> list[str] | None:
    """Pre-tokens that the core finds, so many at a time; None if the scheme is not for it."""
    native = pytest.importorskip("bpe._native")
    from bpe.backends.native_backend import _find_scan

    scan = _find_scan(scheme)
    data = encode(text)
    if scan is None:
        return None
    ends = native.scan_ends(data, scan, "scalar", batch=batch).tolist()
    starts = [0, *ends[:-1]]
    pieces = [data[a:b] for a, b in zip(starts, ends, strict=True)] if data else []
    return [piece.decode("utf-8", "surrogateescape") for piece in pieces]


@settings(max_examples=400, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3).map(tuple), PLAIN_TEXTS)
@example((Step("a*?b", "isolated"), Step("a+", "isolated")), "caaab")
@example((Step(r"\s+(?!\S)|\s+", "isolated"),), "a   b  ")
def test_a_compiled_chain_cuts_as_its_patterns_do(steps: tuple[Step, ...], text: str) -> None:
    compiled = compile_chain(steps)
    if compiled is None:
        return
    expected = split_by_steps(steps, text)
    letters = split_by_steps(compiled.over_letters, text.translate(compiled.atoms))
    assert list(map(len, letters)) == list(map(len, expected))
    if compiled.automaton:
        assert native_split(chain_scheme(steps), text, batch=2) in (expected, None)


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.one_of(TEXTS, st.sampled_from(["\udcff", "\udce4\udcb8"])), max_size=4))
def test_named_schemes_cut_alike_in_both_backends(name: str, texts: list[str]) -> None:
    text, scheme = "".join(texts), get_scheme(name)
    expected = scheme.split_text(text)
    assert "".join(expected) == text
    for batch in (1, 3, 600):
        assert native_split(scheme, text, batch) == expected
    # Long enough for parts that are scanned side by side.
    long_text = text * 300
    if long_text:
        assert native_split(scheme, long_text, 700) == scheme.split_text(long_text)


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_named_schemes_cut_as_the_library_does(name: str, text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = [
        tokenizers.pre_tokenizers.Split(
            tokenizers.Regex(to_huggingface_pattern(step.pattern)), "isolated"
        )
        for step in get_scheme(name).steps
    ]
    pieces = tokenizers.pre_tokenizers.Sequence(made).pre_tokenize_str(text)
    assert get_scheme(name).split_text(text) == [piece for piece, _ in pieces]


@pytest.mark.parametrize("name", [*NAMED, "regex:a+b|[a-z]+|\\s+", "digits:left3:o200k"])
@settings(max_examples=100, deadline=None)
@given(text=TEXTS, end=st.integers(0, 14))
def test_cuts_and_safe_boundaries_leave_the_pretokens_as_they_are(
    name: str, text: str, end: int
) -> None:
    scheme = get_scheme(name)
    compiled, whole = scheme.compiled, scheme.split_text(text)
    assert compiled is not None
    letters = text.translate(compiled.atoms)
    cuts = [match.start() for match in re.finditer(compiled.cut_pattern or "(?!)", letters)]
    for cut in [*cuts, *compiled.safe_boundaries(text[:end])]:
        assert scheme.split_text(text[:cut]) + scheme.split_text(text[cut:]) == whole
        assert cut in accumulate(map(len, whole))


def test_published_schemes_have_many_certain_cuts() -> None:
    for name in NAMED:
        compiled = get_scheme(name).compiled
        assert compiled
        found = re.findall(
            compiled.cut_pattern, "it was a night; and so on\n".translate(compiled.atoms)
        )
        assert len(found) >= 4, name


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        (r"(a)\1", repr(r"\1")),
        (r"(?<=a)b", "'(?<'"),
        (r"a(?=bc)", "a look at more than one character"),
        (r"\w+", repr(r"\w")),
        (r"(?i:é)", "more than ASCII"),
        (r"(?i:mass)", "one where case is ignored"),
        (r"a++a", "a possessive repeat"),
        (r"(?:a++|b)+", "a possessive repeat in a repeat"),
        (r"a+$", "'$'"),
        (r"[[:alpha:]]", "a class by name"),
        (r"\p{Script=Greek}", repr(r"\p")),
        (r"(?V1)[a--b]", "'--'"),
        (r"(?#c)a", "'(?#'"),
        (r"(?:" * 60 + "a" + ")" * 60, "groups in groups"),
    ],
)
def test_what_automata_do_not_take_is_named(pattern: str, part: str) -> None:
    with pytest.raises(UnsupportedPatternError, match=re.escape(part)):
        parse_pattern(pattern)
    assert compile_chain((Step(pattern, "isolated"),)) is None


@pytest.mark.parametrize("pattern", ["a*", "(?=b)", "(?:a?){3}", "(?:a{300}){300}"])
def test_patterns_that_find_nothing_or_too_much_are_not_compiled(pattern: str) -> None:
    assert compile_chain((Step(pattern, "isolated"),)) is None


def test_a_pattern_that_looks_again_and_again_ends_with_an_error() -> None:
    native = pytest.importorskip("bpe._native")
    from bpe.backends.native_backend import _find_scan

    scan = _find_scan(get_scheme("regex:(?:ab)*d|a|b"))
    with pytest.raises(SettingsError, match="again and again"):
        native.scan_ends(b"ab" * 40_000, scan, "scalar", batch=512)
    # Runs in no match are passed over at once.
    runs = _find_scan(get_scheme("regex:[^ ]+| +x"))
    assert native.scan_ends(b" " * 1_000_000 + b"y", runs, "scalar", batch=512).tolist() == [
        1_000_000,
        1_000_001,
    ]


def test_sets_of_code_points() -> None:
    letters, numbers = named_set("L"), named_set("N")
    assert letters
    assert numbers
    assert intersect(letters, numbers) == ()
    assert complement(complement(letters)) == letters
    assert union((single(1), single(2), single(4))) == ((1, 2), (4, 4))
    everything = union(named_set(name) or () for name in ("L", "M", "N", "P", "S", "Z", "C"))
    assert everything == ((0, 0x10FFFF),)
    assert named_set("Greek") is None
