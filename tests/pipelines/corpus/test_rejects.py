"""The record of what was set aside: complete, bounded in memory, written at once."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from bpe.errors import BadFileError, BadRecordError, OutputError
from pipelines.corpus import rejects as rejects_module
from pipelines.corpus.listing.inputs import InputFile, ReadOptions
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.rejects import RAW_BYTES_KEPT, Rejects

FILE = InputFile(0, "/in/a.jsonl", 100, "x", "jsonl", "none", "a.jsonl")
RANGE = FileRange(FILE, 0, 50)
UNIT = Unit(7, (RANGE, FileRange(FILE, 50, 100)))
SKIP = ReadOptions(on_bad_record="skip", on_bad_file="skip")


def reject(sink: Rejects, raw: bytes = b"raw", row: int | None = 3) -> None:
    sink.bad_record(FILE, reason="bad_json", message="is wrong", byte_offset=40, row=row, raw=raw)


def test_fail_raises_with_place_and_remedy() -> None:
    sink = Rejects(UNIT, ReadOptions())
    with pytest.raises(BadRecordError) as caught:
        reject(sink)
    assert str(caught.value) == (
        "/in/a.jsonl: row 3, byte 40: is wrong; or set such rows aside with --on-bad-record=skip"
    )
    with pytest.raises(BadRecordError, match=r"/in/a\.jsonl: byte 40"):
        reject(sink, row=None)
    error = BadFileError("/in/a.jsonl: torn")
    with pytest.raises(BadFileError) as raised:
        sink.bad_file(RANGE, error)
    assert str(raised.value) == ("/in/a.jsonl: torn; or leave it out with --on-bad-file=skip")


def test_skip_keeps_row_place_and_reason(tmp_path: Path) -> None:
    sink = Rejects(UNIT, SKIP)
    reject(sink, raw=b"\xff" * (RAW_BYTES_KEPT + 1))
    sink.bad_file(RANGE, BadFileError("torn"))
    sink.bad_file(FileRange(FILE, 50, 100), BadFileError("torn"))
    assert sink.counts == {"bad_json": 1, "bad_file": 1}
    assert sink.rejected_records == sink.documents_in == 1
    name = sink.write(str(tmp_path))
    assert name == "rejects/unit-00007.jsonl"
    written = (tmp_path / name).read_bytes()
    assert written == sink.to_jsonl()
    first, second = map(json.loads, written.splitlines())
    assert base64.b64decode(first.pop("raw_base64")) == b"\xff" * RAW_BYTES_KEPT
    assert first == {
        "file": "/in/a.jsonl",
        "source": "a.jsonl",
        "row": 3,
        "byte_offset": 40,
        "reason": "bad_json",
        "message": "is wrong",
        "raw_bytes": RAW_BYTES_KEPT + 1,
    }
    assert (second["reason"], second["byte_offset"], second["row"]) == ("bad_file", 0, None)


def test_nothing_set_aside_writes_no_file(tmp_path: Path) -> None:
    assert Rejects(UNIT, SKIP).write(str(tmp_path)) is None
    assert not list(tmp_path.rglob("*.jsonl"))


def test_writing_twice_leaves_one_equal_file(tmp_path: Path) -> None:
    for _ in range(2):
        sink = Rejects(UNIT, SKIP)
        reject(sink)
        sink.write(str(tmp_path))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["unit-00007.jsonl"]
    assert len(files[0].read_text().splitlines()) == 1


def test_many_records_wait_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects_module, "_SPOOLED_BYTES", 100)
    sink = Rejects(UNIT, SKIP)
    for _ in range(50):
        reject(sink)
    assert len(sink.to_jsonl().splitlines()) == 50
    reject(sink)
    assert len(sink.to_jsonl().splitlines()) == 51


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "rejects").write_bytes(b"a file where the folder should be")
    sink = Rejects(UNIT, SKIP)
    reject(sink)
    with pytest.raises(OutputError, match="rejects/unit-00007"):
        sink.write(str(tmp_path))
