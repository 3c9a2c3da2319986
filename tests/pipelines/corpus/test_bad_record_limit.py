"""--max-bad-records holds for the run: in each unit while it is read, and for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import OutputError
from pipelines.corpus.unit_reports import REPORT_FOLDER
from pipelines.training.count_artifact import finish_counts

Run = Callable[..., Any]
ROWS = b'{"text": "some words"}\nnonsense\n{"text": "others"}\n' * 5


@pytest.fixture
def command(tmp_path: Path) -> tuple[object, ...]:
    """Options of a run over five bad rows, each in a unit of its own."""
    (tmp_path / "a.jsonl").write_bytes(ROWS)
    reading = ("--input", tmp_path / "a.jsonl", "--range-bytes", len(ROWS) // 5)
    return (*reading, "--output", tmp_path / "out", "--on-bad-record", "skip")


def test_encode_adds_up_the_bad_rows_of_all_units(
    command: tuple[object, ...], model_dir: Path, tmp_path: Path, run: Run
) -> None:
    encode = ("encode", "--tokenizer", model_dir, *command)
    refused = run(*encode, "--max-bad-records", 4)
    assert refused.code == 1
    assert "5 bad rows (bad_json: 5), more than --max-bad-records=4" in refused.err
    assert str(tmp_path / "out" / "__beam-bpe__/rejects") in refused.err
    assert not (tmp_path / "out" / "__beam-bpe__/manifest.json").exists()
    done = run(*encode, "--max-bad-records", 5)
    assert done.code == 0, done.err
    assert "kept 5 of 5 units" in done.err


def test_train_adds_up_the_bad_rows_of_all_units(
    command: tuple[object, ...], tmp_path: Path, run: Run
) -> None:
    train = ("train", "--vocab-size", 260, *command)
    refused = run(*train, "--max-bad-records", 4)
    assert refused.code == 1
    assert "5 bad rows (bad_json: 5), more than --max-bad-records=4" in refused.err
    assert str(tmp_path / "out" / "counts" / "rejects") in refused.err
    assert not (tmp_path / "out" / "counts" / "manifest.json").exists()
    assert run(*train, "--max-bad-records", 5).code == 0


def test_the_limit_is_said_to_be_the_runs_and_a_bad_file_is_one_of_it(
    model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "a.jsonl").write_bytes(ROWS)
    (tmp_path / "b.jsonl.gz").write_bytes(b"nonsense")
    skip = ("--on-bad-record", "skip", "--on-bad-file", "skip", "--output", tmp_path / "out")
    encode = ("encode", "--tokenizer", model_dir, *skip)
    both = ("--input", tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz")
    rows = run(*encode, *both, "--max-bad-records", 2)
    assert rows.code == 1
    assert "more than --max-bad-records=2 allows in the whole run: unit 0 alone has" in rows.err
    assert "alone has 3 bad rows (bad_json: 3)" in rows.err
    files = run(*encode, *both, "--max-bad-records", 5)
    assert files.code == 1
    assert "5 bad rows and 1 bad file (bad_file: 1, bad_json: 5)" in files.err
    assert run(*encode, *both, "--max-bad-records", 6).code == 0


@pytest.mark.parametrize("documents", [6, 8])
def test_counts_of_more_or_fewer_documents_than_were_read_are_refused(
    documents: int, tmp_path: Path
) -> None:
    report = {
        "documents": documents,
        "documents_in": 10,
        "bytes": 60,
        "kept_bytes": 0,
        "occurrences": 0,
        "rejects": {"bad_json": 2, "bad_file": 1},
        "accepted": {"dropped_empty": 1},
        "special_text": {},
        "files": [],
    }
    (tmp_path / REPORT_FOLDER).mkdir()
    (tmp_path / REPORT_FOLDER / "unit-00000.json").write_text(json.dumps(report))
    with pytest.raises(OutputError, match=f"10 documents were read, but {documents} "):
        finish_counts(str(tmp_path), 1, {}, [])
    assert not (tmp_path / "__beam-bpe__/manifest.json").exists()
    report["documents"] = 7
    (tmp_path / REPORT_FOLDER / "unit-00000.json").write_text(json.dumps(report))
    assert finish_counts(str(tmp_path), 1, {}, []).totals.documents == 7
