"""Encoding: ours against gigatoken, tiktoken, bpe-openai and tokenizers, cold and warm, one core.

    python tests/benchmarks/bench_encode.py [--corpora en200 code50 zh100]
        [--vocabularies gpt2 cl100k o200k] [--encoders ours gigatoken] [--rounds 3] [--core 1]

cold: a fresh tokenizer encodes a file for the first time (its loading is not counted); warm: the
same tokenizer encodes the file again; ours then gets the same mapped document, for it takes
buffers, while gigatoken takes paths and reads or maps a file each time. Each run is a process of
its own; the encoders take turns, and the best of all rounds counts. MB/s are decimal, by CPU time
(kernel's time included) and by wall time; ratios are of CPU time. Slow peers get the first 20 MB
of a corpus.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import CORPORA, ENCODERS, VOCABULARIES, prepare_corpus, rank_file, time_once

SLOW = {"tiktoken", "bpe-openai", "tokenizers"}
WARM_RUNS = 3


def run_one(encoder: str, vocabulary: str, path: Path, folder: Path, threads: int) -> None:
    """Encode a file cold and warm in this process; print MB/s as JSON."""
    encode = ENCODERS[encoder](vocabulary, folder, threads)
    size = path.stat().st_size / 1e6
    runs = [time_once(encode, path) for _ in range(1 + WARM_RUNS)]
    figures = {
        "cold": size / runs[0][0],
        "cold wall": size / runs[0][1],
        "warm": size / min(run[0] for run in runs[1:]),
        "warm wall": size / min(run[1] for run in runs[1:]),
        "tokens": runs[0][2],
    }
    print(json.dumps(figures))


def measure(encoder: str, vocabulary: str, path: Path, options: argparse.Namespace) -> dict:
    """The same in a process of its own, on the given cores."""
    command = ["taskset", "-c", options.core, sys.executable, __file__, "--one", encoder]
    command += ["--vocabularies", vocabulary, "--path", str(path), "--folder", str(options.folder)]
    command += ["--threads", str(options.threads)]
    root = str(Path(__file__).resolve().parents[2])
    environment = os.environ | {"PYTHONPATH": root, "RAYON_NUM_THREADS": str(options.threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(corpus: str, vocabulary: str, options: argparse.Namespace) -> None:
    """Let the encoders take turns; print the best of each and ours over theirs."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for encoder in options.encoders:
            if encoder == "bpe-openai" and vocabulary == "gpt2":
                continue
            path = prepare_corpus(corpus, options.folder, 20 << 20 if encoder in SLOW else None)
            found = measure(encoder, vocabulary, path, options)
            known = best.setdefault(encoder, found)
            best[encoder] = {key: max(value, known[key]) for key, value in found.items()}
    base = best.get("ours", next(iter(best.values())))
    for encoder, found in best.items():
        ratios = f"{base['cold'] / found['cold']:7.2f} {base['warm'] / found['warm']:7.2f}"
        print(
            f"{corpus:7} {vocabulary:7} {encoder:11} {found['cold']:8.0f} {found['warm']:8.0f}"
            f" {found['cold wall']:8.0f} {found['warm wall']:8.0f} {ratios}"
            f" {found['tokens']:10.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpora", nargs="+", default=["en200", "code50", "zh100"], choices=CORPORA
    )
    parser.add_argument("--vocabularies", nargs="+", default=list(VOCABULARIES))
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS), choices=ENCODERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", default="1", help="cores, as taskset takes them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    parser.add_argument("--one", choices=ENCODERS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.one:
        run_one(options.one, options.vocabularies[0], options.path, options.folder, options.threads)
        return
    for vocabulary in options.vocabularies:
        rank_file(vocabulary, options.folder)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    print(
        "corpus  vocab   encoder     cold MB/s warm MB/s cold wall warm wall"
        "  ours/: cold warm tokens"
    )
    for corpus in options.corpora:
        for vocabulary in options.vocabularies:
            compare(corpus, vocabulary, options)


if __name__ == "__main__":
    main()
