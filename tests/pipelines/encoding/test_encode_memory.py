"""Memory of an encoding run follows the size of units and buckets, never that of the corpus."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own, where no earlier test has left free memory that could be used again.
SCRIPT = """
import json, sys, threading, time
from pathlib import Path
from pipelines.cli.command_line import run

def own_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))

peak = 0
def watch():
    global peak
    while True:
        peak = max(peak, own_bytes())
        time.sleep(0.005)

def encode(corpus, output, layout):
    command = ["encode", "--input", corpus, "--input-format", "lines", "--tokenizer", model]
    command += ["--output", output, "--range-bytes", "1000000", "--shard-bytes", "1000000"]
    assert run([*command, "--direct_num_workers=1", *layout]) == 0

model, small, large, folder, layouts = *sys.argv[1:5], json.loads(sys.argv[5])
encode(small, f"{folder}/small", layouts["everything"])
threading.Thread(target=watch, daemon=True).start()
found = {}
for name, layout in layouts.items():
    before = peak = own_bytes()
    encode(large, f"{folder}/{name}", layout)
    found[name] = peak - before
print(json.dumps(found))
"""
FIT = ("--pack", "512", "--pack-mode", "best-fit", "--pad-id", "0")
LAYOUTS = {
    "none": (),
    "shard": ("--shuffle", "shard"),
    "everything": ("--shuffle", "global", *FIT, "--split", "train=0.7,test=0.3"),
}
# Twice what a unit or bucket and the blocks on the way take; all rows of the corpus are 45 MB more.
ALLOWED_BYTES = 45_000_000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="own memory is read from /proc")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps freed memory"
)
@pytest.mark.skipif(
    os.environ.get("BPE_BACKEND") == "python", reason="takes minutes without the native core"
)
def test_no_layout_holds_the_rows_of_the_whole_corpus(model_dir: Path, tmp_path: Path) -> None:
    choose = random.Random(1)
    words = ["".join(choose.choices("abcdefgh", k=choose.randint(1, 9))) for _ in range(3000)]
    lines = [" ".join(choose.choices(words, k=8)) + "\n" for _ in range(50_000)]
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_text("".join(lines[:10_000]))
    large.write_text("".join(lines) * 7)
    arguments = [*map(str, (model_dir, small, large, tmp_path)), json.dumps(LAYOUTS)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    grown = json.loads(done.stdout.splitlines()[-1])
    assert max(grown.values()) < ALLOWED_BYTES, grown
