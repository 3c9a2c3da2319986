"""Kill a training in rounds at random moments, and start it again, until it is done.

    python tests/benchmarks/kill_rounds.py [--kills 20] [--seed 1] [Beam options]
    python tests/benchmarks/kill_rounds.py --workers processes|prism|dask [--kills 6]

Each cycle runs the same command; SIGKILL hits the driver after a random time, or with `--workers`
one of its worker processes. Once so many kills have hit, the command runs undisturbed, and the
model's digest must be that of a training on the driver. Prints a line per kill: when it hit, which
records were there, and for a worker what became of the driver: with `processes` it must end within
30 seconds and name the command to resume; on Prism it must fail (it waits a minute for a worker
that was not connected yet); on Dask it must go on.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "tests" / "data" / "tiny_shakespeare.txt"
SHARE_IN_ROUNDS = 0.75
HINTS = ("run again: beam-bpe train", "the same command again goes on")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    # Beam's worker pool starts `python`, whichever comes first.
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@dataclass
class Setting:
    """How the command runs, and whom to kill.

    Attributes:
        options: of Beam.
        victims: process ids of the workers that there are now, given the driver's.
        survives: whether the command goes on without a worker.
        seconds: until the command must have ended then.
    """

    options: list[str] = field(default_factory=list)
    victims: Callable[[int], list[int]] | None = None
    survives: bool = False
    seconds: float = 30


def start(*command: object) -> subprocess.Popen[str]:
    """Start `beam-bpe train` with some options, quietly."""
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines", "train", *map(str, command)],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*command: object) -> None:
    """Run to the end."""
    process = start(*command)
    _, err = process.communicate()
    if process.returncode:
        sys.exit(f"failed: {err}")


def descendants(pid: int, part: str) -> list[int]:
    """Processes below one whose command line holds a text."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(each) for each in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes().decode()
            except OSError:
                continue
            found += [child] * (part in command) + descendants(child, part)
    return found


@contextmanager
def with_processes() -> Iterator[Setting]:
    """Workers are children of the driver."""
    options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    yield Setting(options, lambda driver: descendants(driver, "pipelines.runners.worker_process"))


@contextmanager
def with_prism() -> Iterator[Setting]:
    """Workers are children of Beam's worker pool."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    module = "apache_beam.runners.worker.worker_pool_main"
    pool = subprocess.Popen(
        [sys.executable, "-m", module, f"--service_port={port}"],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    external = ["--environment_type=EXTERNAL", f"--environment_config=localhost:{port}"]
    try:
        yield Setting(
            ["--runner=PrismRunner", *external],
            lambda _: descendants(pool.pid, "SdkHarness"),
            seconds=120,
        )
    finally:
        pool.terminate()
        pool.wait()


@contextmanager
def with_dask() -> Iterator[Setting]:
    """Workers are children of a cluster of this process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield Setting(
            ["--runner=DaskRunner", f"--dask_client_address={cluster.scheduler_address}"],
            lambda _: [nanny.pid for nanny in cluster.workers.values() if nanny.pid],
            survives=True,
            seconds=300,
        )


WORKERS = {"processes": with_processes, "prism": with_prism, "dask": with_dask}


def await_record(process: subprocess.Popen[str], output: Path) -> None:
    """Wait until the command has written a record that was not there, or has ended."""
    before = set((output / "rounds").glob("*.json"))
    while process.poll() is None and not set((output / "rounds").glob("*.json")) - before:
        time.sleep(0.02)


def kill_driver(process: subprocess.Popen[str], wait: float) -> str | None:
    """Kill the command after a time; what to say of it, or None if it ended before."""
    try:
        process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return "the driver is dead"
    return None


def kill_worker(
    process: subprocess.Popen[str], wait: float, setting: Setting, generator: random.Random
) -> str | None:
    """Kill a worker after a time, and see to what becomes of the command."""
    until = time.monotonic() + wait
    victims: list[int] = []
    while process.poll() is None and not (victims and time.monotonic() > until):
        victims = setting.victims(process.pid) if setting.victims else []
        time.sleep(0.02)
    if process.poll() is not None:
        process.communicate()
        return None
    try:
        os.kill(generator.choice(victims), signal.SIGKILL)
    except ProcessLookupError:  # its job ended just now
        process.communicate()
        return None
    killed = time.monotonic()
    try:
        _, err = process.communicate(timeout=setting.seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit(f"{setting.seconds} s after its worker was killed the command still runs")
    what = f"exit code {process.returncode} after {time.monotonic() - killed:4.1f} s"
    if setting.survives != (process.returncode == 0):
        sys.exit(f"{what}: {err}")
    if process.returncode and not any(hint in err for hint in HINTS):
        sys.exit(f"{what}, and does not say how to go on: {err}")
    return what


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--longest",
        type=float,
        default=6.0,
        help="seconds until a kill, at most, from the start or from the next record",
    )
    parser.add_argument("--budget", default="0.5%", help="of segments")
    parser.add_argument("--workers", choices=[*WORKERS], help="kill these, not the driver")
    arguments, beam = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="kill-rounds-") as name:
        if arguments.workers is None:
            run(arguments, Path(name), Setting(beam))
        else:
            with WORKERS[arguments.workers]() as setting:
                run(arguments, Path(name), setting)


def run(arguments: argparse.Namespace, folder: Path, setting: Setting) -> None:
    """All kills, and the run that none disturbs."""
    generator = random.Random(arguments.seed)
    text = folder / "text.txt"
    text.write_bytes(TEXT.read_bytes()[:200_000])
    common = ("--input", text, "--pretokenizer", "none", "--vocab-size", 2000)
    finish(*common, "--engine", "driver", "--output", folder / "driver")
    wanted = Tokenizer.load(folder / "driver").digest
    rounds = ("--engine", "rounds", "--state-shards", 4, "--segment-budget", arguments.budget)
    command = (*common, *rounds, *setting.options)
    kills = runs = 0
    while kills < arguments.kills:
        output = folder / f"run{runs}"
        begun = time.monotonic()
        process = start(*command, "--output", output)
        wait = generator.uniform(0.0, arguments.longest)
        # On a busy machine a command may take long to begin: most kills are to hit rounds.
        if generator.random() < SHARE_IN_ROUNDS:
            await_record(process, output)
        done = (
            kill_driver(process, wait)
            if setting.victims is None
            else kill_worker(process, wait, setting, generator)
        )
        if done is not None:
            kills += 1
            records = sorted(path.stem for path in (output / "rounds").glob("*.json"))
            place = records[-1] if records else "nothing"
            waited = time.monotonic() - begun
            print(
                f"kill {kills:>3} after {waited:4.1f} s: {done}, last record: {place}", flush=True
            )
        if process.returncode == 0:
            check(output, wanted, f"run {runs}")
            runs += 1
    begun = time.monotonic()
    output = folder / f"run{runs}"
    finish(*command, "--output", output)
    check(output, wanted, f"undisturbed after {kills} kills, {time.monotonic() - begun:.1f} s")


def check(output: Path, wanted: str, what: str) -> None:
    """Compare the digest of what was made."""
    found = Tokenizer.load(output).digest
    if found != wanted:
        sys.exit(f"{what}: digest {found}, but undisturbed {wanted}")
    print(f"{what}: digest {found[:16]} as undisturbed", flush=True)


if __name__ == "__main__":
    main()
