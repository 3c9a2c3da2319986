"""Files that change, vanish or fail while a run reads them never leave half a document after."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from apache_beam.io.filesystems import FileSystems

from bpe.errors import BadFileError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus import read_documents, row_blocks
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import FileRange, Plan, Unit, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects

WORDS = b"some words " * 909
LATER = 2_000_000_000


def planned(path: Path, **options: Any) -> tuple[Plan, ReadOptions]:
    read = ReadOptions(on_bad_file="skip", **options)
    return make_plan(list_inputs([str(path)], read), read, unit_bytes=1), read


def start(unit: Unit, read: ReadOptions) -> tuple[Rejects, Iterator[pa.RecordBatch]]:
    rejects = Rejects(unit, read)
    return rejects, read_unit(unit, read, CutFinder(get_scheme("gpt2")), rejects)


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b".")


def rewrite(path: Path) -> None:
    """As many bytes, another time of modification."""
    path.write_bytes(path.read_bytes().upper())
    os.utime(path, (LATER, LATER))


CHANGES: dict[str, Callable[[Path], None]] = {
    "longer": append,
    "rewritten": rewrite,
    "gone": Path.unlink,
}
changes = pytest.mark.parametrize("change", CHANGES)


@changes
def test_a_file_of_several_units_is_whole_or_stops_the_run(change: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(WORDS)
    plan, read = planned(path, range_bytes=2000)
    for unit in plan.units[:2]:
        assert list(start(unit, read)[1])
    CHANGES[change](path)
    rejects, batches = start(plan.units[2], read)
    with pytest.raises(BadFileError, match=r"a\.txt: .*--on-bad-file=skip cannot leave it out"):
        list(batches)
    assert not rejects.counts
    strict = ReadOptions(range_bytes=2000)
    with pytest.raises(BadFileError, match=r"a\.txt: (changed|was there)") as caught:
        list(start(plan.units[2], strict)[1])
    assert "skip" not in str(caught.value)


@changes
def test_a_file_of_one_unit_is_left_out_whole(change: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(WORDS)
    plan, read = planned(path)
    assert len(plan.units) == 1
    CHANGES[change](path)
    rejects, batches = start(plan.units[0], read)
    assert not list(batches)
    assert rejects.counts == {"bad_file": 1}


@changes
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl"])
def test_a_file_that_changes_while_it_is_read_stops_the_run(
    change: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_blocks, "READ_BYTES", 64)
    monkeypatch.setattr(read_documents, "BATCH_BYTES", 2)
    content = b'{"text": "row"}\n' * 100
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    options = {} if name == "a.jsonl" else {"input_format": "lines"}
    plan, read = planned(path, **options)
    # The open file goes on giving the old content, as a file on storage may or may not.
    old = FileSystems.open(str(path), compression_type="uncompressed").read()
    monkeypatch.setattr(FileSystems, "open", lambda *_, **__: io.BytesIO(old))
    _, batches = start(plan.units[0], read)
    assert next(batches).num_rows
    CHANGES[change](path)
    with pytest.raises(BadFileError, match="--on-bad-file=skip cannot leave it out"):
        list(batches)


class _TornFile(io.BytesIO):
    """A file whose disk fails."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError(5, f"no {size} bytes")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.zst"])
def test_a_file_that_cannot_be_read_is_a_bad_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(WORDS)
    plan, read = planned(path)
    monkeypatch.setattr(FileSystems, "open", lambda *_, **__: _TornFile())
    rejects, batches = start(plan.units[0], read)
    assert not list(batches)
    assert rejects.counts == {"bad_file": 1}
    part = Unit(0, (FileRange(plan.files[0], 0, 50),))
    if name == "a.txt":
        with pytest.raises(BadFileError, match=r"cannot be read: .*Errno 5"):
            list(start(part, read)[1])


def test_a_bad_file_of_many_ranges_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(os.urandom(100))
    plan, read = planned(path, range_bytes=10)
    assert len(plan.units) > 9
    sinks = [start(unit, read) for unit in plan.units]
    assert not [batch for _, batches in sinks for batch in batches]
    assert sum(sink.counts["bad_file"] for sink, _ in sinks) == 1
    assert sum(len(sink.to_jsonl().splitlines()) for sink, _ in sinks) == 1


@pytest.mark.parametrize("lost", ["first", "last"])
@pytest.mark.parametrize("command", ["train", "encode"])
def test_a_document_without_its_start_or_end_fails_the_balance(
    lost: str,
    command: str,
    model_dir: Path,
    tmp_path: Path,
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(WORDS)
    read = read_documents._read

    def lose(range_: FileRange, *others: Any) -> Iterator[pa.RecordBatch]:
        is_lost = range_.start == 0 if lost == "first" else range_.end == len(WORDS)
        return iter(()) if is_lost else read(range_, *others)

    monkeypatch.setattr(read_documents, "_read", lose)
    special = {"train": ("--vocab-size", 300), "encode": ("--tokenizer", model_dir)}[command]
    output = tmp_path / "out"
    done = run(command, *special, "--input", path, "--range-bytes", 2000, "--output", output)
    assert done.code == 1
    assert "documents were read" in done.err
    assert not list(output.rglob("manifest.json"))
