"""The shard writer: names, borders, sidecars, and nothing half-written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import OutputError
from pipelines.corpus.listing.inputs import InputFile, ReadOptions
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.rejects import Rejects
from pipelines.shards.token_rows import TokenRows
from pipelines.shards.write_shards import ShardGroup, ShardWriter, unit_totals
from pipelines.storage.output_files import HashingFile, publish, write_atomically
from schemas.sidecars import ShardSidecar
from schemas.token_shards import token_shard_schema

SCHEMA = token_shard_schema(pa.uint16())
FILE = InputFile(0, "/in/a.txt", 100, "100 bytes", "text", "none", "a.txt")
UNIT = Unit(3, (FileRange(FILE, 0, 100),))


@dataclass(frozen=True)
class Settings:
    shard_bytes: int
    digest: str = "d" * 64
    compression: str = "none"
    split_names: tuple[str, ...] = ("",)


def rows_of(sizes: list[int], first: int = 0) -> TokenRows:
    """One row per size, with as many ids and bytes of text."""
    columns: dict[str, Any] = {
        "input_ids": [[number % 1000] * size for number, size in enumerate(sizes, first)],
        "document_id": [f"0:{number}" for number in range(first, first + len(sizes))],
        "source": pa.DictionaryArray.from_arrays(pa.array([0] * len(sizes), pa.int32()), ["a.txt"]),
        "byte_start": [0] * len(sizes),
        "part": [0] * len(sizes),
        "is_last": [True] * len(sizes),
    }
    arrays = [
        each if isinstance(each, pa.Array) else pa.array(each, SCHEMA.field(name).type)
        for name, each in columns.items()
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return TokenRows(batch, np.array(sizes, np.int64))


def write(
    output: Path, batches: list[TokenRows], shard_bytes: int, rejects: Rejects | None = None
) -> list[ShardSidecar]:
    group = ShardGroup.of_unit(UNIT)
    with ShardWriter(str(output), group, SCHEMA, Settings(shard_bytes)) as writer:
        for batch in batches:
            writer.write(batch)
        totals = unit_totals(str(output), rejects or Rejects(UNIT, ReadOptions()), {})
        encoded = writer.finish(totals)
    return [msgspec.json.decode(data, type=ShardSidecar) for data in encoded]


SIZES = st.lists(st.integers(0, 9), max_size=30)


@settings(max_examples=50, deadline=None)
@given(SIZES, st.integers(1, 40), st.integers(0, 30))
def test_borders_depend_on_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], shard_bytes: int, split: int
) -> None:
    output = tmp_path_factory.mktemp("out")
    split = min(split, len(sizes))
    batches = [rows_of(sizes[:split]), rows_of(sizes[split:], split)]
    sidecars = write(output, batches, shard_bytes)
    expected: list[list[int]] = [[]]
    for size in sizes:
        if sum(expected[-1]) >= shard_bytes:
            expected.append([])
        expected[-1].append(size)
    assert [sidecar.rows for sidecar in sidecars] == list(map(len, expected))
    assert [sidecar.bytes for sidecar in sidecars] == list(map(sum, expected))
    found = []
    for sidecar in sidecars:
        with pa.memory_map(str(output / sidecar.file)) as file:
            found += pa.ipc.open_file(file).read_all()["input_ids"].to_pylist()
    assert found == [[number] * size for number, size in enumerate(sizes)]


def test_a_sidecar_says_what_its_shard_holds(tmp_path: Path) -> None:
    (first, last) = write(tmp_path, [rows_of([4, 0, 3])], shard_bytes=4)
    path = tmp_path / "shard-00003-000.arrow"
    assert first.file == path.name
    assert first.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert first.file_bytes == path.stat().st_size
    assert (first.rows, first.documents, first.tokens, first.bytes) == (1, 1, 4, 4)
    assert (last.min_id, last.max_id) == (2, 2)
    assert (last.first_document, last.last_document) == ("0:1", "0:2")
    assert first.unit_totals is None
    assert last.unit_totals is not None
    assert last.unit_totals.parts == 2
    on_disk = (tmp_path / "__beam-bpe__/sidecars/shard-00003-001.arrow.json").read_bytes()
    assert msgspec.json.decode(on_disk, type=ShardSidecar) == last


def test_a_unit_without_rows_has_one_empty_shard(tmp_path: Path) -> None:
    (only,) = write(tmp_path, [], shard_bytes=4)
    assert (only.rows, only.min_id, only.first_document) == (0, None, None)
    with pa.memory_map(str(tmp_path / only.file)) as file:
        assert pa.ipc.open_file(file).schema == SCHEMA


def test_rejects_are_written_beside_the_shards(tmp_path: Path) -> None:
    rejects = Rejects(UNIT, ReadOptions(on_bad_record="skip"))
    rejects.bad_record(FILE, reason="bad_json", message="m", byte_offset=5, row=2, raw=b"x")
    (only,) = write(tmp_path, [rows_of([1])], 4, rejects)
    assert only.unit_totals is not None
    assert only.unit_totals.rejects == {"bad_json": 1}
    assert (tmp_path / str(only.unit_totals.rejects_file)).is_file()


def test_writing_again_leaves_the_same_files_and_no_others(tmp_path: Path) -> None:
    write(tmp_path, [rows_of([4, 4, 4])], shard_bytes=4)
    before = {path.name for path in tmp_path.rglob("shard*")}
    write(tmp_path, [rows_of([4, 4])], shard_bytes=4)
    after = {path.name for path in tmp_path.rglob("shard*")}
    assert before - after == {"shard-00003-002.arrow", "shard-00003-002.arrow.json"}
    assert not list((tmp_path / "_temporary").iterdir())


def test_an_error_leaves_no_half_shard(tmp_path: Path) -> None:
    def fail_midway() -> None:
        group = ShardGroup.of_unit(UNIT)
        with ShardWriter(str(tmp_path), group, SCHEMA, Settings(100)) as writer:
            writer.write(rows_of([4]))
            raise KeyError

    with pytest.raises(KeyError):
        fail_midway()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_full_disk_is_reported_with_the_file_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HashingFile, "write", no_space)
    with pytest.raises(OutputError, match=r"shard-00003-000\.arrow.*No space left.*same command"):
        write(tmp_path, [rows_of([4])], shard_bytes=4)


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    write_atomically(str(tmp_path), "rejects/a.jsonl", b"one")
    write_atomically(str(tmp_path), "rejects/a.jsonl", b"two")
    assert (tmp_path / "rejects" / "a.jsonl").read_bytes() == b"two"
    with pytest.raises(OutputError, match="missing"):
        publish(str(tmp_path / "missing"), str(tmp_path / "b"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder"):
        write_atomically(str(tmp_path), "folder", b"x")
