"""Rows whose text is null: a policy of their own, apart from damaged records."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import BadRecordError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.settings import reading_settings, refused_rejects
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import read_manifest
from pipelines.training.count_artifact import read_count_manifest

TEXTS = ["a", None, "", "b", None]
FORMATS = ("jsonl", "parquet", "arrow")
CODED = {"parquet dictionary": "parquet", "arrow dictionary": "arrow", "arrow nulls": "arrow"}


def null_file(folder: Path, kind: str) -> Path:
    """A file with `TEXTS`; of null type, with nothing but nulls."""
    path = folder / f"in.{CODED.get(kind, kind)}"
    if kind == "jsonl":
        rows = [json.dumps({"id": str(row), "text": text}) for row, text in enumerate(TEXTS)]
        path.write_text("".join(f"{row}\n" for row in rows))
        return path
    texts = pa.nulls(3) if kind.endswith("nulls") else pa.array(TEXTS)
    if kind.endswith("dictionary"):
        texts = texts.dictionary_encode()
    table = pa.table({"text": texts, "id": list(map(str, range(len(texts))))})
    sink = io.BytesIO()
    if path.suffix == ".parquet":
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    path.write_bytes(sink.getvalue())
    return path


def read(path: Path, **options: Any) -> tuple[list[tuple[str, bytes]], Counter[str], Counter[str]]:
    """Ids and texts, what was set aside and what was accepted."""
    chosen = ReadOptions(id_field="id", **options)
    documents: list[tuple[str, bytes]] = []
    counts, accepted = Counter[str](), Counter[str]()
    for unit in make_plan(list_inputs([str(path)], chosen), chosen).units:
        rejects = Rejects(unit, chosen)
        for batch in read_unit(unit, chosen, CutFinder(get_scheme("gpt2")), rejects):
            documents += [(row["document_id"], row["text"]) for row in batch.to_pylist()]
        counts += rejects.counts
        accepted += rejects.accepted
    return documents, counts, accepted


@pytest.mark.parametrize("kind", [*FORMATS, "parquet dictionary", "arrow dictionary"])
def test_nulls_have_a_policy_apart_from_damaged_records(kind: str, tmp_path: Path) -> None:
    path = null_file(tmp_path, kind)
    kept = [("0", b"a"), ("2", b""), ("3", b"b")]
    every = [(str(row), (text or "").encode()) for row, text in enumerate(TEXTS)]
    for options in ({}, {"nulls": "fail"}, {"nulls": "fail", "on_bad_record": "skip"}):
        with pytest.raises(BadRecordError, match=r"'text' is null.*--nulls=skip.*--nulls=empty"):
            read(path, **options)
    for options in ({"nulls": "skip"}, {"on_bad_record": "skip"}):
        assert read(path, **options) == (kept, {"null_text": 2}, {"empty": 1})
    for policy in ("fail", "skip"):
        found = read(path, nulls="empty", on_bad_record=policy)
        assert found == (every, {}, {"null_text": 2, "empty": 3})
    found = read(path, nulls="empty", empty="drop")
    assert found == (every[::3], {}, {"null_text": 2, "empty": 3, "dropped_empty": 3})


def test_a_column_of_nothing_but_nulls_is_empty_documents(tmp_path: Path) -> None:
    path = null_file(tmp_path, "arrow nulls")
    assert read(path, nulls="empty")[0] == [("0", b""), ("1", b""), ("2", b"")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"id": "1"}', "missing_text"),
        ('{"id": null, "text": null}', "null_id"),
        ('{"id": "1", "text": 3}', "text_not_string"),
        ('{"id": "1", "text": null', "row_cut"),
    ],
)
def test_nulls_as_empty_documents_do_not_hide_damage(row: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "0", "text": null}\n' + row)
    documents, counts, accepted = read(path, nulls="empty", on_bad_record="skip")
    assert (documents, counts, accepted["null_text"]) == ([("0", b"")], {reason: 1}, 1)


def test_skipped_nulls_are_none_of_the_bad_records_that_are_limited(tmp_path: Path) -> None:
    path = null_file(tmp_path, "jsonl")
    limited = {"on_bad_record": "skip", "max_bad_records": 1}
    assert read(path, nulls="skip", **limited)[1] == {"null_text": 2}
    with pytest.raises(BadRecordError, match=r"max-bad-records=1.*null_text: 2"):
        read(path, **limited)


def test_only_nulls_as_empty_documents_change_the_settings() -> None:
    plain, skip, empty = (ReadOptions(nulls=nulls) for nulls in (None, "skip", "empty"))
    assert reading_settings(plain) == reading_settings(skip)
    assert reading_settings(empty) == {**reading_settings(plain), "nulls": "empty"}
    assert EncodeSettings("x", plain).digest == EncodeSettings("x", skip).digest
    assert EncodeSettings("x", plain).digest != EncodeSettings("x", empty).digest
    nulls = {"null_text": 1}
    assert refused_rejects(nulls, plain)
    assert not refused_rejects(nulls, skip)
    assert refused_rejects({**nulls, "bad_json": 1}, skip)
    assert refused_rejects(nulls, ReadOptions(nulls="fail", on_bad_record="skip"))


def test_nulls_cannot_be_empty_documents_without_an_id() -> None:
    with pytest.raises(SettingsError, match="--nulls=empty: 'text' is the --id-field too"):
        ReadOptions(id_field="text", nulls="empty")
    with pytest.raises(SettingsError, match="--nulls must be one of fail, skip, empty"):
        ReadOptions(nulls="drop")


def test_commands_take_the_policy(tmp_path: Path, model_dir: Path, run: Any) -> None:
    given = ("--input", null_file(tmp_path, "parquet"), "--id-field", "id")
    output = tmp_path / "out"
    encode = ("encode", *given, "--tokenizer", model_dir, "--output", output)
    shown = run("plan", *given)
    assert shown.code == 0
    assert "nulls: 2 of 5 rows read; train and encode stop at them" in shown.out
    assert "nulls: 2 of 5 rows read; they are set aside" in run("plan", *given, "--nulls=skip").out
    assert run(*encode).code == 1
    done = run(*encode, "--nulls", "skip")
    assert done.code == 0, done.err
    assert "null_text 2" in done.out
    assert run(*encode, "--nulls", "skip").code == 0
    refused = run(*encode)
    assert "left out bad rows or files" in refused.err
    assert 'nulls: was not given, now "empty"' in run(*encode, "--nulls", "empty").err
    assert run(*encode, "--nulls", "empty", "--overwrite").code == 0
    manifest = read_manifest(str(output))
    assert manifest.settings["nulls"] == "empty"
    assert (manifest.totals.documents, manifest.totals.accepted["null_text"]) == (5, 2)
    trained = run(
        *("train", *given, "--vocab-size", 257, "--output", tmp_path / "model"),
        *("--nulls", "empty", "--min-frequency", 1),
    )
    assert trained.code == 0, trained.err
    counts = read_count_manifest(str(tmp_path / "model" / "counts"))
    assert counts is not None
    assert (counts.totals.documents, counts.totals.accepted["null_text"]) == (5, 2)


@pytest.mark.parametrize("row", ['{"text": null}\n', "nonsense\n"])
def test_a_run_whose_rows_are_all_set_aside_fails(
    row: str, tmp_path: Path, model_dir: Path, run: Any
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(row * 3)
    for command, options in (
        ("encode", ("--tokenizer", model_dir)),
        ("encode", ("--tokenizer", model_dir, "--shuffle", "global")),
        ("train", ("--vocab-size", 300)),
        ("train", ("--vocab-size", 300, "--pretokenizer", "none")),
    ):
        output = tmp_path / f"out-{len(options)}-{command}"
        given = (command, "--input", path, "--output", output, *options)
        refused = run(*given, "--on-bad-record", "skip")
        assert refused.code == 1
        assert "all of the input was set aside, 3 bad rows" in refused.err
        assert not list(output.rglob("manifest.json"))
        assert not (output / "config.json").exists()
        # The same command again ends in the same way.
        assert run(*given, "--on-bad-record", "skip").code == 1
