"""Files of every input format for tables of anomalies, and reading that accounts for each row."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import Plan, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects

SUFFIXES = {
    "text": "txt",
    "lines": "txt",
    "separator": "txt",
    "jsonl": "jsonl",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
    "stream": "arrows",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "lines": {"input_format": "lines"},
    "separator": {"document_separator": b"||"},
}
TABLES = ("parquet", "arrow", "stream")
PACKABLE = tuple(name for name in SUFFIXES if name not in TABLES)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, mtime=0),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
LIMIT = 2000
GOOD = ("good", "g")
ROWS = [(f"some text number {number} " * 9, str(number)) for number in range(6)]


def table_bytes(kind: str, table: pa.Table) -> bytes:
    """A table as a file of a format, two rows to a row group or batch."""
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink, row_group_size=2, write_page_checksum=True)
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with new(sink, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def rows_bytes(kind: str, rows: list[tuple[Any, Any]]) -> bytes:
    """Documents (text, id) as a file of a format."""
    if kind in TABLES:
        texts, ids = zip(*rows, strict=True)
        is_text = all(isinstance(text, str | None) for text in texts)
        type_ = pa.string() if is_text else pa.large_binary()
        coded = [text.encode() if isinstance(text, str) and not is_text else text for text in texts]
        is_id_text = all(isinstance(id_, str | None) for id_ in ids)
        id_type = pa.string() if is_id_text else pa.binary()
        names = [id_.encode() if isinstance(id_, str) and not is_id_text else id_ for id_ in ids]
        columns = {"text": pa.array(coded, type_), "id": pa.array(names, id_type)}
        return table_bytes(kind, pa.table(columns))
    if kind == "jsonl":
        lines = [json.dumps({"text": text, "id": id_}) for text, id_ in rows]
        return "".join(f"{line}\n" for line in lines).encode()
    if kind in {"csv", "tsv"}:
        out = io.StringIO()
        writer = csv.writer(
            out, delimiter=",\t"[kind == "tsv"], lineterminator="\n", quoting=csv.QUOTE_ALL
        )
        writer.writerows([("text", "id"), *rows])
        return out.getvalue().encode()
    end = {"text": b"", "lines": b"\n", "separator": b"||"}[kind]
    return b"".join((t.encode() if isinstance(t, str) else t) + end for t, _ in rows)


@dataclass
class Reading:
    """What reading some files gave, after the check that every document is accounted for."""

    texts: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    records: list[dict[str, Any]] = field(default_factory=list)


def planned(path: Path, range_bytes: int, **options: Any) -> tuple[Plan, ReadOptions]:
    read = ReadOptions(range_bytes=range_bytes, max_row_bytes=LIMIT, **options)
    return make_plan(list_inputs([str(path)], read), read, unit_bytes=1), read


def read_plan(plan: Plan, read: ReadOptions, scheme: str = "gpt2") -> Reading:
    found = Reading()
    documents_in = documents = 0
    for unit in plan.units:
        rejects = Rejects(unit, read)
        for batch in read_unit(unit, read, CutFinder(get_scheme(scheme)), rejects):
            batch.validate(full=True)
            for row in batch.to_pylist():
                if row["is_first"]:
                    found.texts.append(b"")
                found.texts[-1] += row["text"]
            documents += sum(batch["is_last"].to_pylist())
        documents_in += rejects.documents_in
        found.counts += rejects.counts
        found.accepted += rejects.accepted
        found.records += map(json.loads, rejects.to_jsonl().splitlines())
    rejected = found.counts.total() - found.counts["bad_file"]
    assert documents == len(found.texts)
    assert documents_in == documents + rejected + found.accepted["dropped_empty"]
    assert sum(record.get("rows", 1) for record in found.records) == found.counts.total()
    return found
