"""How fast `beam-bpe encode` is, what a run costs besides, and what limits it.

    python tests/benchmarks/bench_pipeline.py [--kinds text jsonl jsonl.zst parquet]
        [--megabytes 800 4000] [--rounds 2] [--workers 2] [--folder FOLDER]

Each kind of file is encoded (gpt2, in process) in two sizes, and wall time is split into a fixed
part and bytes / rate. The rate is compared with the kernel alone: as many threads of one process
that read the text, encode it without a warm cache, hash and write the ids and make them durable,
without Beam; and with the parser alone, on as many threads, the fastest that there is: the native
scan of JSON rows, or pyarrow, a few megabytes of rows at a time. All are processes of their own,
take turns, and count by their best round. The page cache is warm throughout. "In turn" is the rate
of who does both, one after the other, with all cores.

    python tests/benchmarks/bench_pipeline.py --peers [NAME ...] [--peer-python PYTHON ...]
        [--peer-megabytes 200] [--rounds 2] [--workers 2] [--folder FOLDER]

What others need for JSON Lines to ids on storage, see `pipeline_peers`: wall time of a
process from start to end, and whether they make as many ids. Peers that neither this Python nor
the others that are named can import are left out by name.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pipeline_peers
from encoder_peers import load_model, rank_file
from pipeline_corpus import KINDS, Corpus, CorpusMaker

ROOT = Path(__file__).resolve().parents[2]
UNIT_BYTES = 64 << 20
BLOCK_BYTES = 4 << 20
# About as many bytes of text; pyarrow's own 65,536 rows take it half as long again.
PARQUET_ROWS = 10_000
MEGABYTE = 1_000_000


@dataclass
class Run:
    """What a process took: seconds of wall and CPU time, and its highest resident memory.

    Attributes:
        wall: seconds.
        cpu: seconds.
        peak_bytes: resident, with the pages of mapped files.
        peak_own_bytes: resident without these; sampled, so that short peaks may be missed.
    """

    wall: float = 0.0
    cpu: float = 0.0
    peak_bytes: int = 0
    peak_own_bytes: int = 0

    def look(self, pid: int) -> None:
        """Note the memory of a process that may have ended."""
        # `ru_maxrss` would do, did it not begin with what this process has when it forks.
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return
        fields = dict(line.split(":", 1) for line in lines)
        if "VmHWM" in fields:
            own = int(fields["RssAnon"].split()[0]) << 10
            self.peak_bytes = max(self.peak_bytes, int(fields["VmHWM"].split()[0]) << 10)
            self.peak_own_bytes = max(self.peak_own_bytes, own)


def run_process(command: list[str]) -> tuple[Run, str]:
    """Run a command to its end; what it took, and what it printed."""
    run = Run()
    # An installed program has its modules compiled once and for all.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        while True:
            run.look(process.pid)
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.02)
        run.wall = time.perf_counter() - started
        run.cpu = usage.ru_utime + usage.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        said = log.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed: {said}")
    return run, said


def encode(corpus: Corpus, folder: Path, workers: int, *options: str) -> tuple[Run, str]:
    """`beam-bpe encode` in process; the output is thrown away."""
    output = folder / "output"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "pipelines", "encode", "--input", str(corpus.folder)]
    command += ["--tokenizer", str(rank_file("gpt2", folder)), "--pretokenizer", "gpt2"]
    command += ["--output", str(output), f"--direct_num_workers={workers}", *options]
    if corpus.kind != "text":
        command += ["--id-field", "id"]
    found = run_process(command)
    shutil.rmtree(output)
    return found


def alone(what: str, corpus: Corpus, folder: Path, workers: int) -> float:
    """Seconds that the kernel or the parser needs for a corpus, in a process of its own."""
    command = [sys.executable, __file__, "--alone", what, "--path", str(corpus.folder)]
    command += ["--kinds", corpus.kind, "--folder", str(folder), "--workers", str(workers)]
    return float(run_process(command)[1].split()[-1])


def seconds_of(work: Callable[[object], None], parts: list[object], workers: int) -> float:
    """Wall time of doing all parts on some threads."""
    started = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, parts))
    return time.perf_counter() - started


def kernel_alone(path: Path, folder: Path, workers: int) -> float:
    """Read, encode, hash, write and synchronize ranges of text as long as units."""
    import pyarrow as pa

    from bpe.backends.choice import get_backend

    encoder = get_backend("native").make_encoder(load_model("gpt2", folder).encoding_model)
    ranges = [
        (file, start)
        for file in sorted(path.iterdir())
        for start in range(0, file.stat().st_size, UNIT_BYTES)
    ]

    def work(place: tuple[Path, int]) -> None:
        with place[0].open("rb") as file:
            file.seek(place[1])
            text = pa.array([file.read(UNIT_BYTES)], pa.large_binary())
        ids = encoder.encode_array(text, threads=1).values.buffers()[1]
        hashlib.sha256(ids).hexdigest()
        target = folder / f"alone-{threading.get_ident()}"
        with target.open("wb") as file:
            file.write(ids)
            os.fsync(file.fileno())
        target.unlink()

    return seconds_of(work, ranges, workers)


def parser_alone(path: Path, kind: str, workers: int) -> float:
    """Parse rows, a block of them at a time, and do nothing with them."""
    import pyarrow.parquet as pq
    import zstandard

    from pipelines.corpus.jsonl.json_rows import scan_json_rows
    from pipelines.corpus.text_checks import find_byte

    def blocks(file: Path) -> Iterator[bytes]:
        with file.open("rb") as stored:
            packed = kind == "jsonl.zst"
            source = zstandard.ZstdDecompressor().stream_reader(stored) if packed else stored
            rest = b""
            while data := source.read(BLOCK_BYTES):
                end = data.rfind(b"\n") + 1
                yield rest + data[:end]
                rest = data[end:]

    def work(file: Path) -> None:
        if kind == "parquet":
            parquet = pq.ParquetFile(file)
            for _ in parquet.iter_batches(
                batch_size=PARQUET_ROWS, columns=["id", "text"], use_threads=False
            ):
                pass
            return
        for block in blocks(file):
            ends = find_byte(block, ord("\n"))
            starts = np.concatenate([[0], ends[:-1] + 1])
            if scan_json_rows(block, starts, ends, text=["text"], id_=["id"]) is None:
                sys.exit(f"{file}: the native scan leaves rows to msgspec")

    return seconds_of(work, sorted(path.iterdir()), workers)


def fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Fixed part (s) and rate (bytes/s) of the line through two measurements."""
    per_byte = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    return seconds[0] - per_byte * sizes[0], 1 / per_byte


@dataclass
class Times:
    """Best of several rounds, per size."""

    ours: list[float]
    kernel: list[float]
    parser: list[float]
    cpu: list[float]
    peak_bytes: int = 0


def measure(kind: str, maker: CorpusMaker, options: argparse.Namespace) -> None:
    """Measure one kind of file, and print a line."""
    corpora = [maker.make(kind, size) for size in options.megabytes]
    texts = [maker.make("text", size) for size in options.megabytes]
    far = [float("inf")] * len(corpora)
    best = Times(far[:], far[:], far[:], far[:])
    for _ in range(options.rounds):
        for place, (corpus, text) in enumerate(zip(corpora, texts, strict=True)):
            run, _ = encode(corpus, options.folder, options.workers)
            best.ours[place] = min(best.ours[place], run.wall)
            best.cpu[place] = min(best.cpu[place], run.cpu)
            best.peak_bytes = max(best.peak_bytes, run.peak_bytes)
            kernel = alone("kernel", text, options.folder, options.workers)
            best.kernel[place] = min(best.kernel[place], kernel)
            if kind != "text":
                parser = alone("parser", corpus, options.folder, options.workers)
                best.parser[place] = min(best.parser[place], parser)
    report(kind, [each.text_bytes for each in corpora], best)


def report(kind: str, sizes: list[int], best: Times) -> None:
    """A line per kind."""
    fixed, rate = fit(sizes, best.ours)
    limits = {"kernel": fit(sizes, best.kernel)[1]}
    if kind != "text":
        limits["parser"] = fit(sizes, best.parser)[1]
    name, limit = min(limits.items(), key=lambda item: item[1])
    shown = ", ".join(f"{each} alone {limits[each] / MEGABYTE:.0f}" for each in limits)
    # Who uses both cores all the time for one, and then for the other.
    in_turn = 1 / sum(1 / each for each in limits.values())
    shown += f", in turn {in_turn / MEGABYTE:.0f}" if len(limits) > 1 else ""
    cores = (best.cpu[1] - best.cpu[0]) / (best.ours[1] - best.ours[0])
    whole = sizes[1] / MEGABYTE / best.ours[1]
    print(
        f"{kind:10} {fixed:5.2f} s + bytes / {rate / MEGABYTE:4.0f} MB/s ({whole:.0f} in all), "
        f"{rate / limit:4.0%} of the {name} ({shown} MB/s), {cores:.2f} cores busy, "
        f"peak {best.peak_bytes / MEGABYTE:,.0f} MB",
        flush=True,
    )


def compare(maker: CorpusMaker, options: argparse.Namespace) -> None:
    """Encode the same JSON Lines with `beam-bpe encode` and with others; a line each."""
    corpus = maker.make("jsonl", options.peer_megabytes)
    tokenizer = options.folder / "gpt2-published.json"
    pipeline_peers.write_tokenizer(tokenizer)
    # The peers start elsewhere; links stay, since an environment is known by them.
    interpreters = [sys.executable, *map(os.path.abspath, options.peer_python)]
    peers: dict[str, list[str]] = {}
    versions = {}
    for name in options.peers or pipeline_peers.PEERS:
        found = pipeline_peers.find_version(name, interpreters)
        if found is None:
            print(f"{name}: not installed in {sys.executable} or --peer-python, left out")
            continue
        peers[name] = [found[0], pipeline_peers.__file__, name, "--corpus", str(corpus.folder)]
        peers[name] += ["--tokenizer", str(tokenizer), "--workers", str(options.workers)]
        versions[name] = found[1]
    best: dict[str, tuple[Run, int]] = {}
    for _ in range(options.rounds):
        run, said = encode(corpus, options.folder, options.workers)
        words = next(line.split() for line in said.splitlines() if line.startswith("tokens "))
        runs = {"beam-bpe": (run, int(words[1].replace(",", "")))}
        for name, command in peers.items():
            output = options.folder / f"peer-{name}"
            shutil.rmtree(output, ignore_errors=True)
            run, _ = run_process([*command, "--output", str(output)])
            said = run_process([*command, "--output", str(output), "--count"])[1]
            shutil.rmtree(output)
            runs[name] = (run, int(said.split()[-1]))
        for name, each in runs.items():
            best[name] = min(best.get(name, each), each, key=lambda found: found[0].wall)
    ours, ids = best["beam-bpe"]
    print(f"{corpus.documents:,} documents, {corpus.text_bytes:,} bytes of text, {ids:,} ids")
    for name, (run, count) in best.items():
        rate = corpus.text_bytes / MEGABYTE / run.wall
        same = "as many ids" if count == ids else f"{count - ids:+,} ids"
        print(
            f"{name:10} {versions.get(name, ''):8} {run.wall:7.2f} s, {rate:6.1f} MB/s, "
            f"{run.wall / ours.wall:5.1f} times ours, {same}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--megabytes", type=int, nargs=2, default=[800, 4000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    parser.add_argument("--peers", nargs="*", choices=pipeline_peers.PEERS)
    parser.add_argument("--peer-python", nargs="+", default=[])
    parser.add_argument("--peer-megabytes", type=int, default=200)
    parser.add_argument("--alone", choices=("kernel", "parser"), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone == "kernel":
        print(kernel_alone(options.path, options.folder, options.workers))
        return
    if options.alone == "parser":
        print(parser_alone(options.path, options.kinds[0], options.workers))
        return
    maker = CorpusMaker(options.folder)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    if options.peers is not None:
        compare(maker, options)
        return
    for kind in options.kinds:
        measure(kind, maker, options)


if __name__ == "__main__":
    main()
