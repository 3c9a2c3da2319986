"""Threads that are inside the core while the interpreter ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("bpe._native", reason="the native core is not built")

# A daemon thread asks for Python's lock again and again on its way out of the core; one of them
# is all but certain to ask while the interpreter ends.
SCRIPT = """
import threading, time
import pyarrow as pa
from bpe import Tokenizer
tokenizer = Tokenizer.from_merges([(b"a", b"b")], pretokenizer="gpt2")
texts = pa.array([b"abc " * 50] * 20)
ids = tokenizer.encode_batch(texts)
def work():
    while True:
        tokenizer.encode(b"ab" * 500)
        tokenizer.decode_batch(tokenizer.encode_batch(texts))
        tokenizer.decode(ids.values)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.slow
def test_daemon_threads_do_not_abort_the_process() -> None:
    root = str(Path(__file__).resolve().parents[2])
    running = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=root, stderr=subprocess.PIPE)
        for _ in range(20)
    ]
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in running]
    assert ended == [(b"", 0)] * 20
