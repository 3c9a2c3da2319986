"""Schemes that are compiled to automata, against gpt2's own scan, on the same text.

    python tests/benchmarks/bench_schemes.py [--corpora en200 code50 zh100] [--rounds 5]
        [--megabytes 20] [--schemes deepseek-v3 kimi]

GPT-2's vocabulary with each scheme in turn encodes documents of about 4 KB, all fresh to the
encoder (`fresh`) and again (`again`), on one thread. The schemes take turns in one process. A
figure is the scheme's CPU time over gpt2's in the same round, the median of all rounds: how many
times as long it takes. `scan` is the time to find the pre-tokens alone, over gpt2's whole time.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import CORPORA, load_model, prepare_corpus

from bpe import SCHEME_NAMES, get_scheme
from bpe.backends.native_backend import NativeEncoder

_DOCUMENT_BYTES = 4096


def read_documents(path: Path) -> pa.LargeBinaryArray:
    """A file in documents of about the same length, cut after line ends."""
    documents: list[bytes] = [b""]
    for line in path.read_bytes().splitlines(keepends=True):
        if len(documents[-1]) > _DOCUMENT_BYTES:
            documents.append(b"")
        documents[-1] += line
    return pa.array(documents, pa.large_binary())


def cpu_seconds(encoder: NativeEncoder, texts: pa.LargeBinaryArray) -> float:
    start = time.process_time()
    encoder.encode_array(texts)
    return time.process_time() - start


def compare(corpus: str, options: argparse.Namespace) -> None:
    path = prepare_corpus(corpus, options.folder, options.megabytes << 20)
    texts = read_documents(path)
    model = load_model("gpt2", options.folder).encoding_model
    ratios: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        base = (0.0, 0.0)
        for name in ("gpt2", *options.schemes):
            encoder = NativeEncoder(dataclasses.replace(model, scheme=get_scheme(name)))
            found = (cpu_seconds(encoder, texts), cpu_seconds(encoder, texts))
            base = found if name == "gpt2" else base
            ratios.setdefault(name, []).append((found[0] / base[0], found[1] / base[1]))
    for name, rows in ratios.items():
        fresh, again = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{corpus:8} {name:14} fresh {fresh:5.2f}  again {again:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = [name for name in SCHEME_NAMES if get_scheme(name).compiled]
    parser.add_argument(
        "--corpora", nargs="+", default=["en200", "code50", "zh100"], choices=CORPORA
    )
    parser.add_argument("--schemes", nargs="+", default=named)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for corpus in options.corpora:
        compare(corpus, options)


if __name__ == "__main__":
    main()
