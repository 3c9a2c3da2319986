"""The scan of JSON rows: what it is sure of, msgspec reads too, and to the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.jsonl import json_rows

Found = tuple[list[bytes], list[str] | None] | None

many = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pipelines._io")
    monkeypatch.setenv("BPE_BACKEND", "native")


def scan(rows: Sequence[bytes], text: str = "text", id_: str = "") -> Found:
    ends = np.cumsum([len(row) + 1 for row in rows])
    starts = ends - [len(row) + 1 for row in rows]
    paths = {"text": text.split("."), "id_": id_.split(".") if id_ else []}
    found = json_rows.scan_json_rows(b"\n".join(rows) + b"\n", starts, ends - 1, **paths)
    if found is None:
        return None
    return found[0].to_pylist(), found[1].to_pylist() if found[1] is not None else None


class Row(msgspec.Struct):
    text: str
    id: str | int


def read(row: bytes) -> tuple[bytes, str] | None:
    """What msgspec makes of a row."""
    try:
        found = msgspec.json.decode(row, type=Row)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found.text.encode(), str(found.id)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
integers = st.integers() | st.integers(-(10**40), 10**40)
documents = st.fixed_dictionaries(
    {"text": st.text(max_size=40), "id": st.text('ab"\\\n1é', max_size=5) | integers},
    optional={"meta": values, "": values, "texts": values, "i": values},
)


@many
@given(documents, st.sampled_from([False, True]), st.sampled_from([None, 1]))
def test_usual_rows_give_what_msgspec_reads(row: Any, is_ascii: Any, indent: Any) -> None:
    written = json.dumps(row, ensure_ascii=is_ascii, indent=indent).replace("\n", " \t").encode()
    found = scan([written, written], id_="id")
    if found is not None:
        assert found == ([row["text"].encode()] * 2, [str(row["id"])] * 2)
    id_ = str(row["id"])
    plain_id = id_.isalnum() and id_.isascii() and len(id_) <= 1000
    escapes_in_names = any("\\" in json.dumps(name, ensure_ascii=is_ascii) for name in _names(row))
    if plain_id and not escapes_in_names:
        assert found is not None


@pytest.mark.parametrize("sign", [b"", b"-"])
@pytest.mark.parametrize("digits", [18, 19, 20, 999, 1000, 1001])
def test_integers_are_ids_as_they_are_written(digits: int, sign: bytes) -> None:
    id_ = sign + b"9" * digits
    row = b'{"text": "a", "id": ' + id_ + b"}"
    assert read(row) == (b"a", id_.decode())
    assert scan([row], id_="id") == (([b"a"], [id_.decode()]) if len(id_) <= 1000 else None)


def _names(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for inner in value.values() for name in _names(inner))]
    return [name for inner in value for name in _names(inner)] if isinstance(value, list) else []


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b" ",
    b"\\",
    b"\\u",
    b"d8",
    b"00",
    b"\\ud83d\\ude00",
]
PIECES += [
    b'"text"',
    b'"id"',
    b'"a"',
    b"1",
    b"0",
    b"-",
    b".",
    b"e",
    b"true",
    b"null",
    b"\t",
    b"\r",
    b"\x01",
]


@many
@given(
    documents,
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 3), st.sampled_from(PIECES)),
        min_size=1,
        max_size=3,
    ),
)
def test_what_is_sure_of_broken_rows_is_right(
    row: Any, edits: list[tuple[int, int, bytes]]
) -> None:
    written = json.dumps(row, ensure_ascii=False).encode()
    for place, removed, piece in edits:
        at = place % (len(written) + 1)
        written = written[:at] + piece + written[at + removed :]
    try:
        written.decode()
    except UnicodeDecodeError:
        return
    found = scan([written], id_="id")
    if found is not None:
        assert (found[0][0], found[1][0]) == read(written)


@pytest.mark.parametrize(
    "row",
    [
        b"",
        b"   ",
        b"[]",
        b'{"text":"a"} {}',
        b'{"text":"a"',
        b'{"text":"a",}',
        b'{"text":"a","text":"b"}',
        b'{"te\\u0078t":"a"}',
        b'{"text":null}',
        b'{"text":1}',
        b'{"other":"a"}',
        b'{"text":"a\x00"}',
        b'{"text":"a\tb"}',
        b'{"text":"\\ud800"}',
        b'{"text":"\\udc00\\ud800"}',
        b'{"text":"\\ud800\\u0041"}',
        b'{"text":"\\x41"}',
        b'{"text":"\\u12g4"}',
        b'{"text":"a',
        b'{"text":"a\\',
        b'{"text":"a\\u12',
        b'{"text":"a","b":01}',
        b'{"text":"a","b":1.}',
        b'{"text":"a","b":1e}',
        b'{"text":"a","b":-}',
        b'{"text":"a","b":nul}',
        b'{"text":"a","b":[1,]}',
        b'{"text":"a","b":' + b"[" * 70 + b"]" * 70 + b"}",
        b'\xef\xbb\xbf{"text":"a"}',
    ],
)
def test_doubtful_rows_are_for_the_parser(row: bytes) -> None:
    assert scan([row]) is None
    assert scan([b'{"text":"good"}', row]) is None


@pytest.mark.parametrize(
    "id_", [b"-0", b"1.0", b"1e3", b"true", b"null", b'"\\n"', b"1" * 1001, b"007"]
)
def test_doubtful_ids_are_for_the_parser(id_: bytes) -> None:
    assert scan([b'{"text":"a","id":' + id_ + b"}"], id_="id") is None
    assert scan([b'{"text":"a","other":"b","id":7}'], id_="id") == ([b"a"], ["7"])


def test_fields_in_objects() -> None:
    row = b'{"text":1,"doc":{"meta":{"key":-5},"text":"x","content":"\\n\\u00e9\\ud83d\\ude00"}} \r'
    assert scan([row], "doc.content", "doc.meta.key") == (["\né😀".encode()], ["-5"])
    assert scan([row], "content") is None
    assert scan([b'{"doc":{"content":"a"},"doc":{"content":"b"}}'], "doc.content") is None
    assert scan([b'{"doc":[{"content":"a"}]}'], "doc.content") is None
    assert scan([row], "doc", "doc.meta") is None


def test_every_character_and_length() -> None:
    texts = ["".join(map(chr, range(0xD800))), *("x" * size + '"\\' for size in range(70))]
    rows = [json.dumps({"text": text}).encode() for text in texts]
    assert scan(rows) == ([text.encode() for text in texts], None)


def test_the_python_backend_leaves_all_to_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BPE_BACKEND", "python")
    assert scan([b'{"text":"a"}']) is None
