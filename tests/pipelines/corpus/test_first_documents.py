"""`--limit`: the first documents of the input, whoever reads them and however it is cut."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import BadFileError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import Unit, make_plan, unpacked_guess
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.settings import reading_settings
from pipelines.shards.manifest import read_manifest
from pipelines.shards.token_shards import TokenShards
from pipelines.training.rounds.options import RoundOptions

Found = tuple[list[tuple[str, bytes]], Counter[str], int]
TEXTS = [None if row % 5 == 3 else f"text {row} " * (row % 7) for row in range(40)]


def table(kind: str) -> bytes:
    sink = io.BytesIO()
    data = pa.table({"text": TEXTS})
    if kind == "parquet":
        pq.write_table(data, sink, row_group_size=6)
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with new(sink, data.schema) as writer:
            writer.write_table(data, max_chunksize=6)
    return sink.getvalue()


def files(kind: str) -> dict[str, bytes]:
    """Names and contents of files of a kind, forty documents or rows in each second one."""
    if kind in {"parquet", "arrow", "arrows"}:
        return {f"a.{kind}": table(kind), f"b.{kind}": table(kind)}
    rows = [json.dumps({"text": text}) + "\n" for text in TEXTS]
    if kind.startswith("jsonl"):
        data = "".join([*rows[:9], "nonsense\n", "\n", *rows[9:]]).encode()
    elif kind == "csv":
        data = (
            b"text,n\n"
            + "".join(
                f'"{text or ""}\n",{row}\n' if row % 6 else "bad\n"
                for row, text in enumerate(TEXTS)
            ).encode()
        )
    elif kind == "text":
        return {f"{row:02}.txt": (text or "").encode() * 9 for row, text in enumerate(TEXTS)}
    else:
        data = "".join(f"{text or ''}|" for text in TEXTS).encode()
    name = {"lines": "txt", "separator": "txt", "jsonl.gz": "jsonl"}.get(kind, kind)
    packed = gzip.compress(data, mtime=0) if kind.endswith(".gz") else data
    name += ".gz" if kind.endswith(".gz") else ""
    return {f"a.{name}": packed, f"b.{name}": packed}


OPTIONS: dict[str, dict[str, Any]] = {
    "lines": {"document_separator": b" "},
    "separator": {"document_separator": b"|"},
}
KINDS = (
    *("jsonl", "jsonl.gz", "csv", "parquet", "arrow", "arrows"),
    *("text", "lines"),
    "separator",
)


def read(folder: Path, *, unit_bytes: int = 1, **options: Any) -> Found:
    """Documents (id and text), what was set aside, and how many documents were met."""
    chosen = ReadOptions(**options)
    documents: list[tuple[str, bytes]] = []
    counts, met = Counter[str](), 0
    plan = make_plan(list_inputs([str(folder)], chosen), chosen, unit_bytes=unit_bytes)
    for unit in plan.units:
        assert Unit.from_json(unit.to_json()) == unit
        rejects = Rejects(unit, chosen)
        for batch in read_unit(unit, chosen, CutFinder(get_scheme("gpt2")), rejects):
            for row in batch.to_pylist():
                if row["is_first"]:
                    documents.append((row["document_id"], b""))
                documents[-1] = (documents[-1][0], documents[-1][1] + row["text"])
        counts += rejects.counts
        met += rejects.documents_in
    return documents, counts, met


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_documents_are_those_of_the_whole_input(kind: str, tmp_path: Path) -> None:
    for name, data in files(kind).items():
        (tmp_path / name).write_bytes(data)
    options = {"on_bad_record": "skip", **OPTIONS.get(kind, {})}
    documents, _, every = read(tmp_path, **options)
    for limit in (1, 2, 5, 10, 39, 40, 41, 45, every - 1, every, every + 7):
        found = [
            read(tmp_path, limit=limit, range_bytes=size, unit_bytes=unit_bytes, **options)
            for size, unit_bytes in ((17, 1), (300, 900), (1 << 20, 1 << 20))
        ]
        assert found[0] == found[1] == found[2]
        kept, counts, met = found[0]
        assert met == min(limit, every)
        assert kept == documents[: len(kept)]
        assert len(kept) == met - counts.total()
        if every > 60:
            dropped = read(tmp_path, limit=limit, empty="drop", **options)
            assert dropped[0] == [each for each in kept if each[1]]


def test_what_lies_behind_is_not_read(tmp_path: Path) -> None:
    rows = [json.dumps({"text": "good"}) + "\n"] * 3
    (tmp_path / "a.jsonl").write_text("".join([*rows, "nonsense\n" * 9]))
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    assert read(tmp_path, limit=3) == ([(f"0:{n * 17}", b"good") for n in range(3)], {}, 3)
    inputs = list_inputs([str(tmp_path)], ReadOptions(limit=3))
    [file] = inputs.files
    assert (file.stop, unpacked_guess(file)) == (35, 12)
    assert "--limit: only the 3 first documents are read, of 1 of 2 files" in inputs.notes
    with pytest.raises(BadFileError, match=r"b\.jsonl\.gz: "):
        read(tmp_path, limit=13, on_bad_record="skip")
    _, counts, met = read(tmp_path, limit=13, on_bad_record="skip", on_bad_file="skip")
    assert (counts, met) == ({"bad_json": 9, "bad_file": 1}, 12)


def test_refused_files_are_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    for name in "bcd":
        (tmp_path / f"{name}.txt").write_text(name)
    documents, counts, _ = read(tmp_path, limit=2, on_bad_file="skip")
    assert documents == [("1:0", b"b"), ("2:0", b"c")]
    assert counts == {"bad_file": 1}


def test_a_limit_is_among_the_settings() -> None:
    plain, limited = ReadOptions(), ReadOptions(limit=5)
    assert reading_settings(limited) == {**reading_settings(plain), "limit": 5}
    with pytest.raises(SettingsError, match="--limit must be at least 1"):
        ReadOptions(limit=0)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("jsonl", ("--range-bytes", 1024, "--on-bad-record", "skip")),
        ("parquet", ("--shuffle", "global")),
        ("arrow", ("--pack", 8, "--pad-id", 0)),
        ("jsonl.gz", ("--split", "a=0.5,b=0.5", "--on-bad-record", "skip")),
    ],
)
def test_encode_takes_the_first_documents(
    kind: str, layout: tuple[object, ...], tmp_path: Path, model_dir: Path, run: Any
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for name, data in files(kind).items():
        (source / name).write_bytes(data)
    output = tmp_path / "out"
    given = ("encode", "--input", source, "--tokenizer", model_dir, "--output", output)
    encode = (*given, "--nulls", "empty", *layout)
    done = run(*encode, "--limit", 43)
    assert done.code == 0, done.err
    assert "limit            first 43 documents only\n" in done.out
    manifest = read_manifest(str(output))
    assert manifest.settings["limit"] == 43
    assert manifest.totals.documents_in == 43
    assert manifest.totals.documents == 43 - kind.startswith("jsonl")
    verified = run("verify", output, "--input", source)
    assert verified.code == 0, verified.err
    assert "encoded again from the input" in verified.out
    assert "is finished" in run(*encode, "--limit", 43).err
    assert "limit: was 43, now 44" in run(*encode, "--limit", 44).err
    assert "limit: was 43, now not given" in run(*encode).err
    if kind == "jsonl":
        limited = [list(row) for row in TokenShards(output)]
        assert run(*encode, "--overwrite").code == 0
        assert limited == [list(row) for row in TokenShards(output)][:42]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["gpt2", "none", "rounds"])
def test_train_takes_the_first_documents(scheme: str, tmp_path: Path, run: Any) -> None:
    texts = [text or "" for text in TEXTS]
    (tmp_path / "whole.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    few = "".join(json.dumps({"text": text}) + "\n" for text in texts[:11])
    (tmp_path / "few.jsonl").write_text(few)
    how = ("--pretokenizer", "none") if scheme != "gpt2" else ()
    how += ("--engine", "rounds") if scheme == "rounds" else ()
    models = []
    for name, limit in (("whole", ("--limit", 11)), ("few", ())):
        output = tmp_path / name
        given = ("train", "--input", f"{output}.jsonl", "--vocab-size", 280, "--output", output)
        done = run(*given, *how, *limit)
        assert done.code == 0, done.err
        assert ("limit            first 11 documents only\n" in done.out) == bool(limit)
        assert "documents        11\n" in done.out
        models.append((output / "merges.txt").read_bytes())
    assert models[0] == models[1]
    record = json.loads((tmp_path / "whole/config.json").read_bytes())["training"]
    assert record["inputs"]["reading"]["limit"] == 11
    refused = run(
        "train", "--from-counts", tmp_path, "--vocab-size", 260, "--limit", 3, "--output", 1
    )
    assert "--limit counts documents of --input" in refused.err


def test_a_limit_makes_no_sample_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text((json.dumps({"text": "x" * 30}) + "\n") * 5)
    options = ReadOptions(limit=2)
    plan = make_plan(list_inputs([str(path)], options), options)
    assert sum(map(unpacked_guess, plan.files)) == 60
    assert RoundOptions().sample_of(60).is_whole
