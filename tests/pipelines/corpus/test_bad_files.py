"""Damaged and misnamed files × formats × policies: each stops the run or is left out.

Every case stands beside a good file, whose documents are all read.
"""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import BadFileError, BadRecordError
from pipelines.corpus.arrow.arrow_footer import batch_places
from tests.pipelines.anomaly_files import (
    COMPRESS,
    OPTIONS,
    PACKABLE,
    ROWS,
    SUFFIXES,
    TABLES,
    planned,
    read_plan,
    rows_bytes,
    table_bytes,
)


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


# anomaly: (formats, suffix after the format's, the file, what the message says)
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
        f"{name} with garbage after": (
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
    "table with garbage after": (
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
        # The header of an LZ4 frame, after the size of what it holds.
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
