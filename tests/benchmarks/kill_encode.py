"""Kill an encoding while it makes its output, and start it again, until it is done.

    python tests/benchmarks/kill_encode.py [--kills 20] [--megabytes 40] [--seed 1] [Beam options]

For `--shuffle` none and global, in process with one and two workers and with two worker processes:
the same command runs again and again, and SIGKILL hits its process group a random moment after it
has begun or finished a random number of shards, spills and records; how many, is printed. Every
file that is visible under a final name then must be one of the undisturbed run, byte for byte. In
the end the command runs undisturbed; its files must be those of the undisturbed run, and the ids of
its documents those of the input, each once. Prints what each run says that it kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
# A run that is to be killed gets to make so many files, and then goes on for up to so many seconds.
MOST_FILES = 12
MOST_SECONDS = 0.05
OWN = "__beam-bpe__"
FINAL = ("*.arrow", f"{OWN}/sidecars/*", f"{OWN}/units/*", f"{OWN}/shuffle/*")
PATTERNS = (*FINAL, "_temporary/*unit-*", "_temporary/*shard-*")
TEXT = ROOT / "tests" / "data" / "tiny_shakespeare.txt"
PROCESSES = "--direct_running_mode=multi_processing"
WAYS = {
    "1 thread": ["--direct_num_workers=1"],
    "2 threads": ["--direct_num_workers=2"],
    "2 processes": ["--direct_num_workers=2", PROCESSES],
}


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start `beam-bpe encode` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines", "encode", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def visible(output: Path) -> dict[str, str]:
    """Digest of each shard, sidecar and record that has its final name."""
    files = [path for pattern in FINAL for path in output.glob(pattern)]
    found = {}
    for path in files:
        found[str(path.relative_to(output))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def made(output: Path) -> set[int]:
    """Shards, sidecars, spills and records, finished or begun, each attempt's apart, by inode."""
    found = set()
    for pattern in PATTERNS:
        for path in output.glob(pattern):
            # One that is renamed or removed meanwhile was seen, or will be under its other name.
            with suppress(FileNotFoundError):
                found.add(path.stat().st_ino)
    return found


def document_ids(output: Path) -> list[str]:
    """Ids of all documents in the shards."""
    ids = []
    for path in output.glob("*.arrow"):
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        ids += table.filter(table["is_last"])["document_id"].to_pylist()
    return ids


def kept(err: str) -> str:
    """What a run says that it kept."""
    lines = [line for line in err.splitlines() if line.startswith("resuming")]
    return lines[0] if lines else "nothing to resume"


def write_corpus(folder: Path, megabytes: int) -> int:
    """Lines of a text as rows of JSON, in several files; returns how many."""
    lines = TEXT.read_text().splitlines(keepends=True)
    texts = ["".join(lines[start : start + 20]) for start in range(0, len(lines), 20)]
    count = 0
    for number in range(megabytes):
        with (folder / f"{number:03d}.jsonl").open("w") as file:
            for text in texts:
                file.write(json.dumps({"id": count, "text": f"{count} {text}"}) + "\n")
                count += 1
    return count


class Trial:
    """One way of running, compared with an undisturbed run.

    Args:
        folder: for outputs.
        command: options without `--output`.
        documents: how many the input has.
    """

    def __init__(self, folder: Path, command: list[str], documents: int) -> None:
        self._folder = folder
        self._command = command
        self._documents = documents
        begun = time.monotonic()
        # Spills are gone in the end; what they must be is seen before they are removed.
        undisturbed = folder / "undisturbed"
        self._finish(undisturbed)
        self.seconds = time.monotonic() - begun
        self._wanted = visible(undisturbed)
        self._spills: dict[str, str] = {}

    def run(self, kills: int, generator: random.Random) -> int:
        """Kill so many runs; returns how many bytes-for-bytes comparisons were made."""
        outputs = hit = compared = 0
        while hit < kills:
            output = self._folder / f"run{outputs}"
            before = made(output)
            process = start([*self._command, "--output", str(output)])
            wanted = generator.randint(1, MOST_FILES)
            while process.poll() is None and len(made(output) - before) < wanted:
                time.sleep(0.002)
            time.sleep(generator.uniform(0, MOST_SECONDS))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                err = process.communicate()[1].decode()
                hit += 1
                compared += self._look(output)
                files, half = len(made(output) - before), len(list(output.glob("_temporary/*")))
                print(f"  kill {hit:>2}: {files:>2} files, {half} of them half; {kept(err)}")
                continue
            err = process.communicate()[1].decode()
            if process.returncode:
                sys.exit(f"failed: {err}")
            print(f"  ended between two kills: {kept(err)}", flush=True)
            self._check_whole(output)
            outputs += 1
        output = self._folder / f"run{outputs}"
        print(f"  then undisturbed: {kept(self._finish(output))}")
        self._check_whole(output)
        return compared

    def _finish(self, output: Path) -> str:
        process = start([*self._command, "--output", str(output)])
        _, err = process.communicate()
        if process.returncode:
            sys.exit(f"failed: {err.decode()}")
        return err.decode()

    def _look(self, output: Path) -> int:
        """Compare what a killed run left under final names with the undisturbed run."""
        found = visible(output)
        for name, digest in found.items():
            wanted = self._wanted.get(name)
            if wanted is None:
                # A spill: all runs have to agree on it.
                wanted = self._spills.setdefault(name, digest)
                if not name.startswith(f"{OWN}/shuffle/"):
                    sys.exit(f"{output / name}: the undisturbed run has no such file")
            if digest != wanted:
                sys.exit(f"{output / name}: differs from the undisturbed run's")
        return len(found)

    def _check_whole(self, output: Path) -> None:
        if visible(output) != self._wanted:
            sys.exit(f"{output}: differs from {self._folder / 'undisturbed'}")
        if list(output.glob("_temporary/*")):
            sys.exit(f"{output}: temporary files are left")
        counts = Counter(document_ids(output))
        if counts != Counter(map(str, range(self._documents))):
            sys.exit(f"{output}: documents were lost or repeated")


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shuffles", nargs="+", default=["none", "global"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    arguments, beam = parser.parse_known_args()
    generator = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="kill-encode-") as name:
        base = Path(name)
        corpus = base / "corpus"
        corpus.mkdir()
        documents = write_corpus(corpus, arguments.megabytes)
        merges = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he"), (b"a", b"n"), (b"an", b"d")]
        Tokenizer.from_merges(merges, pretokenizer="gpt2").save(base / "tokenizer")
        common = ["--input", str(corpus), "--tokenizer", str(base / "tokenizer")]
        common += ["--id-field", "id", "--shard-bytes", "1MB", "--range-bytes", "256KB", *beam]
        for shuffle in arguments.shuffles:
            for way in arguments.ways:
                folder = base / f"{shuffle}-{way.replace(' ', '-')}"
                folder.mkdir()
                print(f"--shuffle {shuffle}, {way}", flush=True)
                command = [*common, "--shuffle", shuffle, *WAYS[way]]
                trial = Trial(folder, command, documents)
                compared = trial.run(arguments.kills, generator)
                print(
                    f"--shuffle {shuffle}, {way}: {arguments.kills} kills within "
                    f"{trial.seconds:.1f} s each; {compared} files under final names and all "
                    f"{documents:,} documents as undisturbed",
                    flush=True,
                )


if __name__ == "__main__":
    main()
