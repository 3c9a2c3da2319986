"""So many rows of a Parquet file at a time that their text is bounded; no fewer than need be."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.parquet import parquet_batches, parquet_dictionaries
from pipelines.corpus.parquet.parquet_batches import BatchSizes, open_parquet
from pipelines.corpus.parquet.parquet_dictionaries import find_dictionary
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.table_columns import find_columns

LONG = "x" * 1000
WORST = 50_000  # in place of 256 MiB: so many rows of `LONG` are 50


def rows_at_a_time(
    path: Path, table: pa.Table, *, id_field: str | None = None, field: str = "text", **options: Any
) -> int:
    """What is found for the first row group of a table that is written to a file."""
    pq.write_table(table, path, **options)
    parquet = open_parquet(path)
    wanted = ReadOptions(text_field=field, id_field=id_field)
    columns = find_columns(parquet.schema_arrow, wanted, str(path))
    return BatchSizes(pa.OSFile(str(path)), parquet, columns).rows(0)


def column_bytes(path: Path) -> int:
    """Bytes that the first column of the first row group unpacks to."""
    return int(pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size)


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_batches, "_WORST_BATCH_BYTES", WORST)


REPEATED = [LONG, "y"] * 2000
KINDS = {
    "string": pa.array(REPEATED),
    "large_string": pa.array(REPEATED, pa.large_string()),
    "binary": pa.array(REPEATED, pa.binary()),
    "string_view": pa.array(REPEATED, pa.string_view()),
    "nulls first": pa.array([None] * 2000 + REPEATED),
    "one text": pa.array([LONG] * 4000),
}


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_stored_once_may_fill_every_row(
    kind: str, compression: str, tmp_path: Path
) -> None:
    table = pa.table({"text": KINDS[kind]})
    assert rows_at_a_time(tmp_path / "a.parquet", table, compression=compression) == 50


def test_a_field_inside_a_column_and_an_id_may_repeat_too(tmp_path: Path) -> None:
    rows = [{"b": text} for text in REPEATED]
    table = pa.table({"a": rows, "id": ["z" * 5000, "i"] * 2000})
    path = tmp_path / "a.parquet"
    assert rows_at_a_time(path, table, field="a.b") == 50
    assert rows_at_a_time(path, table, field="a.b", id_field="id") == 10


def test_dictionaries_that_are_not_understood_are_taken_for_one_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": REPEATED})
    monkeypatch.setattr(parquet_dictionaries, "_CODECS", {})
    # The size of the page is in its header: two texts, and four bytes before each.
    assert rows_at_a_time(path, table) == WORST // (len(LONG) + 1 + 8)
    monkeypatch.setattr(parquet_dictionaries, "_PLAIN", ())
    assert rows_at_a_time(path, table) == WORST // column_bytes(path)


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_damaged_dictionaries_are_no_fault(place: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": REPEATED}), path)
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data[chunk.dictionary_page_offset + place] ^= 0xFF
    page = find_dictionary(pa.BufferReader(bytes(data)), chunk)
    if page is not None:
        assert page.size >= 0
        page.longest()
    with_end = data[: chunk.dictionary_page_offset + place]
    assert find_dictionary(pa.BufferReader(bytes(with_end)), chunk) is None or place > 10


def test_texts_that_begin_alike_are_taken_for_as_long_as_a_page(tmp_path: Path) -> None:
    options = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    table = pa.table({"text": REPEATED})
    path = tmp_path / "a.parquet"
    assert rows_at_a_time(path, table, **options) == max(1, WORST // column_bytes(path))


def test_texts_that_do_not_repeat_are_read_in_large_batches(tmp_path: Path) -> None:
    texts = [f"{number:08d}" for number in range(5000)]
    plain = {"use_dictionary": False}
    path = tmp_path / "a.parquet"
    assert rows_at_a_time(path, pa.table({"text": texts}), **plain) == 1 << 16
    # A dictionary of short texts is no reason to read few rows.
    assert rows_at_a_time(path, pa.table({"text": texts})) == WORST // 8
    # Nor is one that stays a dictionary when it is read.
    coded = pa.table({"text": pa.array(REPEATED).dictionary_encode()})
    assert rows_at_a_time(path, coded) == 1 << 16


def test_a_short_dictionary_of_long_texts_does_not_fill_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_batches, "_WORST_BATCH_BYTES", 16 << 20)
    texts = pa.array(["x" * (1 << 20), "y"]).take(pa.array([0] * 500 + [1]))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path, compression="zstd")
    del texts
    assert path.stat().st_size < 10_000
    options = ReadOptions()
    unit = make_plan(list_inputs([str(path)], options), options).units[0]
    before = pa.total_allocated_bytes()
    batches = read_unit(unit, options, CutFinder(get_scheme("gpt2")), Rejects(unit, options))
    for batch in islice(batches, 3):
        assert batch.num_rows
        assert pa.total_allocated_bytes() - before < 64 << 20
