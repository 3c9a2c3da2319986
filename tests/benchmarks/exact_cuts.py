"""Long runs and a book, cut into ranges that are read and encoded apart: the ids of the whole.

    python tests/benchmarks/exact_cuts.py [--schemes gpt2 cl100k o200k llama3 none] [--seed 1]
        [--bytes 1000000] [--cuts 10000] [--rounds 1] [--folder /tmp]

Each run is one document of one thing over and over: digits, `'s`, `'re`, `a`, `=`, `ha`, spaces,
line ends. It is cut into two ranges at each of nine places from its middle on, and into ranges of
64 KB; the first 20 MiB of en200 are cut into so many ranges as there are cuts, of a random size for
each round. Every range is a unit of its own, encoded as a worker encodes it, from its file and
without what others know. In the end `beam-bpe encode --range-bytes 64KB` encodes all runs. The ids
must be those of `Tokenizer.encode`. Schemes llama3 and none (raw) have the vocabulary of cl100k.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import prepare_corpus
from huge_document import write_tokenizer

from bpe import Tokenizer
from pipelines import EncodeSettings, ReadOptions, TokenShards, list_inputs, make_plan
from pipelines.encoding.encode_documents import UnitEncoder

ROOT = Path(__file__).resolve().parents[2]
SCHEMES = ["gpt2", "cl100k", "o200k", "llama3", "none"]
RUNS = {
    "digits": b"7",
    "s": b"'s",
    "re": b"'re",
    "a": b"a",
    "equals": b"=",
    "ha": b"ha",
    "spaces": b" ",
    "lines": b"\r\n",
}
SMALL_RANGE = 64_000

_Ids = npt.NDArray[np.uint32]


def encode_ranges(path: Path, folder: Path, digest: str, range_bytes: int) -> tuple[_Ids, int]:
    """Ids of a document whose ranges are encoded one by one, and how many ranges there are."""
    read = ReadOptions(input_format="text", range_bytes=range_bytes)
    plan = make_plan(list_inputs([str(path)], read), read, unit_bytes=range_bytes)
    settings = EncodeSettings(digest, read)
    parts: list[_Ids] = [np.empty(0, np.uint32)]
    for unit in plan.units:
        if unit.stored_bytes > range_bytes:
            sys.exit(f"{path.name}: a unit of {unit.stored_bytes} bytes, ranges of {range_bytes}")
        encoder = UnitEncoder(str(folder), unit, settings, "")
        batches = [rows.batch["input_ids"] for rows in encoder.rows()]
        parts += [ids.flatten().to_numpy().astype(np.uint32) for ids in batches]
    return np.concatenate(parts), len(plan.units)


def encode_command(corpus: Path, folder: Path) -> list[_Ids]:
    """Ids of all files, in order, from the command."""
    command = [sys.executable, "-m", "pipelines", "encode", "--range-bytes", str(SMALL_RANGE)]
    command += ["--input", str(corpus), "--tokenizer", str(folder / "tokenizer")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command += ["--output", str(folder / "tokens")]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    shards = TokenShards(str(folder / "tokens"))
    return [np.asarray(shards.document(place)) for place in range(len(RUNS))]


class Checks:
    """Counts comparisons, and names those that differ."""

    def __init__(self) -> None:
        self.made = 0
        self.failed = 0

    def equal(self, found: _Ids, wanted: _Ids, what: str) -> None:
        """Compare ids."""
        self.made += 1
        if not np.array_equal(found, wanted):
            self.failed += 1
            print(f"DIFFERENT: {what}: {len(found)} ids in place of {len(wanted)}", flush=True)


def check_scheme(scheme: str, corpus: Path, book: Path, options: argparse.Namespace) -> bool:
    """Check all texts with one scheme; prints a line for runs and one for the book."""
    checks = Checks()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="exact-cuts-") as name:
        folder = Path(name)
        write_tokenizer(scheme, folder)
        tokenizer = Tokenizer.load(folder / "tokenizer")
        wanted = {}
        for path in sorted(corpus.iterdir()):
            data = path.read_bytes()
            wanted[path.name] = tokenizer.encode(data)
            sizes = [*(len(data) // 2 + offset for offset in range(9)), SMALL_RANGE]
            for size in sizes:
                found, _ = encode_ranges(path, folder, tokenizer.digest, size)
                checks.equal(found, wanted[path.name], f"{scheme}, {path.name}, ranges of {size}")
        for (file, ids), found in zip(wanted.items(), encode_command(corpus, folder), strict=True):
            checks.equal(found, ids, f"{scheme}, {file}, by the command")
        print(
            f"{scheme}: {len(RUNS)} runs of {options.bytes:,} bytes, {checks.made} ways of cutting "
            f"them, {checks.failed} with other ids, {time.perf_counter() - started:.1f} s",
            flush=True,
        )
        failed = checks.failed + check_book(scheme, book, folder, tokenizer, options)
    return failed == 0


def check_book(
    scheme: str, book: Path, folder: Path, tokenizer: Tokenizer, options: argparse.Namespace
) -> int:
    """Cut a book in ranges of random sizes; how often ids differed."""
    checks = Checks()
    rng = random.Random(options.seed)
    started = time.perf_counter()
    wanted = tokenizer.encode(book.read_bytes())
    size, cuts = book.stat().st_size, 0
    for _ in range(options.rounds):
        range_bytes = rng.randint(size * 4 // (5 * options.cuts), size // (options.cuts + 1))
        found, ranges = encode_ranges(book, folder, tokenizer.digest, range_bytes)
        cuts += ranges - 1
        checks.equal(found, wanted, f"{scheme}, {book.name}, ranges of {range_bytes}")
    print(
        f"{scheme}: {size:,} bytes of English cut {cuts:,} times in {options.rounds} rounds, "
        f"{checks.failed} with other ids, {time.perf_counter() - started:.1f} s",
        flush=True,
    )
    return checks.failed


def main() -> int:
    """Check all schemes; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=SCHEMES)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="exact-cuts-") as name:
        corpus = Path(name) / "corpus"
        corpus.mkdir()
        for run, unit in RUNS.items():
            text = (unit * (options.bytes // len(unit) + 1))[: options.bytes]
            (corpus / f"{run}.txt").write_bytes(text)
        book = prepare_corpus("en20", Path(name))
        equal = [check_scheme(scheme, corpus, book, options) for scheme in options.schemes]
    print("equal" if all(equal) else "DIFFERENT")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
