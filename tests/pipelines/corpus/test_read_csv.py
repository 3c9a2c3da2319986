"""CSV and TSV: rows and fields as Python's csv module finds them, wherever reads end."""

from __future__ import annotations

import csv
import gzip
import io
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bpe.errors import BadFileError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus import row_blocks
from pipelines.corpus.csv.csv_fields import FieldError, fields_of_row
from pipelines.corpus.csv.csv_rows import csv_rows, find_row_ends
from pipelines.corpus.listing.input_columns import check_columns
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.row_blocks import LongRow


def read(
    path: Path, rejects: list[Rejects] | None = None, **options: Any
) -> list[tuple[str, int, str]]:
    """Id, place and text of each document."""
    read_options = ReadOptions(**options)
    plan = make_plan(list_inputs([str(path)], read_options), read_options, unit_bytes=1)
    found: list[tuple[str, int, str]] = []
    assert len(plan.units) == 1
    for unit in plan.units:
        sink = Rejects(unit, read_options)
        for batch in read_unit(unit, read_options, CutFinder(get_scheme("gpt2")), sink):
            batch.validate(full=True)
            found += [
                (row["document_id"], row["byte_start"], row["text"].decode())
                for row in batch.to_pylist()
            ]
        if rejects is not None:
            rejects.append(sink)
    return found


FIELDS = [
    "",
    "plain",
    "a,b",
    'say "hi"',
    '"',
    '""',
    "two\nlines",
    "\r\n",
    "é日本語🎉",
    " x ",
    "\t",
    "'",
]
shared_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


@shared_folder
@given(
    st.lists(st.tuples(*[st.sampled_from(FIELDS)] * 3), max_size=12),
    st.sampled_from(["csv", "tsv"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.booleans(),
    st.sampled_from([1, 3, 17, 1 << 20]),
)
def test_what_the_csv_module_writes_is_read(
    tmp_path: Path,
    rows: list[tuple[str, str, str]],
    kind: str,
    line_end: str,
    quoting: Any,
    has_end: bool,  # noqa: FBT001  drawn
    read_bytes: int,
) -> None:
    out = io.StringIO()
    delimiter = {"csv": ",", "tsv": "\t"}[kind]
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerows([("id", "text", "more"), *rows])
    data = ("\ufeff" + out.getvalue()).encode()
    path = tmp_path / f"a.{kind}"
    path.write_bytes(data if has_end else data.removesuffix(line_end.encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "READ_BYTES", read_bytes)
        for column, name in enumerate(("id", "text", "more")):
            found = read(path, text_field=name, id_field="id")
            assert [(id_, text) for id_, _, text in found] == [
                (row[0], row[column]) for row in rows
            ]
        starts = [place for _, place, _ in read(path)]
    packed = tmp_path / f"a.{kind}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert [place for _, place, _ in read(packed)] == starts
    for place, row in zip(starts, rows, strict=True):
        assert data[place - 1 : place] == b"\n"
        again = csv.reader(io.StringIO(data[place:].decode(), newline=""), delimiter=delimiter)
        assert tuple(next(again)) == row


def loosely(raw: str) -> list[list[str]]:
    """Rows as the csv module reads them when it forgives everything, less blank ones."""
    return [row for row in csv.reader(io.StringIO(raw, newline="")) if row]


@shared_folder
@given(st.text(st.sampled_from('ab",\n'), max_size=40), st.sampled_from([1, 3, 1 << 20]))
@example('a"b,c\n"x""y"\n', 1)
@example('"a"b,\n",""\n', 3)
def test_any_quotes_are_read_as_by_the_csv_module_or_refused(
    tmp_path: Path, body: str, read_bytes: int
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"text,b\n{body}", newline="")
    expected = loosely(body)
    rejects: list[Rejects] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "READ_BYTES", read_bytes)
        found = read(path, rejects, on_bad_record="skip")
    wrong = rejects[0].counts
    assert len(found) + wrong.total() == len(expected)
    widths_off = sum(len(row) != 2 for row in expected)
    refused = wrong["bad_quotes"] + wrong["unterminated_quote"]
    assert wrong["wrong_columns"] + wrong["row_cut"] <= widths_off
    assert widths_off <= wrong["wrong_columns"] + wrong["row_cut"] + refused
    # Those that are not refused say what the module says, in order.
    texts = iter([row[0] for row in expected if len(row) == 2])
    assert all(text in texts for _, _, text in found)


@given(
    st.binary(max_size=60).map(
        lambda data: data.translate(bytes(b'",\nab'[i % 5] for i in range(256)))
    )
)
def test_row_ends_are_those_of_a_walk(data: bytes) -> None:
    ends, state = [], "start"
    for position, value in enumerate(data):
        if state == "quoted":
            state = "closing" if value == ord('"') else "quoted"
        elif state in {"start", "closing"} and value == ord('"'):
            state = "quoted"
        elif value == ord("\n"):
            ends.append(position)
            state = "start"
        else:
            state = "start" if value == ord(",") else "plain"
    assert find_row_ends(data, 0, b",").tolist() == ends


class _Source:
    """Rows are read from it in pieces."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.position = 0

    def read_behind(self, data: bytes | memoryview, size: int) -> bytes:
        more = self._data.read(size)
        self.position += len(more)
        return bytes(data) + more


@pytest.mark.parametrize("read_bytes", [1, 5, 1 << 20])
def test_rows_over_the_limit_come_in_pieces(
    read_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_blocks, "READ_BYTES", read_bytes)
    lines = [b"a,b", b'"' + b'long""\n,' * 20 + b'",x', b"short,1", b"z" * 100, b'"q\n",2']
    found: list[bytes] = []
    numbers: list[int | None] = []
    for row in csv_rows(_Source(b"\n".join(lines)), b",", 30):
        if isinstance(row, LongRow):
            found.append(b"".join(row.chunks))
            numbers.append(row.number)
            assert b"\n".join(lines)[row.start :].startswith(found[-1])
        else:
            spans = zip(row.starts.tolist(), row.ends.tolist(), strict=True)
            numbers += [(row.number or 0) + index for index in range(len(row.starts))]
            found += [row.data[start:end] for start, end in spans]
    assert found == lines
    assert numbers == [1, 2, 3, 4, 5]


def test_a_bare_return_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,b\r\na\rb,"c\r"\r\n\r\n"\r",1\r\n')
    rejects: list[Rejects] = []
    assert [text for _, _, text in read(path, rejects)] == ["a\rb", "\r"]
    assert rejects[0].accepted == {"cr": 2, "blank_line": 1, "whitespace_only": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,body\n1,a\n", "no column 'text'; there are: 'id', 'body'; .*--text-field"),
        (b"text,text\n1,a\n", "2 columns are called 'text'"),
        (b"text,body\n1,a\n", "no column 'id'.*--id-field"),
    ],
)
def test_columns_that_are_not_there_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(BadFileError, match=message) as caught:
        read(path, id_field="id")
    assert str(path) in str(caught.value)
    options = ReadOptions(id_field="id")
    with pytest.raises(SettingsError, match=message):
        check_columns(list_inputs([str(path)], options).files, options)


@pytest.mark.parametrize("header", [b'"text', b't"e\xff,text', b'"text"x,b', b"x" * 200 + b",text"])
def test_a_first_row_without_names_is_a_bad_file(header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(header + b"\n1,a\n")
    with pytest.raises(BadFileError, match="first row cannot be read as a row of column names"):
        read(path, max_row_bytes=100)


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbf", b"\n\n", b"text\n", b'\n"text"', b"text,b\r\n"]
)
def test_a_file_without_rows_has_no_documents(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert read(path) == []


def test_fields_of_a_row() -> None:
    assert fields_of_row(b'a,"b"",""c",,"",x"y', b",") == [b"a", b'b","c', b"", b"", b'x"y']
    for raw, reason in ((b'"a', "unterminated_quote"), (b'"a"b', "bad_quotes")):
        with pytest.raises(FieldError) as caught:
            fields_of_row(raw, b",")
        assert caught.value.reason == reason


def test_a_long_file_is_read_in_blocks(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    rows = [(str(number), "".join(random.choice(FIELDS, 40))) for number in range(25_000)]
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *rows])
    assert path.stat().st_size > row_blocks.READ_BYTES
    found = read(path, id_field="id")
    assert [(name, text) for name, _, text in found] == rows
    with closing(io.BytesIO(path.read_bytes())) as data:
        for _, place, _ in found[::500]:
            data.seek(place - 2)
            assert data.read(2) == b"\r\n"


def test_lines_that_end_with_cr_alone_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(b"text,id\ra,1\rb,2\r")
    with pytest.raises(BadFileError, match=r"old\.csv: .*lines end with \\r alone"):
        read(path)
