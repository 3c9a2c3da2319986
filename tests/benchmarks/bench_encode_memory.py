"""Memory of `beam-bpe encode` when the input grows: it must not.

    python tests/benchmarks/bench_encode_memory.py [--megabytes 200 1000 4000] [--kind jsonl]
        [--layouts none global …] [--folder FOLDER]

Encodes (gpt2, two threads) inputs of several sizes in each layout, and prints the highest resident
memory of the process: own pages (sampled), and in all with those of mapped files, which the system
takes back when it needs them.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_pipeline import MEGABYTE, encode
from pipeline_corpus import KINDS, CorpusMaker

FIT = ("--pack", "2048", "--pack-mode", "best-fit", "--pad-id", "0")
SPLIT = ("--split", "train=0.99,validation=0.01")
LAYOUTS = {
    "none": (),
    "shard": ("--shuffle", "shard"),
    "global": ("--shuffle", "global"),
    "global-concat": ("--shuffle", "global", "--pack", "2048", "--pad-id", "0"),
    "fit": FIT,
    "split": SPLIT,
    "global-fit-split": ("--shuffle", "global", *FIT, *SPLIT),
}


def main() -> None:
    """A line for each layout and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[200, 1000, 4000])
    parser.add_argument("--kind", default="jsonl", choices=KINDS)
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options, more = parser.parse_known_args()
    maker = CorpusMaker(options.folder)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    for layout in options.layouts:
        for size in options.megabytes:
            corpus = maker.make(options.kind, size)
            run, _ = encode(corpus, options.folder, options.workers, *LAYOUTS[layout], *more)
            print(
                f"{layout:16} {size:5} MB: own {run.peak_own_bytes / MEGABYTE:5,.0f} MB, "
                f"in all {run.peak_bytes / MEGABYTE:5,.0f} MB, {run.wall:5.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
