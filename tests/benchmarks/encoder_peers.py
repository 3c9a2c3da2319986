"""Corpora, vocabularies and encoders that the encode benchmarks compare.

An encoder is a function that makes a fresh tokenizer and returns its `encode(path) -> ids made`.
Peers come with the extra `bench`; every one of them encodes a whole file as one document.
"""

from __future__ import annotations

import base64
import functools
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

HERE = Path(__file__).resolve()
SHARED = HERE.parents[3] / "shared" / "data" / "corpora"
VOCAB = HERE.parents[1] / "data" / "vocab"
CORPORA = {
    "en200": ("en200.txt.zst", 200 << 20),
    "en20": ("en200.txt.zst", 20 << 20),
    "code50": ("code50.txt.zst", 50 << 20),
    "zh100": ("zh100.json.zst", 100 << 20),
    "zh20": ("zh100.json.zst", 20 << 20),
}
VOCABULARIES = ("gpt2", "cl100k", "o200k")
RANK_FILES = {"gpt2": "r50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}


def prepare_corpus(name: str, folder: Path, limit: int | None = None) -> Path:
    """Unpack a corpus (its first `limit` bytes), cut at a character's start."""
    import zstandard

    file_name, size = CORPORA[name]
    size = min(size, limit or size)
    path = folder / f"{name}-{size}"
    if not path.exists():
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        with (SHARED / file_name).open("rb") as file:
            data = reader.stream_reader(file).read(size)
        path.write_bytes(data.decode(errors="ignore").encode())
    return path


def load_model(vocabulary: str, folder: Path) -> Any:
    """Our model of a published vocabulary (bpe.encoding.tokenizer_model.TokenizerModel)."""
    from bpe.formats.gpt2_files import read_gpt2_files
    from bpe.formats.tiktoken_ranks import read_tiktoken_ranks
    from bpe.pretokenizing.schemes import get_scheme

    if vocabulary == "gpt2":
        return read_gpt2_files(
            VOCAB / "encoder.json", VOCAB / "vocab.bpe", scheme=get_scheme("gpt2")
        )
    return read_tiktoken_ranks(rank_file(vocabulary, folder), pretokenizer=vocabulary)


def rank_file(vocabulary: str, folder: Path) -> Path:
    """The vocabulary as a `.tiktoken` file under its published name."""
    path = folder / f"{RANK_FILES[vocabulary]}.tiktoken"
    if path.exists():
        return path
    if vocabulary != "gpt2":
        packed = (VOCAB / f"{RANK_FILES[vocabulary]}.tiktoken.gz").read_bytes()
        path.write_bytes(gzip.decompress(packed))
        return path
    tokens = load_model("gpt2", folder).encoding_model.tokens
    lines = [f"{base64.b64encode(tokens[i]).decode()} {i}\n" for i in sorted(tokens)]
    path.write_text("".join(lines))
    return path


def read_ranks(vocabulary: str, folder: Path) -> dict[bytes, int]:
    """Token bytes to rank."""
    rows = map(bytes.split, rank_file(vocabulary, folder).read_bytes().splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in rows}


@functools.cache
def map_document(path: Path) -> pa.LargeBinaryArray:
    """A file as an array of one document, not read into memory; mapped once."""
    data = pa.memory_map(str(path)).read_buffer()
    offsets = pa.py_buffer(np.array([0, data.size], np.int64))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, offsets, data])


def ours(vocabulary: str, folder: Path, threads: int = 1) -> Callable[[Path], int]:
    """This library's native encoder."""
    from bpe.backends.choice import get_backend

    encoder = get_backend("native").make_encoder(load_model(vocabulary, folder).encoding_model)
    return lambda path: len(encoder.encode_array(map_document(path), threads=threads).values)


def gigatoken(vocabulary: str, folder: Path, threads: int = 1) -> Callable[[Path], int]:
    import gigatoken as peer

    tokenizer = peer.Tokenizer.from_tiktoken(str(rank_file(vocabulary, folder)))

    def encode(path: Path) -> int:
        return sum(map(len, tokenizer.encode_files(str(path), parallel=threads > 1)))

    return encode


def tiktoken(vocabulary: str, folder: Path, threads: int = 1) -> Callable[[Path], int]:
    import tiktoken as peer

    from bpe.pretokenizing.schemes import get_scheme

    del threads
    tokenizer = peer.Encoding(
        vocabulary,
        pat_str=get_scheme(vocabulary).pattern,
        mergeable_ranks=read_ranks(vocabulary, folder),
        special_tokens={},
    )
    return lambda path: len(tokenizer.encode_ordinary(path.read_bytes().decode()))


def bpe_openai(vocabulary: str, folder: Path, threads: int = 1) -> Callable[[Path], int]:
    import bpe_openai as peer

    del folder, threads
    # The wrapper refuses a million characters; what does the work does not.
    backend = peer.get_encoding(RANK_FILES[vocabulary])._backend
    return lambda path: len(backend.encode(path.read_bytes().decode()))


def tokenizers(vocabulary: str, folder: Path, threads: int = 1) -> Callable[[Path], int]:
    """Hugging Face's library, with our export of the vocabulary."""
    import tokenizers as peer

    from bpe.formats.tokenizer_json import render_tokenizer_json

    del threads
    tokenizer = peer.Tokenizer.from_str(render_tokenizer_json(load_model(vocabulary, folder)))
    return lambda path: len(tokenizer.encode(path.read_bytes().decode()))


ENCODERS = {
    "ours": ours,
    "gigatoken": gigatoken,
    "tiktoken": tiktoken,
    "bpe-openai": bpe_openai,
    "tokenizers": tokenizers,
}


def time_once(function: Callable[[Path], int], path: Path) -> tuple[float, float, int]:
    """CPU seconds and wall seconds of the process, and what the function returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function(path)
    return time.process_time() - cpu, time.perf_counter() - wall, result
