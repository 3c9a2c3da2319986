"""Patterns that never end, or ask for memory without bound: an error that names them, soon."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest

from bpe import Tokenizer, count_pretokens, get_backend
from bpe.errors import BadRecordError, ModelFileError, SettingsError
from bpe.formats.golden import GoldenText
from bpe.formats.model_directory import replace_golden
from bpe.pretokenizing import user_patterns
from bpe.pretokenizing.schemes import get_scheme

# Tries 2^60 ways through 60 letters.
ENDLESS = r"(?:a|a)+[bc](?<=\w)"
TEXT = b"a" * 60


@pytest.fixture
def little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that the endless search reaches on any machine, and the others never."""
    monkeypatch.setattr(user_patterns, "_SECONDS", 0.2)


def make(pattern: str) -> Tokenizer:
    return Tokenizer.from_merges([(b"a", b"a")], pretokenizer=f"regex:{pattern}")


@pytest.mark.usefixtures("backend", "little_time")
def test_a_search_without_end_is_an_error_that_names_the_pattern() -> None:
    tokenizer = make(ENDLESS)
    assert tokenizer.encode(b"aaab aa").tolist() == [256, 64, 65, 220, 256]
    searches = (
        lambda: tokenizer.encode(TEXT),
        lambda: tokenizer.encode_batch(pa.array([b"x", TEXT])),
        lambda: count_pretokens(TEXT, f"regex:{ENDLESS}"),
        lambda: get_scheme(f"regex:{ENDLESS}").split(TEXT),
    )
    for search in searches:
        with pytest.raises(SettingsError, match=r"regex:\(\?:a\|a\)\+\[bc\].* 60 characters") as e:
            search()
        assert not isinstance(e.value, BadRecordError)


@pytest.mark.usefixtures("backend", "little_time")
def test_a_golden_text_without_end_names_its_line(tmp_path: Path) -> None:
    make(ENDLESS).save(tmp_path / "model")
    replace_golden(tmp_path / "model", [GoldenText(b"a", [64]), GoldenText(TEXT, [1])])
    with pytest.raises(ModelFileError, match=r"golden\.jsonl, line 2: .*\(\?:a\|a\)\+\[bc\]"):
        Tokenizer.load(tmp_path / "model")


@pytest.mark.usefixtures("little_time")
def test_a_compiled_search_has_an_end_in_the_core_and_its_name_in_errors() -> None:
    compiled = r"regex:(?:a|a)+[bc]"
    with pytest.raises(SettingsError, match=r"regex:\(\?:a\|a\)\+\[bc\]'.* 60 characters"):
        get_scheme(compiled).split(TEXT)
    get_backend("native")
    words, _, _ = get_backend("native").count_words(pa.array([TEXT]), get_scheme(compiled))
    assert words.to_pylist() == [TEXT]


def test_the_limit_grows_with_the_document() -> None:
    assert user_patterns.search_seconds(0) == 30
    assert user_patterns.search_seconds(10**6) == 130


def test_lack_of_memory_names_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy:
        def finditer(self, *_: object, **__: object) -> None:
            raise MemoryError

    monkeypatch.setattr(user_patterns, "_compile", lambda _: Greedy())
    with pytest.raises(SettingsError, match=r"'regex:a\+\(\?<=a\)': .*more memory than there is"):
        get_scheme("regex:a+(?<=a)").split(b"aa")


@pytest.mark.parametrize(
    "pattern",
    [
        "(?R)?a|(?0)",
        r"(a)(?1)",
        r"(?P<n>a)(?&n)",
        r"(?P<n>a)(?P>n)",
        r"(?x)(?P # n\n >n)(?P<n>a)",
        r"(?+1)(a)",
        r"(?x)(a)(?- 1)",
        r"\\(?R)?a",
        r"a|[\\\\](?0)",
    ],
)
def test_recursion_is_refused(pattern: str) -> None:
    with pytest.raises(SettingsError, match="recursion is not supported"):
        get_scheme(f"regex:{pattern}")


@pytest.mark.parametrize(
    "pattern",
    [r"\(?R\)?a", r"\(?1", r"(?P<n>a)(?P=n)", r"(a)?(?(1)b|c)", r"(?i:a)(?-i:b)", r"a(?#R)"],
)
def test_what_only_looks_like_recursion_is_accepted(pattern: str) -> None:
    assert b"".join(get_scheme(f"regex:{pattern}").split(b"abR(1)")) == b"abR(1)"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("|".join(f"x{number}" for number in range(100_000)), r"has 688,889 characters, and at mo"),
        ("(" * 2000 + ")" * 2000, "does not compile: maximum recursion"),
        ("a{99999999999999999999}", "counted repeats {m,n} have 999,999,999 parts"),
        ("((((a?){50}){50}){50}){50}b", "counted repeats {m,n} have 12,500,001 parts, and at most"),
        (r"(?:[\]{9}x]{2,400}\p{L}{3}){300}", "counted repeats {m,n} have 121,500 parts"),
        (r"\L<x>", "does not compile: undefined named list"),
    ],
)
def test_patterns_too_large_to_compile_are_refused_soon(pattern: str, message: str) -> None:
    started = time.process_time()
    with pytest.raises(SettingsError, match=message) as caught:
        get_scheme(f"regex:{pattern}")
    assert len(str(caught.value)) < 1000
    assert time.process_time() - started < 2


def test_a_split_of_many_alternatives_is_refused_with_the_file(tmp_path: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": "|".join(map(str, range(100_000)))}}
    path = tmp_path / "tokenizer.json"
    tokenizer = make(" ?a+")
    tokenizer.to_huggingface(path)
    document = json.loads(path.read_text())
    document["pre_tokenizer"]["pretokenizers"][0].update(split)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"tokenizer\.json: Split\.pattern: .*at most 10,000"):
        Tokenizer.from_huggingface(path)


def test_matches_from_right_to_left_are_refused() -> None:
    with pytest.raises(SettingsError, match="do not follow each other"):
        get_scheme("regex:(?r)a").split(b"abab")
