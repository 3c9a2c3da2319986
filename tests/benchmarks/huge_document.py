"""One document of several gigabytes through `beam-bpe encode`: memory, time, and the same ids.

    python tests/benchmarks/huge_document.py [--gigabytes 4] [--kind prose|run] [--scheme cl100k]
        [--seed 1] [--folder /tmp]

`prose` is made of sentences with names, numbers, contractions, marks and letters of other scripts;
`run` is one pre-token, a single letter over and over, after a few words. Schemes are gpt2, cl100k,
o200k, llama3 and none (raw); the last two have the vocabulary of cl100k. What the command wrote is
compared with the library's ids, sha256 over them as uint32: of prose in pieces between certain
cuts, of anything else as a whole in memory, so that a quarter of a gigabyte is enough there.
Takes as much disk as the document and its ids have together, and leaves none of it behind.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

BLOCK = 4 << 20
SYLLABLES = (
    "a",
    "an",
    "be",
    "con",
    "da",
    "der",
    "el",
    "en",
    "fo",
    "ga",
    "in",
    "ka",
    "lo",
    "ne",
    "or",
    "wi",
)
EXTRAS = [
    "it's",
    "we'll",
    "I'VE",
    "1,024",
    "1999",
    "(so)",
    "na\u00efve",
    "\u4e2d\u6587",
    "\U0001f642",
    "--",
]


def sentences(rng: random.Random, count: int) -> list[bytes]:
    """Sentences of words whose frequencies fall as those of a language do."""
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
    found = []
    for _ in range(count):
        chosen = rng.choices(words, cum_weights=weights, k=rng.randint(3, 25))
        if rng.random() < 0.3:
            chosen.insert(rng.randint(1, len(chosen)), rng.choice(EXTRAS))
        found.append(
            (" ".join(chosen).capitalize() + rng.choice([". ", "? ", "!\n", ".\r\n\n"])).encode()
        )
    return found


def blocks(kind: str, size: int, seed: int) -> Iterator[bytes]:
    """The document, a few megabytes at a time; the same for the same arguments."""
    rng = random.Random(seed)
    pool = sentences(rng, 20_000) if kind == "prose" else []
    left = size
    while left:
        if kind == "prose":
            data = b"".join(rng.choices(pool, k=40_000))
        else:
            data = b"A few words, and then " * (left == size) + b"a" * BLOCK
        data = data[:left]
        left -= len(data)
        yield data


def write_document(path: Path, kind: str, size: int, seed: int) -> None:
    """Write the document."""
    with path.open("wb") as file:
        for data in blocks(kind, size, seed):
            file.write(data)


def write_tokenizer(scheme: str, folder: Path) -> None:
    """Save the tokenizer; in a process of its own, whose memory is not ours."""
    from encoder_peers import VOCABULARIES, load_model

    from bpe import Tokenizer
    from bpe.pretokenizing.schemes import get_scheme

    model = load_model(scheme if scheme in VOCABULARIES else "cl100k", folder)
    Tokenizer(replace(model, scheme=get_scheme(scheme))).save(folder / "tokenizer")


def encode(folder: Path) -> tuple[float, int]:
    """Run the command; seconds, and peak resident memory in bytes."""
    command = [sys.executable, "-m", "pipelines", "encode"]
    command += ["--input", str(folder / "document.txt"), "--tokenizer", str(folder / "tokenizer")]
    command += ["--output", str(folder / "tokens")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"encode ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def digest_of_shards(folder: Path) -> tuple[str, int, int]:
    """Digest, number of ids and of rows of what the command wrote."""
    from pipelines import TokenShards

    shards = TokenShards(str(folder / "tokens"))
    digest, count = hashlib.sha256(), 0
    for row in range(len(shards)):
        ids = shards[row]
        digest.update(ids.astype("<u4").tobytes())
        count += len(ids)
    return digest.hexdigest(), count, len(shards)


def digest_of_pieces(folder: Path, *, cut: bool) -> tuple[str, int]:
    """Digest and number of the library's ids, in pieces between certain cuts or as a whole."""
    from bpe import Tokenizer
    from bpe.pretokenizing.cut_points import CutFinder

    tokenizer = Tokenizer.load(folder / "tokenizer")
    finder = CutFinder(tokenizer.scheme)
    digest, count, rest = hashlib.sha256(), 0, b""
    with (folder / "document.txt").open("rb") as file:
        while data := file.read(BLOCK if cut else -1):
            rest += data
            place = finder.first_cut(rest, max(0, len(rest) - 4096), final=False) if cut else None
            if place is None:
                continue
            ids = tokenizer.encode(rest[:place])
            rest = rest[place:]
            digest.update(ids.astype("<u4").tobytes())
            count += len(ids)
    ids = tokenizer.encode(rest)
    digest.update(np.asarray(ids, "<u4").tobytes())
    return digest.hexdigest(), count + len(ids)


def main() -> int:
    """Encode and compare; 1 if anything differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--kind", choices=["prose", "run"], default="prose")
    schemes = ["gpt2", "cl100k", "o200k", "llama3", "none"]
    parser.add_argument("--scheme", choices=schemes, default="cl100k")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    size = int(options.gigabytes * 1e9)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="huge-document-") as name:
        folder = Path(name)
        write_document(folder / "document.txt", options.kind, size, options.seed)
        pid = os.fork()
        if pid == 0:
            write_tokenizer(options.scheme, folder)
            os._exit(0)
        os.waitpid(pid, 0)
        seconds, peak = encode(folder)
        print(
            f"{options.kind} {options.scheme}: {size / 1e9:.2f} GB in {seconds:.1f} s, "
            f"{size / seconds / 1e6:.1f} MB/s, peak {peak / 1e6:.0f} MB resident",
            flush=True,
        )
        found, tokens, rows = digest_of_shards(folder)
        print(f"command: {tokens} ids in {rows} rows, sha256 {found[:16]}", flush=True)
        is_cut = options.kind == "prose" and options.scheme != "none"
        expected, count = digest_of_pieces(folder, cut=is_cut)
        print(f"library: {count} ids, sha256 {expected[:16]}")
    print("equal" if found == expected else "DIFFERENT")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
