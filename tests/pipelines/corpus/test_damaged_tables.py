"""Damage to a table is noticed, and what it costs does not depend on ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import BadFileError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects
from tests.pipelines.written_tables import (
    TEXTS,
    read,
    write,
    write_arrow,
)


def damaged(data: bytes) -> Iterator[bytes]:
    random = np.random.default_rng(3)
    for place in random.integers(0, len(data), 150).tolist():
        changed = bytearray(data)
        changed[place] ^= int(random.integers(1, 256))
        yield bytes(changed)


def what_is_left(path: Path, range_bytes: int) -> tuple[list[Any], Counter[str], list[bytes]]:
    """Of a damaged file: documents, what was set aside, and the record of it."""
    read_options = ReadOptions(range_bytes=range_bytes, on_bad_file="skip", on_bad_record="skip")
    plan = make_plan(list_inputs([str(path)], read_options), read_options, unit_bytes=1)
    documents: list[Any] = []
    counts: Counter[str] = Counter()
    records: list[bytes] = []
    came = 0
    for unit in plan.units:
        rejects = Rejects(unit, read_options)
        for batch in read_unit(unit, read_options, CutFinder(get_scheme("gpt2")), rejects):
            documents += batch.select(["document_id", "text"]).to_pylist()
        counts += rejects.counts
        records += rejects.to_jsonl().splitlines()
        came += rejects.documents_in
    assert came == len(documents) + counts.total() - counts["bad_file"]
    return documents, counts, records


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", ["a.parquet", "packed.parquet", "a.arrow", "zstd.ipc", "d.arrow"])
def test_what_is_left_out_of_a_damaged_file_does_not_depend_on_ranges(
    name: str, tmp_path: Path
) -> None:
    text = pa.array(TEXTS).dictionary_encode() if name == "d.arrow" else pa.array(TEXTS)
    table = pa.table({"text": text, "n": range(len(TEXTS))})
    path = tmp_path / name
    if name.endswith("parquet"):
        kind = "zstd" if name == "packed.parquet" else "none"
        pq.write_table(
            table, path, row_group_size=9, compression=kind, write_page_checksum=kind == "none"
        )
    else:
        write_arrow(path, table, 9, packed="zstd" if name == "zstd.ipc" else None)
    seen: Counter[str] = Counter()
    data = path.read_bytes()
    # Not of Parquet's footer, at some damages of which Arrow ends the process.
    footer = int.from_bytes(data[-8:-4], "little") + 8 if name.endswith("parquet") else 0
    for changed in damaged(data[: len(data) - footer]):
        path.write_bytes(changed + data[len(changed) :])
        whole = what_is_left(path, 1 << 20)
        assert what_is_left(path, len(data) // 4) == whole
        seen.update(whole[1].keys())
        if whole[1].total() == whole[1]["bad_part"]:
            assert len(whole[0]) + whole[1]["bad_part"] == len(TEXTS)
    assert seen["bad_part"] > 4


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", ["a.parquet", "plain.parquet", "a.arrow", "zstd.ipc", "a.arrows"])
def test_damage_is_an_error_or_changes_only_bytes(name: str, tmp_path: Path) -> None:
    """Nothing but text can change unnoticed, and no damage ends the process."""
    table = pa.table({"text": TEXTS, "n": range(len(TEXTS))})
    if name.endswith("parquet"):
        pq.write_table(table, tmp_path / name, row_group_size=9, write_page_checksum=True)
    else:
        write(tmp_path, name, table, 9)
    path = tmp_path / name
    noticed = 0
    for changed in damaged(path.read_bytes()):
        path.write_bytes(changed)
        try:
            read(path)
        except BadFileError as error:
            assert str(path) in str(error)  # noqa: PT017  it may also be read
            noticed += 1
        except ValueError:
            noticed += 1  # a null, say
    assert noticed
