"""Memory of driver and workers when the corpus is repeated: it must not grow with its length.

    python tests/benchmarks/bench_memory.py [--megabytes 10] [--repeats 1 4 10] [--workers 2]
        [--kinds words "words in rounds" "raw in rounds"]

Trains on 1, 4 and 10 copies of a text, by words and raw in rounds, with worker processes, and
prints the highest resident memory of the driver and of any worker (sampled from /proc), and the
most that the folder of the rounds took on disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import zstandard

ROOT = Path(__file__).resolve().parents[2]
CORPORA = ROOT.parent / "shared" / "data" / "corpora"
KINDS = ["words", "words in rounds", "raw in rounds"]


def resident(pid: int) -> int:
    """Resident memory of a process that no other process shares, bytes."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(each) for each in task.read_text().split()]
        except OSError:
            continue
    return found + [each for child in found for each in children(child)]


def folder_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


class Watch(threading.Thread):
    """Samples memory and disk while a process runs."""

    def __init__(self, pid: int, folder: Path) -> None:
        super().__init__(daemon=True)
        self.driver = self.worker = self.disk = 0
        self._pid, self._folder = pid, folder
        self.ended = threading.Event()

    def run(self) -> None:
        """Look every tenth of a second."""
        while not self.ended.wait(0.1):
            self.driver = max(self.driver, resident(self._pid))
            self.worker = max([self.worker, *map(resident, children(self._pid))])
            self.disk = max(self.disk, folder_bytes(self._folder / "rounds"))


def measure(text: Path, output: Path, options: list[str]) -> str:
    """Train, and say what it took."""
    begun = time.monotonic()
    command = ["train", "--input", str(text), "--output", str(output), *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    watch = Watch(process.pid, output)
    watch.start()
    _, err = process.communicate()
    watch.ended.set()
    watch.join()
    if process.returncode:
        sys.exit(err.decode())
    sizes = (watch.driver, watch.worker, watch.disk)
    shown = " ".join(f"{size / 1e6:10.0f}" for size in sizes)
    return f"{shown} {time.monotonic() - begun:9.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    arguments = parser.parse_args()
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        (CORPORA / "en200.txt.zst").open("rb")
    )
    data = reader.read(arguments.megabytes * 1_000_000)
    processes = ["--direct_running_mode=multi_processing"]
    processes += [f"--direct_num_workers={arguments.workers}"]
    size = ["--vocab-size", str(arguments.vocab_size)]
    # Shards of one size, so that a worker has the same to do however long the corpus is.
    kinds: dict[str, list[str]] = {
        "words": [*size, *processes],
        "words in rounds": [*size, "--engine", "rounds", "--state-shards", "4", *processes],
        "raw in rounds": [*size, "--pretokenizer", "none", "--engine", "rounds", *processes],
    }
    print("kind              copies  driver MB  worker MB    disk MB   seconds")
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as name:
        folder = Path(name)
        for kind in arguments.kinds:
            for repeats in arguments.repeats:
                text = folder / "text.txt"
                text.write_bytes(data * repeats)
                more = ["--state-shards", str(4 * repeats)] if kind.startswith("raw") else []
                line = measure(text, folder / f"{kind}-{repeats}", [*kinds[kind], *more])
                print(f"{kind:<16} {repeats:>7} {line}", flush=True)


if __name__ == "__main__":
    main()
