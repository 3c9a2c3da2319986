"""Training by other recipes than BPE: text to a vocabulary in memory, on one core.

    python tests/benchmarks/bench_recipes.py FILE [--bytes 20000000] [--vocab-size 8192]

Prints for each recipe the seconds of counting words and of training on the counts.
FILE may be compressed (.zst, .gz).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa

from bpe.counting import count_pretokens
from bpe.recipes.registry import RECIPES
from bpe.training import train


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of training by other recipes.")
    parser.add_argument("file")
    parser.add_argument("--bytes", type=int, default=20_000_000)
    parser.add_argument("--vocab-size", type=int, default=8192)
    arguments = parser.parse_args()
    with pa.input_stream(arguments.file, compression="detect") as stream:
        text = stream.read(arguments.bytes)
    for name in ("wordpiece", "sennrich"):
        recipe = RECIPES[name]
        start = time.perf_counter()
        counts = count_pretokens(text, recipe.pretokenizer)
        counted = time.perf_counter()
        made = train(counts, arguments.vocab_size, pretokenizer=recipe.pretokenizer, recipe=name)
        done = time.perf_counter()
        sys.stdout.write(
            f"{name:10} {len(counts):>9,} words  counted {counted - start:6.2f} s  "
            f"trained {done - counted:6.2f} s  {made.vocab_size:,} tokens\n"
        )


if __name__ == "__main__":
    main()
