"""Encoding with added tokens: how fast compared with the same vocabulary without them.

    python tests/benchmarks/bench_added_tokens.py [--rounds 5] [--megabytes 20] [--threads 1]

CodeGen's vocabulary and its 38 runs of spaces on code; the same vocabulary with the 1,283 added
tokens of DeepSeek-V4 on code and on English. The files are those of the zoo beside the checkout.
The two encoders take turns in one process; the best of all rounds counts; MB/s are decimal, by
CPU time.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import prepare_corpus

from bpe import Tokenizer
from bpe.encoding.added_tokens import AddedToken

ZOO = Path(__file__).resolve().parents[3] / "shared" / "data" / "zoo" / "files"


def read_family(name: str, folder: Path) -> Path:
    """Unpack the tokenizer.json of a family."""
    path = folder / f"{name}.json"
    path.write_bytes(lzma.decompress((ZOO / name / "tokenizer.json.xz").read_bytes()))
    return path


def with_tokens_of(tokenizer: Tokenizer, path: Path) -> Tokenizer:
    """The vocabulary with the added tokens of another file, numbered anew."""
    first = max(tokenizer.model.tokens) + 1
    added = [
        AddedToken(entry["content"], first + index, **{name: entry[name] for name in FLAGS})
        for index, entry in enumerate(json.loads(path.read_text())["added_tokens"])
    ]
    return Tokenizer(replace(tokenizer.model, added_tokens=added))


FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")


def measure(tokenizer: Tokenizer, texts: pa.Array, policy: str, threads: int) -> tuple[float, int]:
    """CPU seconds and ids of one go."""
    start = time.process_time()
    encoded = tokenizer.encode_batch(texts, special_text=policy, threads=threads)
    return time.process_time() - start, len(encoded.values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    codegen = Tokenizer.from_huggingface(read_family("codegen", options.folder))
    deepseek = with_tokens_of(codegen, read_family("deepseek-v4", options.folder))
    plain = Tokenizer(replace(codegen.model, added_tokens=()))
    print("tokens of    corpus  policy  without MB/s  with MB/s  ratio      ids without, with")
    for name, tokenizer, corpus in (
        ("codegen", codegen, "code50"),
        ("deepseek-v4", deepseek, "code50"),
        ("deepseek-v4", deepseek, "en200"),
    ):
        data = prepare_corpus(corpus, options.folder, options.megabytes << 20).read_bytes()
        texts = pa.array([data], pa.large_binary())
        for policy in ("text", "allow"):
            rounds = [
                [measure(each, texts, policy, options.threads) for each in (plain, tokenizer)]
                for _ in range(options.rounds)
            ]
            best = [min(pair[side] for pair in rounds) for side in (0, 1)]
            speeds = [len(data) / 1e6 / seconds for seconds, _ in best]
            print(
                f"{name:12} {corpus:7} {policy:7} {speeds[0]:12.0f} {speeds[1]:10.0f}"
                f" {speeds[1] / speeds[0]:6.2f} {best[0][1]:16,} {best[1][1]:12,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
