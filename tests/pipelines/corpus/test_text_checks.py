"""Features of texts and places of bytes: the same natively as in Python, of any bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bpe.errors import InputError
from pipelines.corpus import text_checks

many = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
WHITE = text_checks._WHITE_SPACE


def counted(texts: list[bytes], whole: list[bool]) -> dict[str, int]:
    column = pa.array([b"before", *texts], pa.large_binary()).slice(1)
    return text_checks.count_text_features(column, np.array(whole, np.bool_))


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    pytest.importorskip("pipelines._io")
    return monkeypatch


CASES = [
    (b"", {"empty": 1}),
    (b"\0a\0", {"nul": 1}),
    (b"a" * 40 + b"\0", {"nul": 1}),
    (b"a\r", {"cr": 1}),
    (b"a\r\nb\r\n", {"crlf": 1}),
    (b"a" * 15 + b"\r\n" + b"a" * 15 + b"\r", {"cr": 1, "crlf": 1}),
    (b" \t\v", {"whitespace_only": 1}),
    ("\u2003\u3000\x85".encode(), {"whitespace_only": 1}),
    (b"\x1c", {}),
    (b"\xe2\x80", {"invalid_utf8": 1}),
    (b" \xe2\x80", {"invalid_utf8": 1}),
    (b"a" * 20 + b"\xff", {"invalid_utf8": 1}),
    (b"\xed\xa0\x80", {"invalid_utf8": 1}),
    (b"\xf4\x90\x80\x80", {"invalid_utf8": 1}),
    (b"\xc0\x80", {"invalid_utf8": 1}),
    ("a 🙂 ü 文".encode(), {}),
]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("text", "expected"), CASES)
def test_features_are_counted(text: bytes, expected: dict[str, int]) -> None:
    found = counted([b"plain", text, text], [True, True, True])
    assert {name: count for name, count in found.items() if count} == {
        name: 2 * count for name, count in expected.items()
    }


@pytest.mark.usefixtures("backend")
def test_parts_of_documents_are_neither_empty_nor_blank() -> None:
    found = counted([b"", b" ", b"\0"], [False, False, False])
    assert {name: count for name, count in found.items() if count} == {"nul": 1}


@pytest.mark.usefixtures("backend")
def test_a_character_between_two_texts_belongs_to_neither() -> None:
    assert counted([b"\xe2\x80", b"\xa8", b"\r", b"\n"], [True] * 4) == {
        "empty": 0,
        "whitespace_only": 2,
        "invalid_utf8": 2,
        "nul": 0,
        "cr": 1,
        "crlf": 0,
    }


pieces = st.lists(
    st.sampled_from([each.encode() for each in WHITE])
    | st.sampled_from(
        [b"\0", b"\r", b"\n", b"\r\n", b"a" * 17, b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
    )
    | st.binary(max_size=4)
    | st.text(max_size=4).map(lambda text: text.encode()),
    max_size=6,
)


@many
@given(st.lists(st.tuples(pieces.map(b"".join), st.booleans()), max_size=5))
def test_the_core_counts_what_python_does(
    in_python: pytest.MonkeyPatch, rows: list[tuple[bytes, bool]]
) -> None:
    found = []
    for backend in ("python", "native"):
        in_python.setenv("BPE_BACKEND", backend)
        found.append(counted([text for text, _ in rows], [whole for _, whole in rows]))
    assert found[0] == found[1]


@pytest.mark.exhaustive
def test_every_short_text_of_telling_bytes(in_python: pytest.MonkeyPatch) -> None:
    telling = [0x00, 0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0]
    telling += [0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]
    values = np.array(telling, np.uint8)
    grid = np.stack(np.meshgrid(*[values] * 4, indexing="ij"), -1).reshape(-1, 4)
    texts = [row.tobytes() for row in grid]
    found = []
    for backend in ("python", "native"):
        in_python.setenv("BPE_BACKEND", backend)
        found.append([counted([text], [True]) for text in texts])
    assert found[0] == found[1]


@pytest.mark.usefixtures("backend")
@given(data=st.binary(max_size=200), byte=st.sampled_from(b"\n\0a\xff"), start=st.integers(0, 210))
@example(data=b"\n" * 130, byte=10, start=0)
@example(data=b"\n" * 130, byte=10, start=63)
@many
def test_bytes_are_found(data: bytes, byte: int, start: int) -> None:
    expected = [place for place in range(start, len(data)) if data[place] == byte]
    found = text_checks.find_byte(data, byte, start)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def plain(strings: list[bytes]) -> bytes:
    return b"".join(len(each).to_bytes(4, "little") + each for each in strings)


@pytest.mark.usefixtures("backend")
@given(strings=st.lists(st.binary(max_size=300)), cut=st.integers(1, 300))
@many
def test_the_longest_of_strings_is_found(strings: list[bytes], cut: int) -> None:
    data = plain(strings)
    assert text_checks.longest_string(data) == max(map(len, strings), default=0)
    whole = [plain(strings[:count]) for count in range(len(strings) + 1)]
    if data[:-cut] not in whole:
        assert text_checks.longest_string(data[:-cut]) is None


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("data", [b"\0", b"\0\0\0\0\0", b"\xff\xff\xff\xffa", b"\2\0\0\0a"])
def test_what_are_no_strings_has_no_longest(data: bytes) -> None:
    assert text_checks.longest_string(data) is None
    assert text_checks.longest_string(pa.py_buffer(data)) is None


def test_there_is_a_mark_for_each_text(in_python: pytest.MonkeyPatch) -> None:
    in_python.setenv("BPE_BACKEND", "native")
    with pytest.raises(InputError, match="one mark for each"):
        counted([b"a"], [])
