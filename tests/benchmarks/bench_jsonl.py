"""JSONL: does reading rows, which holds Python's lock, keep two threads from being twice as fast?

    python tests/benchmarks/bench_jsonl.py [--megabytes 60] [--row-bytes 4000] [--rounds 3]

Text of en200 as rows of JSONL is read (`pipelines.corpus.read_documents`) and encoded (gpt2) unit
by unit, on one thread and on two of one process, as Beam's threads do it. Prints MB/s of file by
wall time for reading alone and for both, and the ratio of two threads to one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from encoder_peers import prepare_corpus, rank_file

from bpe import Tokenizer
from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.listing.inputs import list_inputs
from pipelines.corpus.plan import Unit, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects


def write_rows(source: Path, target: Path, megabytes: int, row_bytes: int) -> None:
    """The text as JSONL, a range of about row_bytes a row."""
    text = source.read_bytes()[: megabytes * 10**6].decode(errors="ignore")
    with target.open("w") as file:
        for start in range(0, len(text), row_bytes):
            row = {"id": start, "text": text[start : start + row_bytes]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def rate(work: Callable[[Unit], None], units: list[Unit], threads: int, size: int) -> float:
    """MB/s of wall time for all units on some threads."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, units))
    return size / 1e6 / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--row-bytes", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / f"en-{arguments.megabytes}-{arguments.row_bytes}.jsonl"
    corpus = prepare_corpus("en200", arguments.folder)
    write_rows(corpus, path, arguments.megabytes, arguments.row_bytes)
    options = ReadOptions()
    units = list(make_plan(list_inputs([str(path)], options), options, unit_bytes=8 << 20).units)
    tokenizer = Tokenizer.from_tiktoken(rank_file("gpt2", arguments.folder), pretokenizer="gpt2")
    finder = CutFinder(tokenizer.scheme)

    def read(unit: Unit) -> None:
        for _ in read_unit(unit, options, finder, Rejects(unit, options)):
            pass

    def encode(unit: Unit) -> None:
        for pieces in read_unit(unit, options, finder, Rejects(unit, options)):
            tokenizer.encode_batch(pieces["text"])

    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv), f"{len(units)} units")
    size = path.stat().st_size
    for name, work in (("read", read), ("read and encode", encode)):
        one = two = 0.0
        for _ in range(arguments.rounds):
            one = max(one, rate(work, units, 1, size))
            two = max(two, rate(work, units, 2, size))
        print(f"{name}: {one:.0f} and {two:.0f} MB/s, ratio {two / one:.2f}")


if __name__ == "__main__":
    main()
