"""Rounds against the trainer on one machine: how many, how much they send, how long they take.

    python tests/benchmarks/bench_rounds.py [tiny en20 zh20 dna20 en200] [--vocab-size 32768]
        [--shards 8] [--budget 1%] [--words] [Beam options]

Trains each corpus without a pre-tokenizer, in rounds through the command line and natively on the
driver, compares the tokenizers, and prints a table. Corpora are read from ../shared/data beside the
checkout; dna20 is made here, by a seed. `--no-driver` leaves the comparison out. `--words` trains
on words, and gives the driver so little memory that the command itself chooses rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import zstandard

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
CORPORA = ROOT.parent / "shared" / "data" / "corpora"
MEGABYTES_20 = 20 << 20
LITTLE_MEMORY = "1MB"


def make_dna(size: int = MEGABYTES_20, seed: int = 11) -> bytes:
    """DNA-like text: random bases, with repeats of earlier ranges that mutate a little."""
    generator = np.random.default_rng(seed)
    letters = np.frombuffer(b"ACGT", np.uint8)
    parts: list[np.ndarray] = [letters[generator.integers(0, 4, 1 << 16)]]
    total = len(parts[0])
    while total < size:
        length = int(generator.integers(50, 5000))
        if generator.random() < 0.5:
            source = parts[int(generator.integers(len(parts)))]
            start = int(generator.integers(max(1, len(source) - length)))
            part = source[start : start + length].copy()
            mutated = generator.random(len(part)) < 0.02
            part[mutated] = letters[generator.integers(0, 4, int(mutated.sum()))]
        else:
            part = letters[generator.integers(0, 4, length)]
        parts.append(part)
        total += len(part)
    return np.concatenate(parts)[:size].tobytes()


def unpack(name: str, size: int | None) -> bytes:
    """A corpus, or its first bytes."""
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        (CORPORA / name).open("rb")
    )
    return reader.read(size) if size else reader.read()


MAKERS = {
    "tiny": (CORPORA / "tiny_shakespeare.txt").read_bytes,
    "en20": lambda: unpack("en200.txt.zst", MEGABYTES_20),
    "zh20": lambda: unpack("zh100.json.zst", MEGABYTES_20),
    "dna20": make_dna,
    "en200": lambda: unpack("en200.txt.zst", None),
}


def run(*command: object) -> tuple[float, int]:
    """Run `beam-bpe train`; returns seconds and the highest memory in kilobytes."""
    begun = time.monotonic()
    process = subprocess.run(
        ["/usr/bin/time", "-v", sys.executable, "-m", "pipelines", "train", *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        sys.exit(process.stderr)
    found = re.search(r"Maximum resident set size \(kbytes\): (\d+)", process.stderr)
    return time.monotonic() - begun, int(found[1]) if found else 0


def compare(
    name: str, folder: Path, arguments: argparse.Namespace, beam: list[str]
) -> Iterator[str]:
    """Lines of the table for one corpus."""
    text = folder / f"{name}.txt"
    text.write_bytes(MAKERS[name]())
    command = ("--input", text, "--vocab-size", arguments.vocab_size)
    rounds: tuple[object, ...] = ("--driver-memory", LITTLE_MEMORY)
    if not arguments.words:
        command, rounds = (*command, "--pretokenizer", "none"), ("--engine", "rounds")
    layout = ("--state-shards", arguments.shards, "--segment-budget", arguments.budget)
    output = folder / name
    seconds, memory = run(*command, *rounds, *layout, "--output", output, *beam)
    made = Tokenizer.load(output)
    rows = made.training["rounds"]
    sent = sum(row["bytes_sent"] for row in rows)
    same, driver = "not compared", 0.0
    if not arguments.no_driver:
        driver, _ = run(*command, "--engine", "driver", "--output", folder / f"{name}-driver")
        other = Tokenizer.load(folder / f"{name}-driver")
        same = "identical" if other.digest == made.digest else "DIFFERENT"
    yield (
        f"{name:>6} {text.stat().st_size / 1e6:8.1f} {made.vocab_size:>7} {len(rows):>6} "
        f"{max(row['segment_bytes'] for row in rows) / 1e6:8.3f} {sent / 1e6:9.1f} "
        f"{max(row['bytes_sent'] for row in rows) / 1e6:9.1f} {seconds:8.1f} "
        f"{memory / 1024:8.0f} {driver:8.1f}  {made.digest[:12]} {same}"
    )
    if arguments.rounds:
        for row in rows:
            yield f"       {row}"
    text.unlink()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("corpora", nargs="*", default=["tiny", "en20", "zh20", "dna20"])
    parser.add_argument("--vocab-size", type=int, default=32768)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--rounds", action="store_true", help="print every round")
    parser.add_argument("--no-driver", action="store_true")
    parser.add_argument("--words", action="store_true", help="train on words")
    arguments, beam = parser.parse_known_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    kind = f"words, --driver-memory {LITTLE_MEMORY}" if arguments.words else "raw"
    print(
        f"{kind}, vocabulary {arguments.vocab_size}, {arguments.shards} shards, "
        f"segment budget {arguments.budget}"
    )
    print(
        "corpus       MB   vocab rounds segm. MB   sent MB most/round  seconds   MB RSS driver s  "
        "tokenizer"
    )
    with tempfile.TemporaryDirectory(prefix="bench-rounds-") as name:
        for corpus in arguments.corpora:
            for line in compare(corpus, Path(name), arguments, beam):
                print(line, flush=True)


if __name__ == "__main__":
    main()
