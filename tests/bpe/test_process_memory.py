"""Free memory goes back to the system; what is in use stays."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pyarrow as pa
import pytest

from bpe.process_memory import give_back_memory
from bpe.tokenizer import Tokenizer

SCRIPT = """
import json
from pathlib import Path
import pyarrow as pa
from bpe.backend import EncodingModel
from bpe.native_backend import NativeBackend
from bpe.process_memory import bound_free_memory, give_back_memory
from bpe.schemes import get_scheme

def own_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

bound_free_memory()
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
print(json.dumps(found))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps other books")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory"
)
def test_free_memory_goes_back() -> None:
    pytest.importorskip("bpe._native", reason="the native core is not built")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Large blocks at once; ids (40 MB) and holes in the heap (50 MB) when they are asked for.
    assert found["used"] - found["without large"] > 15_000_000, found
    assert found["freed"] - found["given back"] > 75_000_000, found


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
