"""Counting pre-tokens, and that documents cut at certain cuts have the counts of the whole."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe.backends.protocol import Backend
from bpe.counting import (
    CountMetadata,
    check_count_metadata,
    count_pretokens,
    read_count_metadata,
)
from bpe.errors import CountTableError, InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import SCHEME_NAMES, get_scheme
from schemas.word_counts import word_counts_schema

pytestmark = pytest.mark.usefixtures("backend")


def as_dict(table: pa.Table) -> dict[bytes, int]:
    return dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))


def test_table_of_one_document() -> None:
    table = count_pretokens(b"low lower low low\xff", "gpt2")
    assert as_dict(table) == {b" low": 2, b" lower": 1, b"low": 1, b"\xff": 1}
    assert table["word"].to_pylist() == sorted(table["word"].to_pylist())
    assert table.schema.types == [pa.binary(), pa.int64()]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()]
)
def test_arrays_of_every_kind(kind: pa.DataType) -> None:
    texts = pa.array(["a b", "", "a", " b"], kind)
    expected = {b"a": 2, b" b": 2}
    assert as_dict(count_pretokens(texts, "gpt2")) == expected
    assert as_dict(count_pretokens(pa.chunked_array([texts[:2], texts[2:]]), "gpt2")) == expected
    assert as_dict(count_pretokens(texts[1:3], "gpt2")) == {b"a": 1}
    assert as_dict(count_pretokens(texts[:0], "gpt2")) == {}


def test_documents_end_pre_tokens() -> None:
    assert as_dict(count_pretokens(pa.array(["ab ", "cd"]), "gpt2")) == {
        b"ab": 1,
        b" ": 1,
        b"cd": 1,
    }
    assert as_dict(count_pretokens(pa.array(["ab", "cd"]), "none")) == {b"ab": 1, b"cd": 1}


def test_first_positions_are_bytes_of_the_concatenation() -> None:
    texts = pa.array(["\u00e9 b", "b \u00e9"])
    table = count_pretokens(texts, "gpt2", first_positions=True)
    firsts = dict(zip(table["word"].to_pylist(), table["first"].to_pylist(), strict=True))
    assert firsts == {"\u00e9".encode(): 0, b" b": 2, b"b": 4, " \u00e9".encode(): 5}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", [*SCHEME_NAMES, r"regex:\w+"])
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(st.one_of(st.binary(max_size=20), st.text(max_size=20)), max_size=5))
def test_counts_are_those_of_split(
    backend: Backend, scheme: str, documents: list[bytes | str]
) -> None:
    data = [text.encode() if isinstance(text, str) else text for text in documents]
    words, counts, firsts = backend.count_words(
        pa.array(data, pa.large_binary()), get_scheme(scheme), first_positions=True, threads=2
    )
    expected: dict[bytes, list[int]] = {}
    position = 0
    for document in data:
        for piece in get_scheme(scheme).split(document):
            expected.setdefault(piece, [0, position])[0] += 1
            position += len(piece)
    assert firsts is not None
    found = zip(words.to_pylist(), counts.to_pylist(), firsts.to_pylist(), strict=True)
    assert list(found) == [(word, *expected[word]) for word in sorted(expected)]


def test_special_tokens_in_documents() -> None:
    texts = pa.array(["one<|x|>two one", "two"])
    as_text = count_pretokens(texts, "gpt2", special_tokens=["<|x|>"])
    assert as_dict(as_text)[b"<|"] == 1
    allowed = count_pretokens(
        texts, "gpt2", special_text="allow", special_tokens=["<|x|>"], first_positions=True
    )
    assert as_dict(allowed) == {b" one": 1, b"one": 1, b"two": 2}
    assert allowed["first"].to_pylist() == [11, 0, 8]
    with pytest.raises(InputError, match=r"document 0 .*'<\|x\|>' at byte 3"):
        count_pretokens(texts, "gpt2", special_text="reject", special_tokens=["<|x|>"])
    clean = count_pretokens("one", "gpt2", special_text="reject", special_tokens=["<|x|>"])
    assert as_dict(clean) == {b"one": 1}


def test_metadata_says_what_was_counted() -> None:
    table = count_pretokens("a", "o200k", special_text="allow", special_tokens=["<s>", "</s>"])
    expected = CountMetadata(
        "o200k", "16.0.0", special_text="allow", special_tokens=("<s>", "</s>")
    )
    assert read_count_metadata(table) == expected
    stored = table.schema.metadata
    assert stored[b"beam_bpe.schema"] == b"word_counts"
    assert stored[b"beam_bpe.version"] == b"1"
    assert stored[b"beam_bpe.special_tokens"] == b'["<s>", "</s>"]'
    check_count_metadata(expected, expected)


def test_table_has_the_schema_that_jobs_write() -> None:
    table = count_pretokens("a", "gpt2", first_positions=True)
    schema = word_counts_schema(
        scheme="gpt2",
        unicode_version="16.0.0",
        document_rule=read_count_metadata(table).document_rule,
        first_positions=True,
    )
    assert table.schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (CountMetadata("cl100k", "16.0.0"), ["scheme", "'gpt2'", "'cl100k'"]),
        (CountMetadata("gpt2", "17.0.0"), ["unicode_version", "'16.0.0'", "'17.0.0'"]),
        (CountMetadata("gpt2", "16.0.0", "lines"), ["document_rule", "'lines'"]),
        (CountMetadata("gpt2", "16.0.0", special_text="allow"), ["special_text", "'allow'"]),
        (CountMetadata("gpt2", "16.0.0", special_tokens=("<s>",)), ["special_tokens", "<s>"]),
    ],
)
def test_a_mismatch_is_named(other: CountMetadata, words: list[str]) -> None:
    found = read_count_metadata(count_pretokens("a", "gpt2"))
    with pytest.raises(CountTableError) as caught:
        check_count_metadata(found, other)
    assert all(word in str(caught.value) for word in words)


def test_tables_of_another_kind_are_refused() -> None:
    with pytest.raises(CountTableError, match=r"beam_bpe.schema.*missing"):
        read_count_metadata(pa.table({"word": [b"a"], "count": [1]}))
    table = count_pretokens("a", "gpt2")
    newer = table.schema.metadata | {b"beam_bpe.version": b"2"}
    with pytest.raises(CountTableError, match=r"beam_bpe.version.*'2'"):
        read_count_metadata(table.replace_schema_metadata(newer))
    damaged = table.schema.metadata | {b"beam_bpe.special_tokens": b"["}
    with pytest.raises(CountTableError, match="damaged"):
        read_count_metadata(table.replace_schema_metadata(damaged))


def test_inputs_that_cannot_be_used() -> None:
    with pytest.raises(SettingsError, match="'skip'"):
        count_pretokens("a", "gpt2", special_text="skip")
    with pytest.raises(InputError, match="index 1"):
        count_pretokens("a\udcff", "gpt2")
    with pytest.raises(InputError, match=r"\[1\] is null"):
        count_pretokens(pa.array(["a", None]), "gpt2")
    with pytest.raises(InputError, match=r"texts\[0\] is of type int"):
        count_pretokens([1], "gpt2")  # type: ignore[list-item]


def marks_of(size: int) -> list[int]:
    """All marks of a short document; around the ends and the middle of a long one."""
    if size <= 2000:
        return list(range(1, size))
    middle = size // 2
    return [*range(1, 20), *range(middle - 20, middle + 20), *range(size - 20, size)]


def cut_everywhere(finder: CutFinder, data: bytes) -> list[bytes]:
    cuts = [0]
    while (cut := finder.first_cut(data, cuts[-1], final=True)) is not None:
        cuts.append(cut)
    return [data[start:end] for start, end in pairwise([*cuts, len(data)])]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", SCHEME_NAMES)
def test_nasty_inputs_cut_by_marks_have_the_counts_of_the_whole(
    data_dir: Path, scheme: str
) -> None:
    finder = CutFinder(get_scheme(scheme))
    cut_inputs = 0
    for line in (data_dir / "cases" / "nasty_inputs.jsonl").read_text().splitlines():
        data = base64.b64decode(json.loads(line)["b64"]) if line else b""
        cuts = {finder.first_cut(data, mark, final=True) for mark in marks_of(len(data))}
        whole = as_dict(count_pretokens(data, scheme))
        pieces = pa.array(cut_everywhere(finder, data), pa.binary())
        assert as_dict(count_pretokens(pieces, scheme)) == whole
        for cut in cuts - {None}:
            pieces = pa.array([data[:cut], data[cut:]], pa.binary())
            assert as_dict(count_pretokens(pieces, scheme)) == whole, (data, cut)
        cut_inputs += cuts not in (set(), {None})
    # Without a pre-tokenizer there are no cuts; superbpe has them after the ends of lines alone.
    assert cut_inputs > {"none": -1, "superbpe": 5}.get(scheme, 40)


@pytest.mark.parametrize("scheme", ["cl100k", "o200k", "llama3", "gpt2"])
@pytest.mark.parametrize(
    "unit", ["7", "'s", "'re", "a", "=", "ha", " ", "\r\n", "x's", "\u4e2dA", "e\u0301"]
)
def test_long_runs_cut_at_safe_boundaries_have_the_counts_of_the_whole(
    scheme: str, unit: str
) -> None:
    data = (unit * 3000).encode()
    finder = CutFinder(get_scheme(scheme))
    whole = as_dict(count_pretokens(data, scheme))
    for offset in range(9):
        boundary = finder.last_safe_boundary(data[: len(data) // 2 + offset])
        if boundary is not None:
            pieces = pa.array([data[:boundary], data[boundary:]], pa.binary())
            assert as_dict(count_pretokens(pieces, scheme)) == whole, boundary
