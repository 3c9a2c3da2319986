"""Normal forms are Unicode 16's, whatever Python's own are, and the same natively."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bpe.pretokenizing.normalization_tables
from bpe import SettingsError
from bpe.pretokenizing.normalization import FORMS, normalize, normalize_array
from bpe.pretokenizing.normalization_tables import COMBINING, DECOMPOSITIONS, EXCLUSIONS, LATER

NORMAL_FORMS = FORMS[:4]
many = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# Around a character: marks of lower and higher class, a starter, and jamo on both sides.
FRAMES = ("a\u0301%s\u0323\u0334", "\u1100%s\u11a8", "\u05d0\u05bc%s\u05b7", "%s%s")
# Starters that compose with what comes before them, and composites that begin with such ones.
BACKWARD = (
    "\u0b57\u0dcf\u1b35\U0001611e\U0001611f\U00016121\U00016129\U00016d63\U00016d67\U00016d68"
)
MARKS = "\u0300\u0301\u0308\u0316\u0323\u0327\u0334\u0345\u05b0\u05bc\u093c\u0f71\u3099\u0897"
SINGLE = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def of_text(form: str, text: str, version: str = "16.0.0") -> str:
    return normalize(form, text.encode(), version).decode()


def expected(form: str, text: str) -> str:
    unicodedata2 = pytest.importorskip("unicodedata2")
    assert unicodedata2.unidata_version == "16.0.0"
    found: str = unicodedata2.normalize(form, text)
    return found


def code_points(word: str) -> range:
    first, _, last = word.partition("-")
    return range(int(first, 16), int(last or first, 16) + 1)


def touched() -> list[str]:
    """Every character that the tables name, and some that they do not."""
    found = set(BACKWARD + "a가각\u1100\u1161\u11a7\u11a8\U00010400文\U000e0001\ufdfa")
    for ranges in (*COMBINING.values(), EXCLUSIONS, LATER, DECOMPOSITIONS):
        for word in ranges.split():
            found |= set(map(chr, code_points(word.partition("=")[0])))
    return sorted(found)


def in_frames() -> list[str]:
    return [frame.replace("%s", each) for each in touched() for frame in FRAMES]


def check_lines(form: str, texts: list[str], wanted: str, version: str = "16.0.0") -> None:
    """Compare many texts in one call, and show the first alone that differs."""
    found = of_text(form, "\n".join(texts), version)
    if found != wanted:
        lines = zip(texts, found.split("\n"), wanted.split("\n"), strict=False)
        wrong = [line for line in lines if line[1] != line[2]]
        pytest.fail(f"{len(wrong)} differ, the first: {wrong[:1]!a}")


def test_tables_are_what_the_generator_makes() -> None:
    pytest.importorskip("unicodedata2")
    from bpe.pretokenizing import generate_normalization_tables as generator

    data = generator.collect()
    folder = Path(bpe.pretokenizing.normalization_tables.__file__).parent
    remedy = "run python -m bpe.pretokenizing.generate_unicode_tables"
    module = (folder / "normalization_tables.py").read_text("ascii")
    assert module == generator.render_module(data, "16.0.0"), remedy
    header = (folder.parent / "native/scan/normalization_tables.h").read_text("ascii")
    assert header == generator.render_header(data, "16.0.0"), remedy


@pytest.mark.usefixtures("backend")
def test_a_mark_that_python_may_not_know_is_a_mark() -> None:
    # U+0897 was assigned in Unicode 16, with combining class 230.
    assert of_text("NFC", "a\u0897\u0323") == "\u1ea1\u0897"
    assert of_text("NFC", "a\u0897\u0323", "9.0.0") == "a\u0897\u0323"


@pytest.mark.one_in(5)
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_every_character_alone_and_among_marks(form: str) -> None:
    # Between line feeds, with which nothing composes, so that the characters do not meet.
    alone = [chr(c) for c in SINGLE]
    check_lines(form, alone, expected(form, "\n".join(alone)))
    frames = in_frames()
    check_lines(form, frames, expected(form, "\n".join(frames)))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_random_texts_of_what_normalization_is_about(form: str) -> None:
    draw = random.Random(16)
    pool = touched()
    texts = [
        "".join(
            draw.choice(draw.choice((MARKS, BACKWARD, pool, "aeouA", "\u1100\u1161\u11a8각가")))
            for _ in range(draw.randrange(9))
        )
        for _ in range(3000)
    ]
    column = pa.array([text.encode() for text in texts], pa.large_binary())
    found = [data.decode() for data in normalize_array(form, column).to_pylist()]
    assert found == [expected(form, text) for text in texts]


characters = st.one_of(st.characters(codec="utf-8"), st.sampled_from(MARKS + BACKWARD + "aeo"))


@pytest.mark.usefixtures("backend")
@given(text=st.text(characters, max_size=12), form=st.sampled_from(NORMAL_FORMS))
@example("\u0344", "NFC")
@example("\U00016d63\U00016d67\U00016d67", "NFC")
@many
def test_any_text(text: str, form: str) -> None:
    found = of_text(form, text)
    assert found == expected(form, text)
    assert of_text(form, found) == found


@given(
    parts=st.lists(st.binary(max_size=3) | st.text(characters, max_size=3).map(str.encode)),
    form=st.sampled_from(FORMS),
    version=st.sampled_from(("16.0.0", "9.0.0")),
)
@many
def test_the_core_does_with_any_bytes_what_python_does(
    monkeypatch: pytest.MonkeyPatch, parts: list[bytes], form: str, version: str
) -> None:
    pytest.importorskip("bpe._native")
    texts = [b"".join(parts), *parts]
    found = []
    for backend in ("python", "native"):
        monkeypatch.setenv("BPE_BACKEND", backend)
        column = pa.array([b"x", *texts], pa.large_binary()).slice(1)
        found.append([normalize(form, text, version) for text in texts])
        assert normalize_array(form, column, version).to_pylist() == found[-1]
    assert found[0] == found[1]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (b"e\xff\xcc\x81", b"e\xff\xcc\x81"),
        (b"e\xcc\x81\xff\xcc\x81", b"\xc3\xa9\xff\xcc\x81"),
        (b"a\xe0\xa2\x97\xcc\x80\xcc\xa3\xcc", b"\xe1\xba\xa1\xe0\xa2\x97\xcc\x80\xcc"),
        (b"\xed\xa0\x80\xcc\x81", b"\xed\xa0\x80\xcc\x81"),
        (b"e\xcc\x81" * 3 + b"\xf4\x90\x80\x80", b"\xc3\xa9" * 3 + b"\xf4\x90\x80\x80"),
    ],
)
def test_invalid_bytes_take_no_part(text: bytes, normal: bytes) -> None:
    assert normalize("NFC", text) == normal


@pytest.mark.usefixtures("backend")
def test_a_long_run_of_marks_takes_no_quadratic_time() -> None:
    # Descending classes: the worst for sorting by insertion, which would take hours.
    run = "\u0301" * 150_000 + "\u0323" * 150_000 + "\u0334" * 150_000
    assert (of_text("NFD", f"x{run}b") == f"x{run[::-1]}b") is True
    assert (of_text("NFC", f"x{run}b") == f"x{run[::-1]}b") is True


@pytest.mark.usefixtures("backend")
def test_an_array_without_change_is_the_array_itself() -> None:
    column = pa.array([b"", "é".encode(), b"\xff"], pa.large_binary())
    found = normalize_array("NFC", column)
    assert found.equals(column)
    changed = pa.array(["é".encode(), b"e\xcc\x81", b"", b"z"], pa.large_binary())
    assert normalize_array("NFC", changed).to_pylist() == ["é".encode(), "é".encode(), b"", b"z"]


# ---- lower case, and the library ------------------------------------------------------------


@pytest.mark.usefixtures("backend")
def test_each_character_is_made_lower_by_itself() -> None:
    assert of_text("Lowercase", "ΑΣ. ΣΑΣ İ ẞ Ⱥ Ω ＡΩ") == "ας. σας i̇ ß ⱥ ω ａω".replace("ς", "σ")
    assert normalize("Lowercase", b"AZ\xffAZ[") == b"az\xffaz["


@pytest.mark.usefixtures("backend")
def test_every_character_has_the_lower_case_of_the_library() -> None:
    normalizers = pytest.importorskip("tokenizers.normalizers")
    unicodedata2 = pytest.importorskip("unicodedata2")
    assigned = [chr(c) for c in SINGLE if unicodedata2.category(chr(c)) != "Cn"]
    library = normalizers.Lowercase()
    # Of what was assigned after Unicode 16 the library knows some: its version grows with each
    # release. Case pairs never change, so that the rest is the same in all.
    check_lines("Lowercase", assigned, library.normalize_str("\n".join(assigned)))
    later = "".join(chr(c) for c in SINGLE if unicodedata2.category(chr(c)) == "Cn")
    assert (of_text("Lowercase", later) == later) is True


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("form", NORMAL_FORMS)
def test_releases_0_22_and_0_23_of_the_library_normalize_by_unicode_9(form: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    if not tokenizers.__version__.startswith(("0.22.", "0.23.")):
        pytest.skip("another release of tokenizers; its Unicode version is not recorded here")
    library = getattr(tokenizers.normalizers, form)()
    texts = in_frames()
    wanted = library.normalize_str("\n".join(texts))
    check_lines(form, texts, wanted, "9.0.0")
    # The difference to Unicode 16 is made by characters that were assigned since, and no others.
    later = {chr(c) for word in LATER.split() for c in code_points(word)}
    lines = zip(wanted.split("\n"), expected(form, "\n".join(texts)).split("\n"), strict=True)
    differing = {old + new for old, new in lines if old != new}
    assert differing
    assert all(later & set(each) for each in differing)


def test_unknown_forms_and_versions_are_refused() -> None:
    with pytest.raises(SettingsError, match="'NFX' is not known: use one of NFC, NFD"):
        normalize("NFX", b"")
    with pytest.raises(SettingsError, match=r"'15.1' has no tables here: use one of 16\.0\.0, 9"):
        normalize("NFC", b"", "15.1")
