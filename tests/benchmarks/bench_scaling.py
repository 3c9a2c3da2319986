"""Growth with size and with threads, and decoding: ours alone.

    python tests/benchmarks/bench_scaling.py [--vocabulary gpt2] [--rounds 5]

Prints wall MB/s of warm encoding on 1 and 2 threads (documents of 1 MB, and one single document),
CPU MB/s of 10, 50 and 200 MB, cold, and of decoding.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import load_model, map_document, prepare_corpus

MEGABYTE = 1_000_000


def best_seconds(run: Callable[[], object], clock: Callable[[], float], rounds: int) -> float:
    """Least time of a call, by the clock."""
    times = []
    for _ in range(rounds):
        started = clock()
        run()
        times.append(clock() - started)
    return min(times)


def split_documents(data: bytes) -> pa.LargeBinaryArray:
    """Documents of about a megabyte, cut at line ends."""
    cuts = [0]
    while cuts[-1] < len(data):
        end = data.find(b"\n", cuts[-1] + MEGABYTE)
        cuts.append(end + 1 if end >= 0 else len(data))
    return pa.array([data[a:b] for a, b in pairwise(cuts)], pa.large_binary())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", default="gpt2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    from bpe.backends.choice import get_backend

    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    backend = get_backend("native")
    model = load_model(options.vocabulary, options.folder).encoding_model
    path = prepare_corpus("en200", options.folder)
    data = path.read_bytes()
    for size in (10, 50, 200):
        part = pa.array([data[: size * MEGABYTE]], pa.large_binary())
        run = lambda part=part: backend.make_encoder(model).encode_array(part)  # noqa: E731
        built = best_seconds(lambda: backend.make_encoder(model), time.process_time, 3)
        seconds = best_seconds(run, time.process_time, 3) - built
        print(f"cold, {size:3} MB: {size / seconds:7.0f} MB/s of CPU time")
    for name, texts in (("1 MB documents", split_documents(data)), ("one", map_document(path))):
        encoder = backend.make_encoder(model)
        rates = []
        for threads in (1, 2):
            run = lambda t=threads: encoder.encode_array(texts, threads=t)  # noqa: E731, B023
            run()
            seconds = best_seconds(run, time.perf_counter, options.rounds)
            rates.append(len(data) / MEGABYTE / seconds)
        print(
            f"warm, {name}: {rates[0]:.0f} and {rates[1]:.0f} MB/s of wall time on 1 and 2 "
            f"threads, ratio {rates[1] / rates[0]:.2f}"
        )


if __name__ == "__main__":
    main()
