"""Decoding: ours against gigatoken, tiktoken and tokenizers, ids to bytes, on one core.

    python tests/benchmarks/bench_decode.py [--corpora en200 code50 zh100]
        [--vocabularies gpt2 cl100k o200k] [--rounds 3] [--core 1] [--megabytes 50]

Each corpus (its first `--megabytes`) is encoded once. Ours decodes the ids to one bytes object, and
as lists of 1,000 to an Arrow column, whose memory is used again from call to call. tiktoken takes
a Python list, tokenizers and gigatoken what their own interface takes; slow peers get the first
million ids. Decoders take turns, the best of all rounds counts; GB/s of text, by CPU time.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pyarrow as pa
from encoder_peers import CORPORA, VOCABULARIES, map_document, prepare_corpus, rank_file, read_ranks

from bpe.backends.choice import get_backend
from bpe.pretokenizing.schemes import get_scheme

PEER_IDS = 1_000_000
LIST_IDS = 1_000


def tiktoken_decoder(vocabulary: str, folder: Path, ids: Any) -> Callable[[], int]:
    import tiktoken

    peer = tiktoken.Encoding(
        vocabulary,
        pat_str=get_scheme(vocabulary).pattern,
        mergeable_ranks=read_ranks(vocabulary, folder),
        special_tokens={},
    )
    values = ids[:PEER_IDS].tolist()
    return lambda: len(peer.decode_bytes(values))


def gigatoken_decoder(vocabulary: str, folder: Path, ids: Any) -> Callable[[], int]:
    import gigatoken

    peer = gigatoken.Tokenizer.from_tiktoken(str(rank_file(vocabulary, folder)))
    values = ids[:PEER_IDS].tolist()
    return lambda: len(peer.decode(values))


def tokenizers_decoder(vocabulary: str, folder: Path, ids: Any) -> Callable[[], int]:
    import tokenizers

    from bpe import Tokenizer

    path = folder / f"{vocabulary}-tokenizer.json"
    if not path.exists():
        ours = Tokenizer.from_tiktoken(rank_file(vocabulary, folder), pretokenizer=vocabulary)
        ours.to_huggingface(path)
    peer = tokenizers.Tokenizer.from_file(str(path))
    values = ids[:PEER_IDS].tolist()
    return lambda: len(peer.decode(values).encode())


PEERS = {
    "tiktoken": tiktoken_decoder,
    "gigatoken": gigatoken_decoder,
    "tokenizers": tokenizers_decoder,
}


def our_decoders(vocabulary: str, folder: Path, path: Path) -> tuple[Any, dict[str, Any]]:
    """The ids of a corpus, and what to time."""
    from bpe import Tokenizer

    tokenizer = Tokenizer.from_tiktoken(rank_file(vocabulary, folder), pretokenizer=vocabulary)
    values = tokenizer.encode_batch(map_document(path)).values
    ids = values.to_numpy()
    ends = np.append(np.arange(0, len(ids), LIST_IDS), len(ids)).astype(np.int64)
    lists = pa.LargeListArray.from_arrays(pa.array(ends), values)
    return ids, {
        "ours, bytes": lambda: len(tokenizer.decode(ids)),
        "ours, column": lambda: tokenizer.decode_batch(lists).nbytes - 8 * len(ends),
    }


def compare(corpus: str, vocabulary: str, options: argparse.Namespace) -> None:
    """Let the decoders take turns; print GB/s of each, and ours (bytes) over it."""
    path = prepare_corpus(corpus, options.folder, options.megabytes * 10**6)
    ids, decoders = our_decoders(vocabulary, options.folder, path)
    for name in options.peers:
        try:
            decoders[name] = PEERS[name](vocabulary, options.folder, ids)
        except ImportError as error:
            print(f"{name} is left out: {error}")
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, decode in decoders.items():
            started = time.process_time()
            size = decode()
            rate = size / 1e9 / (time.process_time() - started)
            best[name] = max(rate, best.get(name, 0.0))
    print(
        f"{corpus:7} {vocabulary:7}"
        + "".join(f" | {n} {r:.3f} ({best['ours, bytes'] / r:.1f}x)" for n, r in best.items()),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpora", nargs="+", default=["en200", "code50", "zh100"], choices=CORPORA
    )
    parser.add_argument("--vocabularies", nargs="+", default=list(VOCABULARIES))
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=1)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    print(platform.platform(), f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("command:", " ".join(sys.argv), f"{get_backend().name} backend; GB/s of CPU time")
    for corpus in options.corpora:
        for vocabulary in options.vocabularies:
            compare(corpus, vocabulary, options)


if __name__ == "__main__":
    main()
