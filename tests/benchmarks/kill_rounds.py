"""Kill a training in rounds at random moments, and start it again, until it is done.

    python tests/benchmarks/kill_rounds.py [--kills 20] [--seed 1] [Beam options]

Each cycle runs the same command; SIGKILL hits the driver after a random time. Once so many kills
have hit, the command runs undisturbed, and the model's digest must be that of a training on the
driver. Prints a line per kill: when it hit, and which records were there.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests" / "data" / "tiny_shakespeare.txt"


def start(*command: object) -> subprocess.Popen[bytes]:
    """Start `beam-bpe train` with some options, quietly."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines", "train", *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(*command: object) -> str:
    """Run to the end; returns what was said."""
    process = start(*command)
    _, err = process.communicate()
    if process.returncode:
        sys.exit(f"failed: {err.decode()}")
    return err.decode()


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds until a kill, at most")
    arguments, beam = parser.parse_known_args()
    generator = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="kill-rounds-") as name:
        folder = Path(name)
        text = folder / "text.txt"
        text.write_bytes(TEXT.read_bytes()[:200_000])
        common = ("--input", text, "--pretokenizer", "none", "--vocab-size", 2000)
        finish(*common, "--engine", "driver", "--output", folder / "driver")
        wanted = Tokenizer.load(folder / "driver").digest
        rounds = (*common, "--engine", "rounds", "--state-shards", 4, "--segment-budget", "0.5%")
        kills = runs = 0
        while kills < arguments.kills:
            output = folder / f"run{runs}"
            process = start(*rounds, "--output", output, *beam)
            wait = generator.uniform(1.0, arguments.longest)
            try:
                process.communicate(timeout=wait)
                ended = True
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                ended = False
            if ended:
                check(output, wanted, f"run {runs} ended between two kills")
                runs += 1
                continue
            kills += 1
            records = sorted(path.stem for path in (output / "rounds").glob("*.json"))
            place = records[-1] if records else "nothing"
            print(f"kill {kills:>3} after {wait:4.1f} s, last record: {place}", flush=True)
        begun = time.monotonic()
        output = folder / f"run{runs}"
        finish(*rounds, "--output", output, *beam)
        check(output, wanted, f"undisturbed after {kills} kills, {time.monotonic() - begun:.1f} s")


def check(output: Path, wanted: str, what: str) -> None:
    """Compare the digest of what was made."""
    found = Tokenizer.load(output).digest
    if found != wanted:
        sys.exit(f"{what}: digest {found}, but undisturbed {wanted}")
    print(f"{what}: digest {found[:16]} as undisturbed", flush=True)


if __name__ == "__main__":
    main()
