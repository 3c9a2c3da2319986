"""How fast `beam-bpe export` turns shards into the files of other trainers.

    python tests/benchmarks/bench_export.py [--megabytes 200] [--rounds 2] [--folder FOLDER]
        [--to hf megatron nanogpt llmc datatrove mds litdata npy] [--rows documents packed]

The paragraphs of en200 as JSON Lines are encoded with gpt2, as a row per document and as packed
rows of 2,048 ids, and exported to every target, with an EOS after each document where the target
takes one of documents. A rate is that of ids of 2 bytes over a process from start to end, best of
some rounds that take turns; beside it the rate of a copy that hashes the shards and makes them
durable, which is what an export has to do at least. The page cache is warm.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_pipeline import MEGABYTE, Run, run_process
from encoder_peers import rank_file
from pipeline_corpus import Corpus, CorpusMaker

EOS = ["--append-eos", "<|endoftext|>"]
BLOCKS = ["--block-size", "2048"]
TARGETS: dict[str, list[list[str]]] = {
    "hf": [[]],
    "megatron": [EOS],
    "nanogpt": [EOS],
    "llmc": [EOS],
    "datatrove": [EOS],
    "mds": [[], [*EOS, *BLOCKS]],
    "litdata": [[*EOS, *BLOCKS]],
    "npy": [EOS],
}
# These take packed rows as they are, the others the documents in them.
OF_PACKED_ROWS = {"hf": [[]], "mds": [[]], "litdata": [BLOCKS]}


def encode(corpus: Corpus, folder: Path, rows: str) -> Path:
    """Encode the corpus, or find it encoded."""
    output = folder / f"export-source-{rows}-{corpus.folder.name}"
    command = [sys.executable, "-m", "pipelines", "encode", "--input", str(corpus.folder)]
    command += ["--tokenizer", str(rank_file("gpt2", folder)), "--pretokenizer", "gpt2"]
    if rows == "packed":
        command += ["--pack", "2048", "--pad-id", "50256"]
    run_process([*command, "--id-field", "id", "--output", str(output)])
    return output


def copy_seconds(source: Path, target: Path) -> float:
    """Seconds to hash all shards and write them elsewhere, durably."""
    started = time.perf_counter()
    with target.open("wb") as file:
        for shard in sorted(source.glob("*.arrow")):
            data = shard.read_bytes()
            hashlib.sha256(data).hexdigest()
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    target.unlink()
    return time.perf_counter() - started


def export(source: Path, output: Path, target: str, extra: list[str]) -> tuple[Run, int]:
    """Export once, and throw it away; what the process took, and how many ids it wrote."""
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "pipelines", "export", str(source), "--to", target, *extra]
    run, said = run_process([*command, "--output", str(output)])
    shutil.rmtree(output)
    line = next(line for line in said.splitlines() if line.startswith("tokens "))
    return run, int(line.split()[1].replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--to", nargs="+", choices=TARGETS, default=list(TARGETS))
    kinds = ["documents", "packed"]
    parser.add_argument("--rows", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    corpus = CorpusMaker(options.folder).make("jsonl", options.megabytes)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    for rows in options.rows:
        source = encode(corpus, options.folder, rows)
        size = sum(shard.stat().st_size for shard in source.glob("*.arrow"))
        best: dict[tuple[str, str], tuple[Run, int]] = {}
        copied = float("inf")
        for _ in range(options.rounds):
            copied = min(copied, copy_seconds(source, options.folder / "copied"))
            for target in options.to:
                ways = TARGETS if rows == "documents" else TARGETS | OF_PACKED_ROWS
                for extra in ways[target]:
                    found = export(source, options.folder / "exported", target, extra)
                    key = (target, " ".join(each for each in extra if each in BLOCKS))
                    best[key] = min(best.get(key, found), found, key=lambda each: each[0].wall)
        print(f"{rows}: a copy with its hash {size / copied / MEGABYTE:.0f} MB/s")
        for (target, extra), (run, ids) in best.items():
            print(
                f"  {target + ' ' + extra:25} {ids:12,} ids in {run.wall:5.2f} s, "
                f"{2 * ids / run.wall / MEGABYTE:6.1f} MB/s, {run.cpu:5.2f} s of CPU, "
                f"peak {run.peak_own_bytes / MEGABYTE:,.0f} MB",
                flush=True,
            )
        shutil.rmtree(source)


if __name__ == "__main__":
    main()
