"""Counting and training, V=32768, GPT-2's pattern: ours against gigatoken, rustbpe, tokenizers.

    python tests/benchmarks/bench_train.py [--corpora en200 zh100] [--rounds 3] [--cores 1 2]
    python tests/benchmarks/bench_train.py --raw en100 --trainers ours    # no pre-tokens

Peers come with the extra `bench`. Each run is a process of its own, so that its peak memory is its
own; the trainers take turns, and the best of all rounds counts. Time runs from a file on disk (in
the page cache) to the list of merges; rustbpe and tokenizers get their text decoded beforehand.
Peak memory is what the process holds beyond its imports, the mapped file not counted.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from typing_extensions import Self

VOCAB_SIZE = 32768
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpora"
CORPORA = {
    "en200": ("en200.txt.zst", 200 << 20),
    "en100": ("en200.txt.zst", 100 << 20),
    "en20": ("en200.txt.zst", 20 << 20),
    "zh100": ("zh100.json.zst", 100 << 20),
    "zh20": ("zh100.json.zst", 20 << 20),
}
TRAINERS = ("ours", "gigatoken", "rustbpe", "tokenizers")


def prepare(corpus: str, folder: Path) -> Path:
    """Unpack a corpus, cut at a character's start."""
    import zstandard

    name, size = CORPORA[corpus]
    path = folder / corpus
    if not path.exists():
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        with (SHARED / name).open("rb") as file:
            data = reader.stream_reader(file).read(size)
        path.write_bytes(data.decode(errors="ignore").encode())
    return path


def anonymous_memory() -> int:
    """Memory of this process that no file backs, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class PeakMemory:
    """Samples `anonymous_memory` while the block runs; its extra peak is `extra` bytes."""

    def __enter__(self) -> Self:
        self.extra = 0
        self._base = anonymous_memory()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.extra = max(self.extra, anonymous_memory() - self._base)


def ours(path: Path, threads: int, *, raw: bool) -> Callable[[], int]:
    from bpe.backends.choice import get_backend
    from bpe.backends.values import MergeRules
    from bpe.pretokenizing.schemes import get_scheme

    backend = get_backend("native")
    rules = MergeRules(VOCAB_SIZE - 256)

    def run() -> int:
        data = pa.memory_map(str(path)).read_buffer()
        offsets = pa.py_buffer(np.array([0, data.size], np.int64))
        texts = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, data])
        if raw:
            return len(backend.train_raw(texts, rules).merges)
        words = backend.count_words(texts, get_scheme("gpt2"), threads=threads)
        return len(backend.train_words(*words, rules).merges)

    return run


def gigatoken(path: Path) -> Callable[[], int]:
    import gigatoken as peer

    def run() -> int:
        peer.train_bpe(str(path), VOCAB_SIZE + 1, ["<|endoftext|>"])
        return VOCAB_SIZE - 256

    return run


def rustbpe(path: Path) -> Callable[[], int]:
    import rustbpe as peer

    from bpe.pretokenizing.schemes import get_scheme

    text = path.read_text(encoding="utf-8")

    def run() -> int:
        tokenizer = peer.Tokenizer()
        pattern = get_scheme("gpt2").pattern
        tokenizer.train_from_iterator(iter([text]), VOCAB_SIZE, pattern=pattern)
        return len(tokenizer.get_mergeable_ranks()) - 256

    return run


def tokenizers(path: Path) -> Callable[[], int]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # Threads work on items of the iterator, so the text comes in lines (which it trains as such).
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)

    def run() -> int:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=VOCAB_SIZE,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(lines, trainer)
        return tokenizer.get_vocab_size() - 256

    return run


def run_one(trainer: str, path: Path, threads: int, *, raw: bool) -> None:
    """Run one trainer in this process and print its figures as JSON."""
    peers = {"gigatoken": gigatoken, "rustbpe": rustbpe, "tokenizers": tokenizers}
    run = ours(path, threads, raw=raw) if trainer == "ours" else peers[trainer](path)
    wall, cpu = time.perf_counter(), time.process_time()
    with PeakMemory() as memory:
        merges = run()
    figures = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "memory": memory.extra,
        "merges": merges,
    }
    print(json.dumps(figures))


def measure(trainer: str, path: Path, cores: int, *, raw: bool) -> dict[str, float]:
    """Run one trainer in a process of its own, on so many cores."""
    command = [sys.executable, __file__, "--one", trainer, "--path", str(path)]
    command += ["--cores", str(cores), *(["--raw", "x"] if raw else [])]
    available = sorted(os.sched_getaffinity(0))[-cores:]
    environment = os.environ | {"RAYON_NUM_THREADS": str(cores), "TOKENIZERS_PARALLELISM": "true"}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        ["taskset", "-c", ",".join(map(str, available)), *command],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def compare(corpus: str, path: Path, arguments: argparse.Namespace, cores: int) -> None:
    """Let the trainers take turns; print the best of each and the ratios to ours."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(arguments.rounds):
        for trainer in arguments.trainers:
            found = measure(trainer, path, cores, raw=bool(arguments.raw))
            known = best.setdefault(trainer, found)
            best[trainer] = {key: min(value, known[key]) for key, value in found.items()}
    size = path.stat().st_size
    print(f"\n{corpus}, {size} bytes, {cores} core(s), best of {arguments.rounds}")
    print("trainer       wall s  ratio   cpu s  ratio  peak MB  merges")
    base = best.get("ours", next(iter(best.values())))
    for trainer, found in best.items():
        wall, cpu = found["wall"], found["cpu"]
        print(
            f"{trainer:12}{wall:8.2f}{wall / base['wall']:7.2f}{cpu:8.2f}{cpu / base['cpu']:7.2f}"
            f"{found['memory'] / 2**20:9.0f}{found['merges']:8.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="+", default=["en200", "zh100"], choices=CORPORA)
    parser.add_argument(
        "--raw", nargs="+", default=[], help="corpora for training without pre-tokens"
    )
    parser.add_argument("--trainers", nargs="+", default=list(TRAINERS), choices=TRAINERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    parser.add_argument("--one", choices=TRAINERS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.path, arguments.cores[0], raw=bool(arguments.raw))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    for peer in arguments.trainers:
        if peer != "ours":
            print(peer, importlib.metadata.version(peer))
    for cores in arguments.cores:
        for corpus in arguments.raw or arguments.corpora:
            compare(corpus, prepare(corpus, arguments.folder), arguments, cores)


if __name__ == "__main__":
    main()
