"""Memory of scanned rows: it comes from the core's pool of pages, and goes back there."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import json
from pathlib import Path
import numpy as np
from bpe.backends.process_memory import bound_free_memory, give_back_memory, large_buffer
from pipelines.corpus.jsonl.json_rows import scan_json_rows

def own_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

bound_free_memory()

def scan(row, after=b"", read_before=0):
    starts = np.array([0, len(row)] if after else [0])
    rows, before = large_buffer(len(row) + len(after)), large_buffer(read_before)
    rows[:], before[:] = row + after, b"a" * read_before
    del before
    return scan_json_rows(rows, starts, np.append(starts[1:], len(rows)), text=["text"])

page = b'{"page": "' + b"a" * 20_000_000 + b'", "text": "b"}'
scan(page)
give_back_memory()
found = {"used": own_bytes()}
texts = [scan(page, read_before=len(page)) for _ in range(8)]
give_back_memory()
found["texts"] = own_bytes()
assert [text.to_pylist() for text, _ in texts] == [[b"b"]] * 8
assert scan(b'{"text": "' + b"a" * 50_000_000 + b'"}', b"{no row") is None
give_back_memory(keep_bytes=40_000_000)
found["no rows"] = own_bytes()
print(json.dumps(found))
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="another C library keeps other books, and AddressSanitizer keeps freed memory",
)
def test_texts_of_json_keep_no_memory_of_what_stood_around_them() -> None:
    pytest.importorskip("pipelines._io", reason="the native extension is not built")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"BPE_BACKEND": "native"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    assert found["texts"] - found["used"] < 25_000_000, found
    # What was written for rows that turned out to be none is known, too.
    assert found["no rows"] - found["texts"] < 25_000_000, found
