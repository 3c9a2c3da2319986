"""Parquet and Arrow files give the same documents however they are written, cut and stored."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe.errors import BadFileError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus import table_columns, table_files
from pipelines.corpus.arrow.arrow_footer import batch_places, batch_rows
from pipelines.corpus.listing.inputs import InputFile, ReadOptions, list_inputs
from pipelines.corpus.parquet import read_parquet
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from tests.pipelines.written_tables import (
    IDS,
    TEXTS,
    read,
    write,
    write_arrow,
    writers,
)


@pytest.mark.one_in(5)
@writers
def test_rows_are_the_same_for_every_range_size(name: str, tmp_path: Path) -> None:
    table = pa.table({"n": range(len(TEXTS)), "text": TEXTS, "url": IDS, "x": [[1]] * len(TEXTS)})
    places = [(f"0:{row}", row) for row in range(len(TEXTS))]
    expected = [(*place, text.encode()) for place, text in zip(places, TEXTS, strict=True)]
    named = [(id_, row, text) for id_, (_, row, text) in zip(IDS, expected, strict=True)]
    for rows, range_bytes in ((1, 301), (9, 97), (9, 1 << 20), (1000, 600)):
        path = write(tmp_path, name, table, rows)
        for unit_bytes in (1, 1 << 30):
            options: dict[str, Any] = {"range_bytes": range_bytes, "unit_bytes": unit_bytes}
            assert read(path, **options) == expected
        assert read(path, id_field="url", **options) == named


COLUMNS: dict[str, Callable[[], pa.Array]] = {
    "string": lambda: pa.array(TEXTS, pa.string()),
    "large_string": lambda: pa.array(TEXTS, pa.large_string()),
    "string_view": lambda: pa.array(TEXTS, pa.string_view()),
    "binary": lambda: pa.array([text.encode() for text in TEXTS], pa.binary()),
    "large_binary": lambda: pa.array([text.encode() for text in TEXTS], pa.large_binary()),
    "binary_view": lambda: pa.array([text.encode() for text in TEXTS], pa.binary_view()),
    "dictionary": lambda: pa.array(TEXTS).dictionary_encode(),
    "dictionary of large_binary": lambda: pa.DictionaryArray.from_arrays(
        pa.array(TEXTS).dictionary_encode().indices.cast(pa.uint8()),
        pa.array(TEXTS).unique().cast(pa.large_string()).view(pa.large_binary()),
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "packed.feather", "a.arrows"])
@pytest.mark.parametrize("run_bytes", [1, 50, 4 << 20])
def test_text_of_every_type_is_read(
    kind: str, name: str, run_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_columns, "_RUN_BYTES", run_bytes)
    column = COLUMNS[kind]()
    path = write(tmp_path, name, pa.table({"text": column, "id": column}), 8)
    expected = [(text, row, text.encode()) for row, text in enumerate(TEXTS)]
    assert read(path, id_field="id") == expected


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("name", ["a.parquet", "plain.parquet", "a.arrow", "packed.feather"])
def test_text_and_ids_of_one_size_are_read(*, name: str, coded: bool, tmp_path: Path) -> None:
    texts = [b"abc", b"\xff\0z", "日".encode()] * 7
    ids = [b"%04d" % row for row in range(len(texts))]
    columns = {"text": pa.array(texts, pa.binary(3)), "id": pa.array(ids, pa.binary(4))}
    if coded:
        columns = {key: column.dictionary_encode() for key, column in columns.items()}
    path = write(tmp_path, name, pa.table(columns), 4)
    expected = [(ids[row].decode(), row, text) for row, text in enumerate(texts)]
    assert read(path, id_field="id", range_bytes=300) == expected


@pytest.mark.parametrize("kind", ["int8", "uint64", "dictionary"])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_integers_are_ids(kind: str, name: str, tmp_path: Path) -> None:
    numbers = [5, 100, 5, 0]
    ids = pa.array(numbers).dictionary_encode() if kind == "dictionary" else pa.array(numbers, kind)
    path = write(tmp_path, name, pa.table({"text": list("abcd"), "id": ids}), 3)
    assert [name for name, _, _ in read(path, id_field="id")] == ["5", "100", "5", "0"]


@writers
def test_a_field_may_lie_inside_columns(name: str, tmp_path: Path) -> None:
    rows = [
        {"doc": {"body": {"text": "in", "n": 1}, "id": 3}, "text": "out", "doc.id": "dots"},
        {"doc": {"body": None, "id": 4}, "text": "out", "doc.id": "dots"},
        {"doc": None, "text": None, "doc.id": None},
    ]
    path = write(tmp_path, name, pa.Table.from_pylist(rows), 10)
    options: dict[str, Any] = {"text_field": "doc.body.text", "on_bad_record": "skip"}
    assert read(path, **options) == [("0:0", 0, b"in")]
    # A column of the very name goes first.
    assert read(path, id_field="doc.id", **options) == [("dots", 0, b"in")]
    plain = pa.Table.from_pylist(rows).drop_columns(["doc.id"])
    path = write(tmp_path, name, plain, 10)
    assert read(path, id_field="doc.id", **options) == [("3", 0, b"in")]


WRONG_COLUMNS = [
    ({"text_field": "body"}, r"no column 'body'; there are: 'text', 'n', 'doc', 'list'; .*--text-"),
    ({"text_field": "n"}, r"'n' is of type int64, not text or bytes"),
    ({"text_field": "list"}, r"'list' is of type (large_)?list<.*>, not text"),
    ({"text_field": "doc.x"}, r"no column 'x' in 'doc'; there are: 'a'"),
    ({"text_field": "text.x"}, r"no column 'x' in 'text'; it is of type string"),
    ({"text_field": "doc.a.x"}, r"no column 'x' in 'doc\.a'; it is of type double"),
    ({"id_field": "doc.a"}, r"'doc\.a' is of type double, neither text nor integer; .*--id-field"),
    ({"id_field": "url"}, r"no column 'url'.*--id-field"),
]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
@pytest.mark.parametrize(("options", "message"), WRONG_COLUMNS)
def test_columns_that_are_not_there_are_named(
    options: dict[str, Any], message: str, name: str, tmp_path: Path
) -> None:
    table = pa.table({"text": ["a"], "n": [1], "doc": [{"a": 0.5}], "list": [["b"]]})
    path = write(tmp_path, name, table, 1)
    with pytest.raises(BadFileError, match=message) as caught:
        read(path, **options)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
def test_two_columns_of_one_name_are_refused(name: str, tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    path = write(tmp_path, name, table, 1)
    with pytest.raises(BadFileError, match="2 columns are called 'text'"):
        read(path)


@writers
def test_tables_without_rows_are_no_documents(name: str, tmp_path: Path) -> None:
    assert read(write(tmp_path, name, pa.table({"text": pa.array([], pa.string())}), 5)) == []


def test_a_dictionary_of_long_texts_is_unpacked_piece_by_piece(tmp_path: Path) -> None:
    values = pa.array(["x" * (3 << 20), "y"])
    indices = pa.array(np.tile([0, 1, 1, 1], 500), pa.int32())
    table = pa.table({"text": pa.DictionaryArray.from_arrays(indices, values)})
    path = write(tmp_path, "a.arrow", table, 2000)
    options = ReadOptions()
    unit = make_plan(list_inputs([str(path)], options), options).units[0]
    before = pa.total_allocated_bytes()
    rows = 0
    for batch in read_unit(unit, options, CutFinder(get_scheme("gpt2")), Rejects(unit, options)):
        rows += batch.num_rows
        assert pa.total_allocated_bytes() - before < 64 << 20
    assert rows == 2000


def test_a_large_row_group_is_never_in_memory_whole(tmp_path: Path) -> None:
    rows, width = 3000, 50_000
    letters = np.random.default_rng(7).integers(97, 123, rows * width, np.uint8).tobytes()
    texts = [letters[start : start + width] for start in range(0, len(letters), width)]
    path = tmp_path / "a.parquet"
    # By default a page has 1024 rows at least, and a page is what Parquet readers take whole.
    pq.write_table(
        pa.table({"text": texts}), path, row_group_size=rows, write_batch_size=20, compression=None
    )
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    del texts, letters
    options = ReadOptions()
    units = make_plan(list_inputs([str(path)], options), options).units
    before, most, found = pa.total_allocated_bytes(), 0, 0
    for unit in units:
        rejects = Rejects(unit, options)
        for batch in read_unit(unit, options, CutFinder(get_scheme("gpt2")), rejects):
            found += batch.num_rows
            most = max(most, pa.total_allocated_bytes() - before)
    assert found == rows
    assert most < 40 << 20


class _ShortReads(io.BytesIO):
    """Gives fewer bytes than asked for, as sockets do; may fail."""

    fails_at: int | None = None

    def read(self, size: int | None = -1) -> bytes:
        if self.fails_at is not None and self.tell() >= self.fails_at:
            raise OSError(5, "disk on fire")
        return super().read(min(size or 0, 50) if size != -1 else 50)


@pytest.fixture
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Treats local files as those of another file system."""
    monkeypatch.setattr(table_files, "is_local", lambda _: False)
    monkeypatch.setattr("pipelines.corpus.plan.is_local", lambda _: False)

    def open_short(path: str, **_: Any) -> io.BytesIO:
        return _ShortReads(Path(path).read_bytes())

    monkeypatch.setattr(table_files.FileSystems, "open", open_short)
    yield
    _ShortReads.fails_at = None


@writers
@pytest.mark.usefixtures("_elsewhere")
def test_files_of_other_file_systems_are_read(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, pa.table({"text": TEXTS, "n": range(len(TEXTS))}), 4)
    for range_bytes in (100, 1 << 20):
        assert [text.decode() for _, _, text in read(path, range_bytes=range_bytes)] == TEXTS


@writers
@pytest.mark.usefixtures("_elsewhere")
def test_a_file_that_cannot_be_read_is_a_bad_file(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name, pa.table({"text": TEXTS}), 4)
    for place in range(0, path.stat().st_size, 150):
        _ShortReads.fails_at = place
        with pytest.raises(BadFileError, match=r"cannot be read: .*disk on fire") as caught:
            read(path)
        assert str(path) in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(0, 5), max_size=8), st.sampled_from([None, "lz4"]))
def test_rows_of_batches_are_told_without_reading_them(
    tmp_path: Path, sizes: list[int], packed: str | None
) -> None:
    kinds = [pa.string(), pa.dictionary(pa.int8(), pa.string())]
    schema = pa.schema(zip(["text", "d"], kinds, strict=True))
    path = tmp_path / "a.arrow"
    options = pa.ipc.IpcWriteOptions(compression=packed)
    with pa.ipc.new_file(path, schema, options=options) as writer:
        for size in sizes:
            indices = pa.array([0] * size, pa.int8())
            coded = pa.DictionaryArray.from_arrays(indices, pa.array(["v"]))
            columns = [pa.array([f"{size}"] * size, pa.string()), coded]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    data = path.read_bytes()

    def read_at(position: int, size: int) -> bytes:
        return data[position : position + size]

    places = batch_places(read_at, len(data))
    assert [batch_rows(read_at, place) for place in places] == sizes
    reader = pa.ipc.open_file(data)
    assert [reader.get_batch(index).num_rows for index in range(len(sizes))] == sizes


def test_a_file_is_named_by_what_it_holds(tmp_path: Path) -> None:
    table = pa.table({"text": ["x"]})
    path = tmp_path / "part-0"
    pq.write_table(table, path)
    assert read(path, input_format="parquet") == [("0:0", 0, b"x")]
    write_arrow(path, table, 1)
    assert read(path, input_format="arrow") == [("0:0", 0, b"x")]
    with pytest.raises(BadFileError, match="the Parquet footer cannot be read"):
        read(path, input_format="parquet")
    with pytest.raises(BadFileError, match=r"part-0.*starts like a Arrow file|Arrow"):
        read(path)


def test_plans_of_arrow_files_elsewhere_are_not_cut() -> None:
    def planned(path: str, format_: str) -> int:
        file = InputFile(0, path, 10_000, "", format_, "none", "a")
        return len(make_plan([file], ReadOptions(range_bytes=100), unit_bytes=1).units)

    assert planned("/in/a.arrow", "arrow") == 100
    assert planned("gs://in/a.arrow", "arrow") == 1
    assert planned("gs://in/a.parquet", "parquet") == 100


def test_rows_read_few_at_a_time_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row might be as long as the dictionary of 1 MB, and none is."""
    texts = [f"{number:08d} {'text ' * 40}" for number in range(20_000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": texts}), path, compression="none")
    options = ReadOptions()
    unit = make_plan(list_inputs([str(path)], options), options, fewest_units=1).units[0]
    sizes: list[int] = []
    make_rows = read_parquet.documents_of_rows

    def count(batch: pa.RecordBatch, *others: Any) -> Any:
        sizes.append(batch.num_rows)
        return make_rows(batch, *others)

    monkeypatch.setattr(read_parquet, "documents_of_rows", count)
    finder = CutFinder(get_scheme("gpt2"))
    read = [
        (name, text)
        for batch in read_unit(unit, options, finder, Rejects(unit, options))
        for name, text in zip(
            batch["document_id"].to_pylist(), batch["text"].to_pylist(), strict=True
        )
    ]
    assert read == [(f"0:{number}", text.encode()) for number, text in enumerate(texts)]
    assert len(sizes) < 5
