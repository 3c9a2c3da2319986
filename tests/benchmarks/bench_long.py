"""Long inputs without natural breaks: ours against bpe-openai and gigatoken.

    python tests/benchmarks/bench_long.py [--vocabularies cl100k o200k] [--bytes 990000]

Every tokenizer is fresh for each input and encodes it once to warm up its code, and, so that no
cache answers, is timed on the reversed input. MB/s by CPU time, best of all rounds; ratio of ours
to the better of the two. The ids are compared.
"""

from __future__ import annotations

import argparse
import base64
import os
import platform
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import ENCODERS, prepare_corpus, time_once


def make_inputs(size: int, folder: Path) -> dict[str, str]:
    """Texts of about `size` bytes by name."""
    rng = random.Random(1)
    poems = prepare_corpus("zh100", folder).read_text()
    books = prepare_corpus("en20", folder).read_text()
    letters = "abcdefghijklmnopqrstuvwxyz"
    encoded = base64.b64encode(rng.randbytes(size * 3 // 4)).decode()
    inputs = {
        "one letter": "a" * size,
        "spaces": " " * size,
        "newlines": "\n" * size,
        "digits": "".join(rng.choices("0123456789", k=size)),
        "base64": encoded,
        "DNA": "".join(rng.choices("ACGT", k=size)),
        "Chinese": "".join(c for c in poems if "\u4e00" <= c <= "\u9fff")[: size // 3],
        "emoji": "".join(rng.choices("😀😂🔥👍🎉🤔", k=size // 4)),
        "random letters": "".join(rng.choices(letters, k=size)),
        "English letters": "".join(c for c in books if c in letters)[:size],
    }
    return {name: text for name, text in inputs.items() if text}


def best_rate(
    name: str, vocabulary: str, paths: list[Path], options: argparse.Namespace
) -> tuple[float, int]:
    """Best MB/s on the second file, after the first one, with a fresh tokenizer each time."""
    best = 0.0
    tokens = 0
    for _ in range(options.rounds):
        encode = ENCODERS[name](vocabulary, options.folder)
        encode(paths[0])
        seconds, _, tokens = time_once(encode, paths[1])
        best = max(best, paths[1].stat().st_size / 1e6 / max(seconds, 1e-9))
    return best, tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabularies", nargs="+", default=["cl100k", "o200k"])
    parser.add_argument("--bytes", type=int, default=990_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv))
    print(f"{'vocab':8}{'input':16}{'ours':>9}{'bpe-openai':>12}{'gigatoken':>11}{'ratio':>8}")
    inputs = make_inputs(options.bytes, options.folder)
    for vocabulary in options.vocabularies:
        for name, text in inputs.items():
            paths = [options.folder / "long-1", options.folder / "long-2"]
            paths[0].write_text(text[: len(text) // 4], newline="")
            paths[1].write_text(text[::-1], newline="")
            names = ("ours", "bpe-openai", "gigatoken")
            rates, counts = zip(
                *(best_rate(n, vocabulary, paths, options) for n in names), strict=True
            )
            same = "" if len(set(counts)) == 1 else f"  token counts differ: {counts}"
            print(
                f"{vocabulary:8}{name:16}{rates[0]:9.1f}{rates[1]:12.1f}{rates[2]:11.1f}"
                f"{rates[0] / max(rates[1:]):8.2f}{same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
