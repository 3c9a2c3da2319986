"""Tables of documents in every table format, and reading them again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from schemas.documents import DOCUMENT_PIECES

TEXTS = ["first", "zweites é", "", "日本語 🎉", " \n", "a" * 300, "last\0"] * 5
IDS = [f"x/{number}" for number in range(len(TEXTS))]


def write_parquet(path: Path, table: pa.Table, rows: int, **options: Any) -> None:
    pq.write_table(table, path, row_group_size=rows, **options)


def write_arrow(path: Path, table: pa.Table, rows: int, *, packed: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_stream(path: Path, table: pa.Table, rows: int, *, legacy: bool = False) -> None:
    options = pa.ipc.IpcWriteOptions(use_legacy_format=legacy)
    with pa.ipc.new_stream(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


Writer = Callable[..., None]
WRITERS: dict[str, tuple[Writer, dict[str, Any]]] = {
    "a.parquet": (write_parquet, {}),
    "plain.parquet": (write_parquet, {"use_dictionary": False, "compression": "none"}),
    "v2.parquet": (write_parquet, {"data_page_version": "2.0", "compression": "zstd"}),
    "delta.parquet": (
        write_parquet,
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
    ),
    "a.arrow": (write_arrow, {}),
    "packed.feather": (write_arrow, {"packed": "lz4"}),
    "zstd.ipc": (write_arrow, {"packed": "zstd"}),
    "stream.arrow": (write_stream, {}),
    "a.arrows": (write_stream, {}),
    "legacy.arrows": (write_stream, {"legacy": True}),
}
writers = pytest.mark.parametrize("name", WRITERS)


def write(folder: Path, name: str, table: pa.Table, rows: int) -> Path:
    writer, options = WRITERS[name]
    path = folder / name
    writer(path, table, rows, **options)
    return path


def read(path: Path | str, unit_bytes: int = 1, **options: Any) -> list[tuple[str, int, bytes]]:
    """Id, place and text of each document."""
    read_options = ReadOptions(**options)
    plan = make_plan(list_inputs([str(path)], read_options), read_options, unit_bytes=unit_bytes)
    finder = CutFinder(get_scheme("gpt2"))
    found: list[tuple[str, int, bytes]] = []
    for unit in plan.units:
        rejects = Rejects(unit, read_options)
        for batch in read_unit(unit, read_options, finder, rejects):
            assert batch.schema.equals(DOCUMENT_PIECES, check_metadata=True)
            batch.validate(full=True)
            rows = batch.to_pylist()
            assert all(row["is_first"] and row["is_last"] and not row["part"] for row in rows)
            found += [(row["document_id"], row["byte_start"], row["text"]) for row in rows]
    return found
