"""The table of anomalies × formats × policies: each is refused, set aside, or accepted and counted.

Every case is a file with good documents around what is unusual. However it is cut, documents in are
documents out and rejects. Files that are bad as a whole are in test_bad_files.py.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bpe.errors import BadRecordError
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from tests.pipelines.anomaly_files import (
    COMPRESS,
    GOOD,
    LIMIT,
    OPTIONS,
    ROWS,
    SUFFIXES,
    TABLES,
    planned,
    read_plan,
    rows_bytes,
    table_bytes,
)

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
    "text after quotes": (("csv", "tsv"), raw_row(b'"a"b,c'), "bad_quotes", "after its closing"),
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
