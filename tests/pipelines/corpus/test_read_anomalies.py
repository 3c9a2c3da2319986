"""Bad and unusual input: each anomaly in each format is refused, set aside, or counted."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bpe.errors import BadFileError, BadRecordError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus import read_documents
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects

GOOD = b'{"text": "good", "id": "x"}'

# name: the row, the reason it is counted under, what the message must say
BAD_ROWS: dict[str, tuple[bytes, str, str]] = {
    "no JSON": (b"nonsense", "bad_json", "no valid JSON"),
    "half an object": (b'{"text": "a"', "bad_json", "no valid JSON"),
    "two objects": (GOOD + GOOD, "bad_json", "Extra data"),
    "NaN": (b'{"text": "a", "id": "1", "n": NaN}', "bad_json", "NaN"),
    "name twice, first a number": (
        b'{"text": 3, "id": "1", "text": "a"}',
        "text_not_string",
        "'text' occurs several times",
    ),
    "name twice, first null": (b'{"text": null, "id": "1", "text": "a"}', "null_text", "several"),
    "id three times": (
        b'{"text": "a", "id": "1", "id": [2], "id": 3}',
        "id_not_string",
        "'id' occurs several times",
    ),
    "name twice, last a number": (
        b'{"text": "a", "id": "1", "text": 3}',
        "text_not_string",
        "is a number, not a string",
    ),
    "deep nesting": (
        b'{"n": ' + b"[" * 9999 + b"]" * 9999 + b"}",
        "json_limit",
        "nested too deeply",
    ),
    "number as text, then deep nesting": (
        b'{"text": 3, "id": "1", "n": ' + b"[" * 9999 + b"]" * 9999 + b"}",
        "json_limit",
        "nested too deeply",
    ),
    "long integer as id": (
        b'{"text": "a", "id": ' + b"7" * 5000 + b"}",
        "json_limit",
        r"Integer value out of range - at `\$\.id`",
    ),
    "long integer elsewhere": (
        b'{"text": 3, "id": "1", "n": ' + b"7" * 5000 + b"}",
        "text_not_string",
        "'text' is a number",
    ),
    "raw control character": (b'{"text": "a\tb", "id": "1"}', "bad_json", "control character"),
    "a list": (b"[1]", "not_an_object", "a list"),
    "a number": (b"17", "not_an_object", "a number"),
    "missing text": (b'{"id": "1", "body": "b"}', "missing_text", "'id', 'body'.*--text-field"),
    "null text": (b'{"id": "1", "text": null}', "null_text", "'text' is null"),
    "number as text": (b'{"id": "1", "text": 3}', "text_not_string", "'text' is a number"),
    "list as text": (b'{"id": "1", "text": ["a"]}', "text_not_string", "'text' is a list"),
    "missing id": (b'{"text": "a"}', "missing_id", "'text'.*--id-field"),
    "null id": (b'{"text": "a", "id": null}', "null_id", "'id' is null"),
    "fraction as id": (b'{"text": "a", "id": 1.5}', "id_not_string", "'id' is a number"),
    "truth as id": (b'{"text": "a", "id": true}', "id_not_string", "'id' is true or false"),
    "high surrogate": (rb'{"text": "\ud800", "id": "1"}', "lone_surrogate", "d800"),
    "low surrogate": (rb'{"text": "\udc00x", "id": "1"}', "lone_surrogate", "dc00"),
    "surrogate elsewhere": (rb'{"text": "a", "id": "1", "x": "\ud800"}', "lone_surrogate", "d800"),
    "invalid UTF-8": (b'{"text": "\xff", "id": "1"}', "invalid_utf8", "byte 10 of the row"),
    "invalid UTF-8 elsewhere": (b'{"text": "a", "id": "1", "x": "\xff"}', "invalid_utf8", "UTF-8"),
    "too long": (b'{"text": "' + b"a" * 30_000 + b'"}', "too_long", "--max-row-bytes=25000"),
}

# name: the document, and what it counts as
UNUSUAL: dict[str, tuple[bytes, dict[str, int]]] = {
    "plain": (b"plain text", {}),
    "invalid UTF-8": (b"caf\xe9 x", {"invalid_utf8": 1}),
    "encoded surrogate": (b"\xed\xa0\x80", {"invalid_utf8": 1}),
    "NUL": (b"a\0b\0", {"nul": 1}),
    "CR": (b"a\rb", {"cr": 1}),
    "only spaces": (b" \t ", {"whitespace_only": 1}),
    "other white space": ("\u2003\u3000\x85".encode(), {"whitespace_only": 1}),
    "no white space": (b"\x1c\x1d", {}),
    "spaces around": (b" x ", {}),
    "empty": (b"", {"empty": 1}),
    "BOM": (b"\xef\xbb\xbfx", {"bom": 1}),
}


def pack(data: bytes, suffix: str) -> bytes:
    return {"": data, ".gz": gzip.compress(data), ".zst": zstandard.compress(data)}[suffix]


class Outcome:
    """What reading some files gave."""

    def __init__(self, pattern: Path, **options: Any) -> None:
        read_options = ReadOptions(**options)
        plan = make_plan(list_inputs([str(pattern)], read_options), read_options, unit_bytes=1)
        finder = CutFinder(get_scheme("gpt2"))
        self.texts: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.records: list[dict[str, Any]] = []
        documents_in = documents = 0
        for unit in plan.units:
            rejects = Rejects(unit, read_options)
            for batch in read_unit(unit, read_options, finder, rejects):
                self.texts += batch["text"].to_pylist()
                documents += sum(batch["is_last"].to_pylist())
            documents_in += rejects.documents_in
            self.counts += rejects.counts
            self.accepted += rejects.accepted
            self.records += map(json.loads, rejects.to_jsonl().splitlines())
        rejected = sum(self.counts.values()) - self.counts["bad_file"]
        assert documents_in == documents + rejected + self.accepted["dropped_empty"]
        assert len(self.records) == sum(self.counts.values())


suffixes = pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])


@suffixes
@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_stops_the_run_or_is_set_aside(name: str, suffix: str, tmp_path: Path) -> None:
    row, reason, message = BAD_ROWS[name]
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(b"\n".join([GOOD, GOOD, row, GOOD, b""]), suffix))
    options = {"id_field": "id", "max_row_bytes": 25_000}
    # Ranges of 40 bytes have the bad row start in a range that does not know its number.
    for range_bytes in (40, 1 << 20):
        with pytest.raises(BadRecordError, match=message) as caught:
            Outcome(path, range_bytes=range_bytes, **options)
        text = str(caught.value)
        assert f"{path}: row 3, byte 56: " in text
        assert "--on-bad-record=skip" in text
        outcome = Outcome(path, on_bad_record="skip", range_bytes=range_bytes, **options)
        assert outcome.texts == [b"good"] * 3
        assert outcome.counts == {reason: 1}
        record = outcome.records[0]
        assert (record["file"], record["byte_offset"]) == (str(path), 56)
        assert record["row"] == (3 if range_bytes > 40 or suffix else None)
        assert record["raw_bytes"] == len(row)
        assert base64.b64decode(record["raw_base64"]) == row


def test_no_depth_of_nesting_is_too_much_for_the_diagnosis(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [b'{"n": ' + b"[" * depth + b"]" * depth + b"}" for depth in range(700, 1100, 3)]
    path.write_bytes(b"\n".join(rows))
    outcome = Outcome(path, on_bad_record="skip")
    assert set(outcome.counts) <= {"missing_text", "json_limit"}
    assert outcome.counts.total() == len(rows)


@suffixes
def test_a_cut_last_row_is_told_from_bad_json(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(GOOD + b"\n" + GOOD[:15], suffix))
    outcome = Outcome(path, on_bad_record="skip")
    assert outcome.counts == {"row_cut": 1}
    with pytest.raises(BadRecordError, match=r"row 2.*the file ends inside this row"):
        Outcome(path)
    path.write_bytes(pack(GOOD + b"\n" + GOOD, suffix))
    assert Outcome(path).texts == [b"good"] * 2


@suffixes
@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("kind", ["text", "lines", "separator"])
def test_unusual_text_is_read_and_counted(
    kind: str, name: str, suffix: str, tmp_path: Path
) -> None:
    document, counts = UNUSUAL[name]
    path = tmp_path / f"a.txt{suffix}"
    options: dict[str, Any] = {"input_format": "lines"} if kind == "lines" else {}
    if kind == "text":
        (tmp_path / "other.txt").write_bytes(b"not empty")
        path.write_bytes(pack(document, suffix))
        expected = [document, b"not empty"]
    else:
        separator = b"\n" if kind == "lines" else b"||"
        if kind == "separator":
            options = {"document_separator": separator}
        path.write_bytes(pack(document + separator + b"two" + separator, suffix))
        expected = [document, b"two"]
    outcome = Outcome(tmp_path, **options)
    assert outcome.texts == expected
    assert outcome.accepted == counts
    assert not outcome.counts


@pytest.mark.parametrize(
    "name", [name for name in UNUSUAL if "surr" not in name and "UTF" not in name]
)
def test_unusual_json_strings_are_read_and_counted(name: str, tmp_path: Path) -> None:
    document, counts = UNUSUAL[name]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": document.decode()}))
    outcome = Outcome(path)
    assert outcome.texts == [document]
    # What would be a BOM at a file's start is a character of the text here.
    assert outcome.accepted == {key: value for key, value in counts.items() if key != "bom"}


def test_line_ends_are_counted_in_whole_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\r\nb\r\n")
    (tmp_path / "b.txt").write_bytes(b"a\r\nb\r")
    outcome = Outcome(tmp_path)
    assert outcome.accepted == {"crlf": 2, "cr": 1}


@suffixes
def test_a_line_over_the_limit_is_never_held(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack(b"one\n" + b"x" * (12 << 20) + b"\ntwo", suffix))
    options: dict[str, Any] = {"input_format": "lines", "max_row_bytes": 1000}
    outcome = Outcome(path, on_bad_record="skip", range_bytes=1 << 20, **options)
    assert outcome.texts == [b"one", b"two"]
    assert outcome.counts == {"too_long": 1}
    assert outcome.records[0]["raw_bytes"] == 12 << 20
    assert len(base64.b64decode(outcome.records[0]["raw_base64"])) == 64 << 10
    with pytest.raises(BadRecordError, match=r"row 2, byte 4: .*--max-row-bytes=1000"):
        Outcome(path, range_bytes=1 << 20, **options)


def test_too_many_bad_rows_stop_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([GOOD, b"bad", GOOD, b"bad", b"{}"]))
    assert Outcome(path, on_bad_record="skip", max_bad_records=3).counts.total() == 3
    with pytest.raises(BadRecordError, match=r"--max-bad-records=2 .*bad_json: 2, missing_text: 1"):
        Outcome(path, on_bad_record="skip", max_bad_records=2)


BAD_FILES: dict[str, bytes] = {
    "a.txt.gz": gzip.compress(b"some text that is long enough")[:-3],
    "b.txt.gz": gzip.compress(b"member") + gzip.compress(b"another member")[:12],
    "c.txt.gz": gzip.compress(b"member") + b"garbage",
    "d.txt.gz": b"no gzip at all",
    "e.txt.zst": zstandard.compress(b"some text that is long enough")[:-3],
    "f.txt.zst": zstandard.compress(b"frame") + zstandard.compress(b"another frame")[:7],
    "g.jsonl.zst": zstandard.compress(GOOD + b"\n") + b"garbage",
    "h.jsonl.gz": gzip.compress(b"\n".join([GOOD] * 300_000))[:-3],
    "i.txt": gzip.compress(b"text"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_stops_the_run_or_is_left_out(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    (tmp_path / "z.txt").write_bytes(b"last")
    with pytest.raises(BadFileError, match="--on-bad-file=skip") as caught:
        Outcome(tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    outcome = Outcome(tmp_path, on_bad_file="skip")
    assert outcome.texts == [b"last"]
    assert outcome.counts == {"bad_file": 1}
    assert outcome.records[0]["file"] == str(tmp_path / name)


def test_a_file_found_bad_after_some_of_it_was_read_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had gone bad between the look at the whole and the reading.
    monkeypatch.setattr(read_documents, "check_whole", lambda _: None)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(BAD_FILES["h.jsonl.gz"])
    with pytest.raises(BadFileError, match="truncated"):
        Outcome(path, on_bad_file="skip")


def test_a_long_row_is_not_said_to_be_longer_than_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 30 + b"\n")
    with pytest.raises(BadRecordError, match="the row has at least 30 bytes, over --max-row-b"):
        Outcome(path, input_format="lines", max_row_bytes=25)
    outcome = Outcome(path, input_format="lines", max_row_bytes=25, on_bad_record="skip")
    assert outcome.records[0]["message"].startswith("the row has 30 bytes, over --max-row-bytes=25")
