"""Free memory goes back to the system; what is in use stays."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bpe.backends.process_memory import give_back_memory, join_large, large_buffer
from bpe.tokenizer import Tokenizer

OWN_BYTES = """
import json
from pathlib import Path
import pyarrow as pa
from bpe.backends.values import (EncodingModel)
from bpe.backends.native_backend import NativeBackend
from bpe.backends.process_memory import bound_free_memory, give_back_memory, large_buffer
from bpe.pretokenizing.schemes import get_scheme

def own_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

bound_free_memory()
"""

SCRIPT = """
model = EncodingModel({byte: bytes([byte]) for byte in range(256)}, [], False, get_scheme("none"))
text = pa.array([b"a" * 20_000_000], pa.large_binary())
ids = NativeBackend().make_encoder(model, cache_bytes=1 << 20).encode_array(text)
small = [pa.array([b"a" * 50_000]) for _ in range(1_000)]
last = small[-1]
large = pa.array([b"a" * 20_000_000])
found = {"used": own_bytes()}
del large
found["without large"] = own_bytes()
del ids, small
found["freed"] = own_bytes()
give_back_memory()
found["given back"] = own_bytes()
buffer = large_buffer(50_000_000)
buffer[:] = b"a" * 50_000_000
del buffer
give_back_memory(keep_bytes=60_000_000)
found["kept"] = own_bytes()
give_back_memory(keep_bytes=40_000_000)
found["not kept"] = own_bytes()
print(json.dumps(found))
"""


def run_script(script: str) -> dict[str, int]:
    """What a script finds of its own memory, in a process of its own; bytes."""
    pytest.importorskip("bpe._native", reason="the native core is not built")
    done = subprocess.run(
        [sys.executable, "-c", OWN_BYTES + script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"BPE_BACKEND": "native"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


counts_memory = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="another C library keeps other books, and AddressSanitizer keeps freed memory",
)


@counts_memory
def test_free_memory_goes_back() -> None:
    found = run_script(SCRIPT)
    # Large blocks at once; ids (40 MB) and holes in the heap (50 MB) when they are asked for.
    assert found["used"] - found["without large"] > 15_000_000, found
    assert found["freed"] - found["given back"] > 75_000_000, found
    assert found["kept"] - found["not kept"] > 45_000_000, found


@pytest.mark.usefixtures("backend")
def test_what_is_used_stays_and_an_encoder_comes_back() -> None:
    tokenizer = Tokenizer.from_merges([(b"a", b"b"), (b"ab", b"c")], pretokenizer="gpt2")
    texts = pa.array(["abc ab", "cab"] * 100)
    before = tokenizer.encode_batch(texts)
    expected = before.to_pylist()
    give_back_memory()
    tokenizer.forget_encoder()
    assert tokenizer.encode_batch(texts).equals(before)
    assert before.to_pylist() == expected
    tokenizer.forget_encoder()
    assert tokenizer.encode("abc ab").tolist() == expected[0]


@pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_large_buffers_are_apart_and_hold_what_is_written(size: int) -> None:
    first, second = large_buffer(size), large_buffer(size)
    first[:] = b"a" * size
    second[:] = b"b" * size
    part = second[size // 2 :]
    del second
    # Whatever takes the memory again, it is not this.
    third = large_buffer(size)
    third[:] = b"c" * size
    assert (bytes(first), bytes(third)) == (b"a" * size, b"c" * size)
    assert bytes(part) == b"b" * (size - size // 2)
    assert bytes(join_large([first, b"", part])) == bytes(first) + bytes(part)


def test_arrays_keep_the_memory_that_they_are_in() -> None:
    size = 2 << 20
    buffer = large_buffer(size)
    buffer[:] = b"a" * size
    array = pa.Array.from_buffers(pa.uint8(), size, [None, pa.py_buffer(buffer)])
    del buffer
    give_back_memory()
    large_buffer(size)[:] = b"b" * size
    assert pc.unique(array).to_pylist() == [ord("a")]
