"""Ids of whole corpora against tiktoken and tokenizers, digests chunk by chunk.

    python tests/benchmarks/bench_exactness.py [--corpora en200 code50 zh100]
        [--vocabularies gpt2 cl100k o200k] [--chunk 1000000] [--peers tiktoken tokenizers]

Chunks are cut at line ends and are documents of their own. Prints each chunk that differs, and a
digest of all ids; exits with 1 if anything differed. tokenizers reads GPT-2's files only.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from encoder_peers import CORPORA, VOCAB, VOCABULARIES, load_model, prepare_corpus, read_ranks

Ids = npt.NDArray[np.uint32]


def cut_chunks(data: bytes, size: int) -> Iterator[bytes]:
    """Ranges of about `size` bytes that end with a line."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + size) + 1 or len(data)
        yield data[start:end]
        start = end


def tiktoken_encoder(vocabulary: str, folder: Path) -> Callable[[bytes], Ids]:
    import tiktoken

    from bpe.pretokenizing.schemes import get_scheme

    encoding = tiktoken.Encoding(
        vocabulary,
        pat_str=get_scheme(vocabulary).pattern,
        mergeable_ranks=read_ranks(vocabulary, folder),
        special_tokens={},
    )
    return lambda data: np.array(encoding.encode_ordinary(data.decode()), np.uint32)


def tokenizers_encoder(vocabulary: str, folder: Path) -> Callable[[bytes], Ids] | None:
    if vocabulary != "gpt2":
        return None
    from tokenizers import ByteLevelBPETokenizer

    del folder
    files = (str(VOCAB / "encoder.json"), str(VOCAB / "vocab.bpe"))
    tokenizer = ByteLevelBPETokenizer(*files)
    return lambda data: np.array(tokenizer.encode(data.decode()).ids, np.uint32)


PEERS = {"tiktoken": tiktoken_encoder, "tokenizers": tokenizers_encoder}


def compare(corpus: str, vocabulary: str, peer: str, options: argparse.Namespace) -> bool:
    """Compare one corpus; whether everything was equal."""
    from bpe.backends.choice import get_backend

    theirs = PEERS[peer](vocabulary, options.folder)
    if theirs is None:
        return True
    model = load_model(vocabulary, options.folder).encoding_model
    encoder = get_backend("native").make_encoder(model)
    data = prepare_corpus(corpus, options.folder).read_bytes()
    total = hashlib.sha256()
    different = chunks = tokens = 0
    for number, chunk in enumerate(cut_chunks(data, options.chunk)):
        ids = encoder.encode(chunk).tobytes()
        if hashlib.sha256(ids).digest() != hashlib.sha256(theirs(chunk).tobytes()).digest():
            print(f"{corpus} {vocabulary} {peer}: chunk {number} differs")
            different += 1
        total.update(ids)
        chunks += 1
        tokens += len(ids) // 4
    print(
        f"{corpus} {vocabulary} {peer}: {chunks - different} of {chunks} chunks equal, "
        f"{tokens} tokens, sha256 {total.hexdigest()[:16]}",
        flush=True,
    )
    return different == 0


def main() -> int:
    """Compare all that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpora", nargs="+", default=["en200", "code50", "zh100"], choices=CORPORA
    )
    parser.add_argument("--vocabularies", nargs="+", default=list(VOCABULARIES))
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--chunk", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bpe-bench")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results = [
        compare(corpus, vocabulary, peer, options)
        for corpus in options.corpora
        for vocabulary in options.vocabularies
        for peer in options.peers
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
