"""Documents and their pieces do not depend on how the input is cut, packed or read."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe.errors import BadFileError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus import cut_documents
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import Unit, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from schemas.documents import DOCUMENT_PIECES

SCHEMES = ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "none", r"regex:\w+|\W"]

MIXED = (
    "Hello world, it's 1234567 o'clock!  \n\nwe're 'sfoo's \r\n\r\n  x1 aa==bb é日本語 🎉🎉 \u00a0"
    "\u0301e\u0301 ſ's'S //\n\n\t\tend   "
).encode() + b"\xff\xfe caf\xc3 \xe2\x82"

shared_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


def pack(data: bytes, compression: str) -> bytes:
    if compression == "gz":
        return gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])
    if compression == "zst":
        frame = zstandard.ZstdCompressor().compress
        return frame(data[: len(data) // 2]) + frame(data[len(data) // 2 :])
    return data


def write(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(pack(data, name.rpartition(".")[2]))
    return str(path)


def read(
    patterns: Iterable[str],
    scheme: str = "gpt2",
    specials: tuple[bytes, ...] = (),
    rejects: list[Rejects] | None = None,
    unit_bytes: int = 1,
    **options: Any,
) -> list[dict[str, Any]]:
    """All pieces of some files as rows, after the checks that hold for any input."""
    read_options = ReadOptions(**options)
    plan = make_plan(list_inputs(list(patterns), read_options), read_options, unit_bytes=unit_bytes)
    finder = CutFinder(get_scheme(scheme), specials)
    found: list[dict[str, Any]] = []
    for unit in plan.units:
        sink = Rejects(unit, read_options)
        for batch in read_unit(Unit.from_json(unit.to_json()), read_options, finder, sink):
            assert batch.schema.equals(DOCUMENT_PIECES, check_metadata=True)
            assert batch.num_rows
            batch.validate(full=True)
            found += batch.to_pylist()
        if rejects is not None:
            rejects.append(sink)
    check_pieces(found)
    return found


def check_pieces(pieces: list[dict[str, Any]]) -> None:
    """Pieces of a document follow each other, the first and last are marked, and parts rise."""
    previous: dict[str, Any] | None = None
    for piece in pieces:
        if piece["is_first"]:
            assert previous is None or previous["is_last"]
            assert piece["part"] == 0
        else:
            assert previous is not None
            assert previous["document_id"] == piece["document_id"]
            assert previous["byte_start"] + len(previous["text"]) == piece["byte_start"]
            assert previous["part"] <= piece["part"]
        previous = piece
    assert previous is None or previous["is_last"]


def documents(pieces: list[dict[str, Any]]) -> list[tuple[str, int, bytes]]:
    """Id, position and text of each document, put together again."""
    found: list[tuple[str, int, bytes]] = []
    for piece in pieces:
        if piece["is_first"]:
            found.append((piece["document_id"], piece["byte_start"], b""))
        name, start, text = found[-1]
        found[-1] = (name, start, text + piece["text"])
    return found


def texts(pieces: list[dict[str, Any]]) -> list[bytes]:
    return [text for _, _, text in documents(pieces)]


def pretokens(pieces: list[dict[str, Any]], scheme: str) -> list[bytes]:
    split = get_scheme(scheme).split
    return [word for piece in pieces for word in split(piece["text"])]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_text_file_has_the_same_pretokens_for_every_range_size(
    scheme: str, tmp_path: Path
) -> None:
    path = write(tmp_path, "a.txt", MIXED)
    expected = get_scheme(scheme).split(MIXED)
    for range_bytes in range(1, len(MIXED) + 2):
        pieces = read([path], scheme, range_bytes=range_bytes)
        assert documents(pieces) == [("0:0", 0, MIXED)]
        assert pretokens(pieces, scheme) == expected


@pytest.mark.one_in(5)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("look_bytes", [8, 1 << 16])
def test_pieces_are_the_same_for_any_units_and_packing(
    scheme: str, look_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_documents, "LOOK_BYTES", look_bytes)
    data = MIXED + b"1" * 150 + b"a" * 100 + MIXED + b" " * 90 + b"'s" * 50 + MIXED
    plain = write(tmp_path, "a.txt", data)
    packed = write(tmp_path, "a.txt.gz", data)
    for range_bytes in (5, 16, 100, 1000):
        pieces = [
            {**piece, "source": "a.txt"}
            for piece in read([packed], scheme, range_bytes=range_bytes)
        ]
        for unit_bytes in (1, 1 << 30):
            assert pieces == read([plain], scheme, range_bytes=range_bytes, unit_bytes=unit_bytes)
        assert pretokens(pieces, scheme) == get_scheme(scheme).split(data)


@shared_folder
@given(
    st.text(st.sampled_from("ab1 \n\r'sé日\u0301=/"), max_size=80),
    st.sampled_from(SCHEMES),
    st.integers(1, 30),
    st.integers(4, 40),
)
def test_any_text_has_the_same_pretokens_for_any_range_size(
    tmp_path: Path, text: str, scheme: str, range_bytes: int, look_bytes: int
) -> None:
    data = text.encode() + b"."
    path = write(tmp_path, "a.txt", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_documents, "LOOK_BYTES", look_bytes)
        pieces = read([path], scheme, range_bytes=range_bytes)
    assert texts(pieces) == [data]
    assert pretokens(pieces, scheme) == get_scheme(scheme).split(data)


@shared_folder
@given(st.lists(st.sampled_from(["<|x|>", "a ", "1", " b", "<|", "|>", "."]), max_size=30))
def test_no_piece_border_lies_inside_a_special_token(tmp_path: Path, words: list[str]) -> None:
    special = b"<|x|>"
    data = "".join(words).encode() + b"."
    path = write(tmp_path, "a.txt", data)
    places = [start for start in range(len(data)) if data.startswith(special, start)]
    for range_bytes in (1, 2, 3, 7):
        pieces = read([path], "gpt2", (special,), range_bytes=range_bytes)
        assert texts(pieces) == [data]
        borders = {piece["byte_start"] for piece in pieces}
        assert not any(borders & set(range(place + 1, place + 5)) for place in places)


@pytest.mark.parametrize("look_bytes", [5, 1 << 16])
def test_a_document_that_ends_with_a_range_has_the_same_pieces_everywhere(
    look_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_documents, "LOOK_BYTES", look_bytes)
    for digits in range(1, 40):
        data = b"ab cd " + b"7" * digits
        plain = write(tmp_path, "a.txt", data)
        packed = write(tmp_path, "a.txt.gz", data)
        pieces = [
            [(piece["byte_start"], piece["part"]) for piece in read([path], "cl100k", **options)]
            for path in (plain, packed)
            for options in ({"range_bytes": 4, "unit_bytes": 1}, {"range_bytes": 4})
        ]
        assert all(other == pieces[0] for other in pieces)


def test_long_ranges_without_cuts_come_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    data = b"7" * 30_000 + b" word" + b"3" * 20_000
    path = write(tmp_path, "a.txt", data)
    pieces = read([path], "cl100k", range_bytes=1000)
    assert texts(pieces) == [data]
    assert max(len(piece["text"]) for piece in pieces) <= 2000
    assert pretokens(pieces, "cl100k") == get_scheme("cl100k").split(data)


def test_short_pieces_do_not_keep_what_was_read_around_them() -> None:
    source = io.BytesIO(MIXED * 200)
    found = list(
        cut_documents.cut_pieces(
            source.read,
            CutFinder(get_scheme("gpt2")),
            name="a",
            document_start=0,
            start=0,
            stop=None,
            range_bytes=1000,
            max_bytes=1 << 20,
        )
    )
    assert b"".join(piece.text for piece in found) == source.getvalue()
    assert all(len(piece.text.obj) <= 2 * len(piece.text) for piece in found)


def test_a_range_that_cannot_be_divided_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", b"some words, then " + b"a" * 5000)
    with pytest.raises(SettingsError, match=r"--max-row-bytes=1000.*a\.txt.*byte 16"):
        read([path], "gpt2", range_bytes=10, max_row_bytes=1000)
    with pytest.raises(BadFileError, match=r"a\.txt.*byte 0 .*--max-row-bytes=1000"):
        read([path], "none", range_bytes=10, max_row_bytes=1000)
    rejects: list[Rejects] = []
    assert not read([path], "none", rejects=rejects, max_row_bytes=9, on_bad_file="skip")
    assert rejects[0].counts == {"bad_file": 1}
    assert len(read([path], "none", max_row_bytes=5017)) == 1


LINES = b"\xef\xbb\xbffirst\nsecond\r\n\n\rx\r\r\n  \nl\xc3\xa4st\x00"
LINE_TEXTS = [b"\xef\xbb\xbffirst", b"second", b"", b"\rx\r", b"  ", b"l\xc3\xa4st\x00"]


@pytest.mark.parametrize("suffix", ["txt", "gz", "zst"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r"])
def test_lines_are_the_same_for_every_range_size(suffix: str, end: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, f"a.{suffix}", LINES + end)
    expected = [*LINE_TEXTS[:-1], LINE_TEXTS[-1] + (end if end == b"\r" else b"")]
    for range_bytes in range(1, len(LINES) + 2):
        pieces = read([path], input_format="lines", range_bytes=range_bytes)
        assert texts(pieces) == expected
        for name, start, text in documents(pieces):
            assert name == f"0:{start}"
            assert (LINES + end)[start:].startswith(text)


separated = st.lists(st.sampled_from([b"\n", b"\n\n", b"a", b"bb b", b"=="]), max_size=25)


@shared_folder
@given(separated.map(b"".join), st.sampled_from([b"\n\n", b"==", b"a", b"\n"]), st.integers(1, 40))
def test_separated_documents_are_the_same_for_any_range_size(
    tmp_path: Path, data: bytes, separator: bytes, range_bytes: int
) -> None:
    data += b"."
    for scheme in ("gpt2", "none"):
        for name in ("a.txt", "a.txt.zst"):
            pieces = read(
                [write(tmp_path, name, data)],
                scheme,
                document_separator=separator,
                range_bytes=range_bytes,
            )
            assert texts(pieces) == data.split(separator)
            assert all(data.startswith(text, start) for _, start, text in documents(pieces))


def test_a_long_separated_document_comes_in_pieces(tmp_path: Path) -> None:
    long = b"some words " * 500
    data = b"one\n\n" + long + b"\n\nthree"
    path = write(tmp_path, "a.txt", data)
    for range_bytes in (16, 100, 1000):
        pieces = read([path], document_separator=b"\n\n", range_bytes=range_bytes)
        assert texts(pieces) == [b"one", long, b"three"]
        longest = max(len(piece["text"]) for piece in pieces)
        assert longest <= range_bytes + len(b"some words ")
        split = get_scheme("gpt2").split
        assert pretokens(pieces, "gpt2") == [b"one", *split(long), b"three"]


ROWS: list[dict[str, Any]] = [
    {"text": "plain", "id": 7},
    {"id": "é", "text": 'esc"\\\n\u0000 🎉', "more": [1, {"text": "inner"}]},
    {"id": -1, "text": ""},
    {"text": " ", "id": 2**70},
]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_json_lines_are_the_same_for_every_range_size(suffix: str, tmp_path: Path) -> None:
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(ROWS)]
    data = b"\xef\xbb\xbf" + "\n".join([lines[0], "", lines[1] + "\r", " \t", *lines[2:]]).encode()
    path = write(tmp_path, f"a.jsonl{suffix}", data)
    for range_bytes in range(1, len(data) + 2, 1 if suffix == "" else 50):
        rejects: list[Rejects] = []
        pieces = read([path], rejects=rejects, range_bytes=range_bytes, id_field="id")
        assert [(piece["document_id"], piece["text"].decode()) for piece in pieces] == [
            (str(row["id"]), row["text"]) for row in ROWS
        ]
        assert sum(sink.accepted["blank_line"] for sink in rejects) == 2
        assert sum(sink.accepted["bom"] for sink in rejects) == 1
        assert sum(sink.documents_in for sink in rejects) == 4


def test_a_field_may_lie_inside_objects(tmp_path: Path) -> None:
    row = {"doc": {"body": {"text": "in"}, "id": 3}, "text": "out"}
    path = write(tmp_path, "a.jsonl", json.dumps(row).encode())
    pieces = read([path], text_field="doc.body.text", id_field="doc.id")
    assert documents(pieces) == [("3", 0, b"in")]
    assert documents(read([path], text_field="text", id_field="text")) == [("out", 0, b"out")]


def test_files_of_all_kinds_keep_their_order_and_names(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", b"text")
    write(tmp_path, "b.jsonl", b'{"text": "row"}\n{"text": "two"}\n')
    (tmp_path / "c").mkdir()
    write(tmp_path / "c", "d.md.gz", b"deep")
    (tmp_path / "e.txt").touch()
    pieces = read([f"{tmp_path}/**"], unit_bytes=1 << 30)
    assert [(piece["source"], piece["document_id"], piece["text"]) for piece in pieces] == [
        ("a.txt", "0:0", b"text"),
        ("b.jsonl", "1:0", b"row"),
        ("b.jsonl", "1:16", b"two"),
        ("c/d.md.gz", "2:0", b"deep"),
        ("e.txt", "3:0", b""),
    ]


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_an_empty_file_of_rows_has_no_documents(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    write(tmp_path, "b.jsonl", b'{"text": "row"}')
    options: dict[str, Any] = {} if name == "a.jsonl" else {"document_separator": b"x"}
    assert texts(read([f"{tmp_path}/*"], **options)) == [b"row"]


def test_empty_documents_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", b"one\n\n\ntwo\n")
    for empty, expected in (("keep", [b"one", b"", b"", b"two"]), ("drop", [b"one", b"two"])):
        rejects: list[Rejects] = []
        pieces = read([path], rejects=rejects, input_format="lines", empty=empty)
        assert texts(pieces) == expected
        assert rejects[0].documents_in == 4
        assert rejects[0].accepted["empty"] == 2
        assert rejects[0].accepted["dropped_empty"] == 4 - len(expected)


def test_many_small_documents_come_in_few_batches(tmp_path: Path) -> None:
    for number in range(50):
        write(tmp_path, f"{number:02d}.txt", b"x" * number)
    options = ReadOptions()
    plan = make_plan(list_inputs([f"{tmp_path}/*"], options), options)
    finder = CutFinder(get_scheme("gpt2"))
    batches: list[pa.RecordBatch] = []
    for unit in plan.units:
        batches += read_unit(unit, options, finder, Rejects(unit, options))
    assert sum(batch.num_rows for batch in batches) == 50
    assert len(batches) == len(plan.units) == 1
