"""Rounds on every runner that can be had here, and what happens when a worker dies."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer
from pipelines.runners.runner_setup import PRISM_VARIABLE
from tests.pipelines.worker_processes import worker_processes

Run = Callable[..., Any]

ROUNDS = ("--engine", "rounds", "--state-shards", 3, "--segment-budget", "1kB")
SIZE = ("--vocab-size", 275)
PROCESSES = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")


def prism_options() -> tuple[str, ...]:
    if not (os.environ.get(PRISM_VARIABLE) or shutil.which("prism")):
        pytest.skip(f"no Prism binary: set {PRISM_VARIABLE}, or install prism")
    return ("--runner=PrismRunner",)


@pytest.fixture
def options(request: pytest.FixtureRequest) -> Iterator[tuple[str, ...]]:
    """Options of the runner that the test is to use; a cluster of two processes for Dask."""
    if request.param == "processes":
        yield PROCESSES
    elif request.param == "prism":
        yield prism_options()
    else:
        if importlib.util.find_spec("distributed") is None:
            pytest.skip("the package distributed is not installed")
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            yield ("--runner=DaskRunner", f"--dask_client_address={address}")


def digest(folder: Path) -> str:
    return Tokenizer.load(folder).digest


@pytest.mark.slow
@pytest.mark.parametrize("options", ["processes", "prism", "dask"], indirect=True)
def test_rounds_are_the_same_on_every_runner(
    options: tuple[str, ...], short: Path, tmp_path: Path, run: Run, start: Run
) -> None:
    train = ("train", "--input", short, "--pretokenizer", "none", *SIZE)
    process = start(*train, *ROUNDS, "--output", tmp_path / "rounds", *options)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert run(*train, "--output", tmp_path / "driver").code == 0
    assert digest(tmp_path / "rounds") == digest(tmp_path / "driver")
    assert len(Tokenizer.load(tmp_path / "rounds").training["rounds"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("options", ["processes", "prism"], indirect=True)
def test_a_chain_of_rounds_is_the_same_on_runners_that_take_it(
    options: tuple[str, ...], short: Path, tmp_path: Path, run: Run, start: Run
) -> None:
    train = ("train", "--input", short, "--pretokenizer", "none", *SIZE)
    chain = (*ROUNDS, "--rounds-per-job", 8)
    process = start(*train, *chain, "--output", tmp_path / "rounds", *options)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert run(*train, "--output", tmp_path / "driver").code == 0
    assert digest(tmp_path / "rounds") == digest(tmp_path / "driver")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_killed_worker_ends_the_run_and_the_same_command_goes_on(
    short: Path, tmp_path: Path, run: Run, start: Run
) -> None:
    train = ("train", "--input", short, "--pretokenizer", "none", *SIZE)
    output = tmp_path / "out"
    slow = {"seconds_per_rename": 0.2}
    driver = start(*train, *ROUNDS, "--output", output, *PROCESSES, **slow)
    deadline = time.monotonic() + 120
    victims: list[int] = []
    while time.monotonic() < deadline and not victims:
        time.sleep(0.02)
        if (output / "rounds" / "r000-count.json").exists():
            victims = worker_processes(driver.pid)
    assert victims, "the run ended before a worker was seen"
    os.kill(victims[0], signal.SIGKILL)
    try:
        # Without the watch over workers it would wait for ever.
        _, err = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert driver.returncode == 1, err
    assert "a worker process died" in err
    assert f"run again: beam-bpe train --input {short}" in err
    assert "Traceback" not in err
    again = run(*train, *ROUNDS, "--output", output)
    assert again.code == 0, again.err
    assert "resuming" in again.err
    assert run(*train, "--output", tmp_path / "driver").code == 0
    assert digest(output) == digest(tmp_path / "driver")
