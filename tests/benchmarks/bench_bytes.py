"""Presets of bytes: text to ids in memory, on one core.

    python tests/benchmarks/bench_bytes.py [--megabytes 200] [--rounds 5]

Documents of 10,000 bytes go from an Arrow column to one of ids. Prints the best of all rounds,
GB of text a second by CPU time. A preset whose ids are the bytes themselves makes no copy.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa

from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.tokenizer import Tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the presets of bytes.")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    text = os.urandom(10_000)
    documents = pa.array([text] * (arguments.megabytes * 100), pa.large_binary())
    for name in BYTE_PRESETS:
        tokenizer = Tokenizer.load(name)
        best = float("inf")
        for _ in range(arguments.rounds):
            start = time.process_time()
            encoded = tokenizer.encode_batch(documents)
            best = min(best, time.process_time() - start)
        kind = encoded.type.value_type
        rate = arguments.megabytes / 1e3 / best
        sys.stdout.write(f"{name:6} {kind!s:7} {rate:8.1f} GB/s\n")


if __name__ == "__main__":
    main()
