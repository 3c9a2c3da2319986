"""The table of anomalies × formats × policies: each is refused, set aside, or accepted and counted.

Every case is a file with good documents around what is unusual. However it is cut, documents in are
documents out and rejects.
"""

from __future__ import annotations

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from bpe.errors import BadFileError, BadRecordError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.arrow.arrow_footer import batch_places
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import Plan, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects

SUFFIXES = {
    "text": "txt",
    "lines": "txt",
    "separator": "txt",
    "jsonl": "jsonl",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
    "stream": "arrows",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "lines": {"input_format": "lines"},
    "separator": {"document_separator": b"||"},
}
TABLES = ("parquet", "arrow", "stream")
PACKABLE = tuple(name for name in SUFFIXES if name not in TABLES)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
LIMIT = 2000
GOOD = ("good", "g")


def table_bytes(kind: str, table: pa.Table) -> bytes:
    """A table as a file of a format, two rows to a row group or batch."""
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink, row_group_size=2, write_page_checksum=True)
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with new(sink, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def rows_bytes(kind: str, rows: list[tuple[Any, Any]]) -> bytes:
    """Documents (text, id) as a file of a format."""
    if kind in TABLES:
        texts, ids = zip(*rows, strict=True)
        is_text = all(isinstance(text, str | None) for text in texts)
        type_ = pa.string() if is_text else pa.large_binary()
        coded = [text.encode() if isinstance(text, str) and not is_text else text for text in texts]
        is_id_text = all(isinstance(id_, str | None) for id_ in ids)
        id_type = pa.string() if is_id_text else pa.binary()
        names = [id_.encode() if isinstance(id_, str) and not is_id_text else id_ for id_ in ids]
        columns = {"text": pa.array(coded, type_), "id": pa.array(names, id_type)}
        return table_bytes(kind, pa.table(columns))
    if kind == "jsonl":
        lines = [json.dumps({"text": text, "id": id_}) for text, id_ in rows]
        return "".join(f"{line}\n" for line in lines).encode()
    if kind in {"csv", "tsv"}:
        out = io.StringIO()
        writer = csv.writer(
            out, delimiter=",\t"[kind == "tsv"], lineterminator="\n", quoting=csv.QUOTE_ALL
        )
        writer.writerows([("text", "id"), *rows])
        return out.getvalue().encode()
    end = {"text": b"", "lines": b"\n", "separator": b"||"}[kind]
    return b"".join((t.encode() if isinstance(t, str) else t) + end for t, _ in rows)


@dataclass
class Reading:
    """What reading some files gave, after the check that every document is accounted for."""

    texts: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    records: list[dict[str, Any]] = field(default_factory=list)


def planned(path: Path, range_bytes: int, **options: Any) -> tuple[Plan, ReadOptions]:
    read = ReadOptions(range_bytes=range_bytes, max_row_bytes=LIMIT, **options)
    return make_plan(list_inputs([str(path)], read), read, unit_bytes=1), read


def read_plan(plan: Plan, read: ReadOptions, scheme: str = "gpt2") -> Reading:
    found = Reading()
    documents_in = documents = 0
    for unit in plan.units:
        rejects = Rejects(unit, read)
        for batch in read_unit(unit, read, CutFinder(get_scheme(scheme)), rejects):
            batch.validate(full=True)
            for row in batch.to_pylist():
                if row["is_first"]:
                    found.texts.append(b"")
                found.texts[-1] += row["text"]
            documents += sum(batch["is_last"].to_pylist())
        documents_in += rejects.documents_in
        found.counts += rejects.counts
        found.accepted += rejects.accepted
        found.records += map(json.loads, rejects.to_jsonl().splitlines())
    rejected = found.counts.total() - found.counts["bad_file"]
    assert documents == len(found.texts)
    assert documents_in == documents + rejected + found.accepted["dropped_empty"]
    assert sum(record.get("rows", 1) for record in found.records) == found.counts.total()
    return found


# --- Bad records -------------------------------------------------------------------------------

LONG = "x" * (LIMIT + 1)


def row_of(text: Any, id_: Any = "1") -> Callable[[str], bytes]:
    """A file whose third document is this one."""
    return lambda kind: rows_bytes(kind, [GOOD, GOOD, (text, id_), GOOD])


def raw_row(row: bytes) -> Callable[[str], bytes]:
    """A file of lines in which this one stands as it is; `,` becomes the delimiter."""

    def make(kind: str) -> bytes:
        before, after = rows_bytes(kind, [GOOD, GOOD]), rows_bytes(kind, [GOOD])
        names = len(rows_bytes(kind, []))
        return before + row.replace(b",", b"\t" if kind == "tsv" else b",") + b"\n" + after[names:]

    return make


def cut_row(row: bytes) -> Callable[[str], bytes]:
    """A file that ends with this, without a line feed."""
    return lambda kind: rows_bytes(kind, [GOOD, GOOD, GOOD]) + row


# anomaly: (formats, the file, the reason it is counted under, what the message says)
BAD_RECORDS: dict[str, tuple[tuple[str, ...], Callable[[str], bytes], str, str]] = {
    "null text": (("jsonl", *TABLES), row_of(None), "null_text", "'text' is null"),
    "null id": (("jsonl", *TABLES), row_of("a", None), "null_id", "'id' is null"),
    "id that is not UTF-8": (TABLES, row_of("a", b"\xff"), "id_not_utf8", "'id' is not UTF-8"),
    "field missing": (("jsonl",), raw_row(b'{"id": "1"}'), "missing_text", "no field 'text'"),
    "too few columns": (("csv", "tsv"), raw_row(b"a"), "wrong_columns", "1 column, and the first"),
    "too many columns": (("csv", "tsv"), raw_row(b'a,b,"c\nd"'), "wrong_columns", "3 columns"),
    "text not a string": (
        ("jsonl",),
        raw_row(b'{"text": 3, "id": "1"}'),
        "text_not_string",
        "is a number",
    ),
    "bad JSON": (("jsonl",), raw_row(b'{"text": "a", }'), "bad_json", "no valid JSON"),
    "last row cut": (("jsonl",), cut_row(b'{"text": "go'), "row_cut", "ends inside this row"),
    "last row cut in CSV": (("csv", "tsv"), cut_row(b'"goo"'), "row_cut", "ends inside this row"),
    "last row cut in quotes": (
        ("csv", "tsv"),
        cut_row(b'"go\no'),
        "unterminated_quote",
        "never closed",
    ),
    "text behind quotes": (("csv", "tsv"), raw_row(b'"a"b,c'), "bad_quotes", "behind its closing"),
    "lone surrogate": (
        ("jsonl",),
        raw_row(rb'{"text": "\ud800", "id": "1"}'),
        "lone_surrogate",
        "d800",
    ),
    "invalid UTF-8": (
        ("csv", "tsv", "jsonl"),
        lambda kind: row_of("a@b")(kind).replace(b"@", b"\xff"),
        "invalid_utf8",
        "invalid UTF-8 at byte",
    ),
    "row over the limit": (
        ("lines", "separator", "jsonl", "csv", "tsv", *TABLES),
        row_of(LONG),
        "too_long",
        f"--max-row-bytes={LIMIT}",
    ),
}


@pytest.mark.parametrize("packed", ["", "gz", "zst", "bz2", "xz"])
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in BAD_RECORDS.items() for kind in case[0]]
)
def test_bad_records(name: str, kind: str, packed: str, tmp_path: Path) -> None:
    _, make, reason, message = BAD_RECORDS[name]
    if kind in TABLES and packed:
        return
    data = make(kind)
    path = tmp_path / ".".join(filter(None, ["a", SUFFIXES[kind], packed]))
    path.write_bytes(COMPRESS[packed](data) if packed else data)
    options = dict(OPTIONS.get(kind, {}))
    if kind not in {"lines", "separator"}:
        options["id_field"] = "id"
    # A document that may be cut is not too long.
    scheme = "none" if kind == "separator" else "gpt2"
    for range_bytes in (61, 1 << 20):
        with pytest.raises(BadRecordError, match=message) as caught:
            read_plan(*planned(path, range_bytes, **options), scheme)
        error = str(caught.value)
        assert error.startswith(f"{path}: ")
        assert "--on-bad-record=skip" in error
        skipping = planned(path, range_bytes, on_bad_record="skip", **options)
        found = read_plan(*skipping, scheme)
        assert found.texts == [b"good"] * 3
        assert found.counts == {reason: 1}
        record = found.records[0]
        assert (record["file"], record["reason"]) == (str(path), reason)
        if kind in TABLES:
            assert record["byte_offset"] is None
            assert record["row"] == 3
            assert f": row 3: {record['message']}" in error
        else:
            place = record["byte_offset"]
            assert f"byte {place}: " in error
            raw = base64.b64decode(record["raw_base64"])
            assert data[place:].startswith(raw)
            assert record["raw_bytes"] == len(raw)


def test_a_bad_record_is_named_by_its_row(tmp_path: Path) -> None:
    """The row of names counts, as in a spreadsheet; a blank line too."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,id\n\n"a\nb",1\nbad\n')
    with pytest.raises(BadRecordError, match=r"a\.csv: row 4, byte 17: "):
        read_plan(*planned(path, 100))


# --- Bad files ---------------------------------------------------------------------------------

ROWS = [(f"some text number {number} " * 9, str(number)) for number in range(6)]


def packed_with(kind: str, change: Callable[[bytes], bytes]) -> Callable[[str], bytes]:
    return lambda form: change(COMPRESS[kind](rows_bytes(form, ROWS)))


def flip(place: Callable[[bytes], int]) -> Callable[[bytes], bytes]:
    """Changes a byte of some data."""

    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[place(data)] ^= 0x55
        return bytes(changed)

    return change


def table_with(change: Callable[[bytes], bytes]) -> Callable[[str], bytes]:
    return lambda kind: change(rows_bytes(kind, ROWS))


def wrong_table(**columns: Any) -> Callable[[str], bytes]:
    return lambda kind: table_bytes(kind, pa.table(columns))


def in_middle_of_data(data: bytes) -> int:
    """A place inside the second row group, batch or block of packed text."""
    return len(data) // 2


# anomaly: (formats, suffix behind the format's, the file, what the message says)
BadFile = tuple[tuple[str, ...], str, Callable[[str], bytes], str]
BAD_FILES: dict[str, BadFile] = {
    **{
        f"truncated {name}": (PACKABLE, name, packed_with(name, lambda data: data[:-5]), "truncat")
        for name in COMPRESS
    },
    **{f"empty {name}": (PACKABLE, name, lambda _: b"", "truncated") for name in COMPRESS},
    **{
        f"corrupt {name}": (PACKABLE, name, packed_with(name, flip(in_middle_of_data)), "damaged")
        for name in COMPRESS
    },
    **{
        f"{name} with garbage behind": (
            PACKABLE,
            name,
            packed_with(name, lambda data: data + b"garbage"),
            "something else",
        )
        for name in COMPRESS
    },
    **{
        f"text named {name}": (PACKABLE, name, lambda kind: rows_bytes(kind, ROWS), "stream is ")
        for name in COMPRESS
    },
    "truncated table": (TABLES, "", table_with(lambda data: data[:-9]), "cannot be read|truncat"),
    "table cut in half": (TABLES, "", table_with(lambda data: data[: len(data) // 2]), "cannot be"),
    "table of no bytes": (TABLES, "", lambda _: b"", "cannot be read"),
    "table with garbage behind": (
        TABLES,
        "",
        table_with(lambda data: data + b"garbage"),
        "cannot be read|something else",
    ),
    "stream without its end": (("stream",), "", table_with(lambda data: data[:-8]), "truncated"),
    "text named as table": (TABLES, "", lambda _: b"just some text " * 20, "cannot be read"),
    "table named as rows": (
        ("text", "jsonl", "csv", "tsv"),
        "",
        lambda _: rows_bytes("parquet", ROWS),
        "starts like a Parquet file",
    ),
    "packed data named as rows": (
        ("text", "jsonl", "csv", "tsv"),
        "",
        lambda kind: lzma.compress(rows_bytes(kind, ROWS)),
        "starts like a xz file",
    ),
    "pointer named as rows": (
        ("text", "jsonl", "csv", "tsv"),
        "",
        lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "Git LFS pointer",
    ),
    "program named as rows": (
        ("text", "jsonl", "csv", "tsv"),
        "",
        lambda _: b"\x7fELF\x02\x01\x01" + bytes(9),
        "starts like a ELF file",
    ),
    "UTF-16 named as rows": (
        ("text", "jsonl", "csv", "tsv"),
        "",
        lambda kind: rows_bytes(kind, ROWS).decode().encode("utf-16"),
        "starts like a UTF-16 file; convert it to UTF-8",
    ),
    "zip named as packed rows": (
        ("text", "jsonl", "csv", "tsv"),
        "gz",
        lambda _: COMPRESS["gz"](b"PK\x03\x04" + bytes(30)),
        "starts like a zip file",
    ),
    "old Feather": (("arrow", "stream"), "", lambda _: b"FEA1" + bytes(50) + b"FEA1", "version 1"),
    "unknown column": (TABLES, "", wrong_table(body=["a"]), "no column 'text'.*'body'"),
    "column of another type": (TABLES, "", wrong_table(text=[1, 2]), "of type int64"),
    "unknown column in CSV": (("csv", "tsv"), "", lambda _: b"a\nb\n", "no column 'text'"),
    "CSV without names": (("csv", "tsv"), "", lambda _: b'"a\nb\n', "first row cannot be read"),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in BAD_FILES.items() for kind in case[0]]
)
def test_bad_files(name: str, kind: str, tmp_path: Path) -> None:
    _, packed, make, message = BAD_FILES[name]
    path = tmp_path / ".".join(filter(None, ["a", SUFFIXES[kind], packed]))
    path.write_bytes(make(kind))
    good = tmp_path / f"b.{SUFFIXES[kind]}"
    good.write_bytes(rows_bytes(kind, ROWS))
    options = dict(OPTIONS.get(kind, {}))
    if "named as rows" not in name:
        options.setdefault("input_format", "auto")
    for range_bytes in (101, 1 << 20):
        with pytest.raises(BadFileError, match=message) as caught:
            read_plan(*planned(tmp_path, range_bytes, **options))
        assert str(caught.value).startswith(f"{path}: ")
        assert "--on-bad-file=skip" in str(caught.value)
        plan, read = planned(tmp_path, range_bytes, on_bad_file="skip", **options)
        found = read_plan(plan, read)
        expected = b"".join(text.encode() for text, _ in ROWS)
        assert b"".join(found.texts) == expected
        assert found.counts == {"bad_file": 1}
        assert found.records[0]["file"] == str(path)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_damaged_part_of_a_table_stops_the_run_or_is_left_out(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{SUFFIXES[kind]}"
    data = bytearray(rows_bytes(kind, ROWS))
    if kind == "parquet":
        # Only the checksum of the page can tell.
        table = pa.table({"text": [text for text, _ in ROWS]})
        options = {"compression": None, "use_dictionary": False, "write_statistics": False}
        pq.write_table(table, path, row_group_size=2, write_page_checksum=True, **options)
        data = bytearray(path.read_bytes())
        place = data.rindex(b"number 3")
    else:
        second = batch_places(lambda start, size: data[start : start + size], len(data))[1]
        # The header of an LZ4 frame, behind the size of what it holds.
        place = data.index(b"\x04\x22\x4d\x18", second.start + second.metadata_bytes)
    data[place : place + 4] = b"\xff\xee\xdd\xcc"
    path.write_bytes(data)
    name = {"parquet": "row group 1", "arrow": "record batch 1"}[kind]
    for range_bytes in (101, 1 << 20):
        with pytest.raises(BadFileError, match=f"a.*: {name} .*leave it out with --on-bad-file="):
            read_plan(*planned(path, range_bytes))
        plan, read = planned(path, range_bytes, on_bad_file="skip", on_bad_record="skip")
        assert (len(plan.units) > 3) == (range_bytes == 101)
        found = read_plan(plan, read)
        assert [text.decode() for text in found.texts] == [
            text for row, (text, _) in enumerate(ROWS) if row not in (2, 3)
        ]
        assert found.counts == {"bad_part": 2}
        [record] = found.records
        assert (record["file"], record["row"], record["rows"]) == (str(path), 3, 2)
        assert record["message"].startswith(f"{path}: {name} cannot be read: ")
        limited = planned(
            path, range_bytes, on_bad_file="skip", on_bad_record="skip", max_bad_records=1
        )
        with pytest.raises(BadRecordError, match=f"max-bad-records=1 .*bad_part: 2.*{name}"):
            read_plan(*limited)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "vanished": (Path.unlink, "was there when the plan was made"),
    "changed": (lambda path: os.utime(path, (1, 1)), "changed since the plan"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"x") and None, "changed since"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", SUFFIXES)
def test_files_that_are_not_those_of_the_plan(kind: str, change: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{SUFFIXES[kind]}"
    do, message = CHANGES[change]
    for policy in ("fail", "skip"):
        path.write_bytes(rows_bytes(kind, ROWS))
        plan, read = planned(path, 1 << 20, on_bad_file=policy, **OPTIONS.get(kind, {}))
        do(path)
        if policy == "fail":
            with pytest.raises(BadFileError, match=message):
                read_plan(plan, read)
        else:
            found = read_plan(plan, read)
            assert not found.texts
            assert found.counts == {"bad_file": 1}


# --- Accepted ----------------------------------------------------------------------------------

ALL = tuple(SUFFIXES)
# anomaly: (formats, the document, what it counts as)
ACCEPTED: dict[str, tuple[tuple[str, ...], Any, dict[str, int]]] = {
    "invalid UTF-8": (("text", "lines", "separator", *TABLES), b"caf\xe9", {"invalid_utf8": 1}),
    "NUL": (ALL, "a\0b", {"nul": 1}),
    "CR": (ALL, "a\rb", {"cr": 1}),
    "CRLF": (tuple(kind for kind in ALL if kind != "lines"), "a\r\nb", {"crlf": 1}),
    "white space": (ALL, " \t\u3000", {"whitespace_only": 1}),
    "empty document": (ALL, "", {"empty": 1}),
    "no BOM": (("csv", "tsv", "jsonl", *TABLES), "\ufeffx", {}),
}


@pytest.mark.parametrize("packed", ["", "gz", "zst", "bz2", "xz"])
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, case in ACCEPTED.items() for kind in case[0]]
)
def test_accepted_documents(name: str, kind: str, packed: str, tmp_path: Path) -> None:
    _, document, counts = ACCEPTED[name]
    if kind in TABLES and packed:
        return
    raw = document.encode() if isinstance(document, str) else document
    data = rows_bytes(kind, [(document, "1")] if kind == "text" else [(document, "1"), GOOD])
    path = tmp_path / ".".join(filter(None, ["a", SUFFIXES[kind], packed]))
    path.write_bytes(COMPRESS[packed](data) if packed else data)
    if kind == "text":
        (tmp_path / "b.txt").write_bytes(b"good")
    options = OPTIONS.get(kind, {})
    for policies in ({}, {"on_bad_record": "skip", "on_bad_file": "skip"}):
        for range_bytes in (7, 1 << 20):
            found = read_plan(*planned(tmp_path, range_bytes, **policies, **options))
            assert found.texts == [raw, b"good"]
            assert found.accepted == counts
            assert not found.counts
    if name == "empty document":
        found = read_plan(*planned(tmp_path, 1 << 20, empty="drop", **options))
        assert found.texts == [b"good"]
        assert found.accepted == {"empty": 1, "dropped_empty": 1}


@pytest.mark.parametrize("kind", SUFFIXES)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_byte_order_marks_and_line_ends(kind: str, line_end: bytes, tmp_path: Path) -> None:
    """A mark is text of text files, and no part of what has names or braces."""
    if kind in TABLES:
        return
    data = b"\xef\xbb\xbf" + rows_bytes(kind, [("one", "1"), ("two", "2")])
    blank = 0
    if kind in {"csv", "tsv", "jsonl"}:
        data += b" \n"[kind != "jsonl" :]
        blank = 1
    path = tmp_path / f"a.{SUFFIXES[kind]}"
    path.write_bytes(data.replace(b"\n", line_end))
    found = read_plan(*planned(path, 1 << 20, **OPTIONS.get(kind, {})))
    mark = b"" if kind in {"csv", "tsv", "jsonl"} else b"\xef\xbb\xbf"
    assert b"|".join(found.texts) == mark + (b"onetwo" if kind == "text" else b"one|two")
    assert found.accepted == Counter(bom=1) + Counter(blank_line=blank)


@pytest.mark.parametrize("kind", SUFFIXES)
def test_empty_files_duplicates_and_hidden_files(kind: str, tmp_path: Path) -> None:
    good = tmp_path / f"b.{SUFFIXES[kind]}"
    good.write_bytes(rows_bytes(kind, ROWS))
    (tmp_path / f"_c.{SUFFIXES[kind]}").write_bytes(b"hidden")
    empty = tmp_path / f"a.{SUFFIXES[kind]}"
    table = pa.table({"text": pa.array([], pa.string())})
    empty.write_bytes(table_bytes(kind, table) if kind in TABLES else b"")
    read = ReadOptions(**OPTIONS.get(kind, {}))
    inputs = list_inputs([str(tmp_path), str(good)], read)
    empties = {} if kind in TABLES else {"empty_files": 1}
    assert inputs.counts == {"duplicate_files": 1, "hidden_files": 1, **empties}
    found = read_plan(make_plan(inputs, read), read)
    # An empty text file is an empty document; an empty file of rows has none.
    assert len(found.texts) == {"text": 2}.get(kind, len(ROWS))
    assert not found.counts


# --- Commands ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("command", ["train", "encode", "plan"])
def test_commands_treat_every_format_alike(
    kind: str, command: str, tmp_path: Path, model_dir: Path, run: Callable[..., Any]
) -> None:
    path = tmp_path / f"a.{SUFFIXES[kind]}"
    path.write_bytes(row_of(LONG)(kind))
    output = tmp_path / "out"
    how = {"train": ["--vocab-size", 258], "encode": ["--tokenizer", model_dir], "plan": []}
    options = [*how[command], *([] if command == "plan" else ["--output", output])]
    given = [command, "--input", path, *options, "--max-row-bytes", LIMIT]
    refused = run(*given)
    assert refused.code == 1
    assert f"{path}: " in refused.err
    assert f"--max-row-bytes={LIMIT}" in refused.err
    done = run(*given, "--on-bad-record", "skip")
    assert done.code == 0, done.err
    assert "too_long 1" in done.out
    if command != "plan":
        rejects = list(output.rglob("rejects/unit-*.jsonl"))
        assert len(rejects) == 1
        assert "documents        3\n" in done.out
    unknown = run(*given, "--text-field", "body", *(["--overwrite"] if output.exists() else []))
    assert unknown.code == 1
    assert "no column 'body'; there are: 'text', 'id'" in unknown.err
