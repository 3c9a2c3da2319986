"""How fast each format is read, as a ratio to the parser alone: `python bench_reading.py TEXT`.

The paragraphs of a UTF-8 text are written as files of each format and read by one thread, without
Beam, counting or encoding. The parser alone reads the same file and does nothing with the rows.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects


class _Row(msgspec.Struct):
    text: str


def read_ours(path: Path) -> int:
    """Bytes of text that the reader hands on."""
    options = ReadOptions()
    finder = CutFinder(get_scheme("gpt2"))
    size = 0
    for unit in make_plan(list_inputs([str(path)], options), options).units:
        for batch in read_unit(unit, options, finder, Rejects(unit, options)):
            size += batch["text"].nbytes
    return size


def parse_jsonl(path: Path) -> None:
    decode = msgspec.json.Decoder(_Row).decode
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for line in file:
            decode(line)


def parse_parquet(path: Path) -> None:
    for _ in pq.ParquetFile(path).iter_batches(columns=["text"], use_threads=False):
        pass


def parse_arrow(path: Path) -> None:
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            reader.get_batch(index)


def parse_csv(path: Path) -> None:
    options = pa_csv.ReadOptions(use_threads=False, block_size=4 << 20)
    parse = pa_csv.ParseOptions(newlines_in_values=True)
    for _ in pa_csv.open_csv(path, read_options=options, parse_options=parse):
        pass


def parse_csv_in_python(path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        for _ in csv.reader(file):
            pass


def write_files(texts: list[str], folder: Path) -> list[tuple[Path, str, Callable[[Path], None]]]:
    """The files, and the parser of each with its name."""
    lines = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)
    table = pa.table({"text": texts})
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([("text", "n"), *((t, "1") for t in texts)])
    (folder / "a.jsonl").write_bytes(lines)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    pq.write_table(table, folder / "snappy.parquet", row_group_size=20_000)
    pq.write_table(table, folder / "zstd.parquet", row_group_size=20_000, compression="zstd")
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    (folder / "a.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    return [
        (folder / "a.jsonl", "msgspec", parse_jsonl),
        (folder / "a.jsonl.gz", "gzip, msgspec", parse_jsonl),
        (folder / "snappy.parquet", "pyarrow", parse_parquet),
        (folder / "zstd.parquet", "pyarrow", parse_parquet),
        (folder / "a.arrow", "pyarrow", parse_arrow),
        (folder / "a.csv", "pyarrow", parse_csv),
        (folder / "a.csv", "csv module", parse_csv_in_python),
    ]


def seconds_of(action: Callable[[], object]) -> float:
    """The better of two times."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    text = Path(sys.argv[1]).read_bytes()[: 50 << 20].decode("utf-8", "ignore")
    texts = [paragraph for paragraph in text.split("\n\n") if paragraph]
    size = sum(len(paragraph.encode()) for paragraph in texts)
    print(
        f"{len(texts):,} documents, {size / 1e6:.0f} MB of text; {os.cpu_count()} cores, 1 thread"
    )
    with tempfile.TemporaryDirectory() as folder:
        for path, name, parse in write_files(texts, Path(folder)):
            ours = seconds_of(lambda path=path: read_ours(path))
            alone = seconds_of(lambda path=path, parse=parse: parse(path))
            print(
                f"{path.name:16} {size / ours / 1e6:7.0f} MB/s of text, "
                f"{alone / ours:6.0%} of {name} alone ({size / alone / 1e6:.0f} MB/s)"
            )


if __name__ == "__main__":
    main()
