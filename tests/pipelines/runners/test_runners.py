"""The same jobs on every runner that can be had here, and what happens when a worker dies."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from bpe.errors import BadRecordError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.runners.dask_cluster import LocalDask
from pipelines.runners.runner_setup import PRISM_VARIABLE, make_pipeline_options, runner_name
from pipelines.runners.worker_errors import WorkerError, own_error, reported_errors
from tests.pipelines.worker_processes import is_running, worker_processes

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]


def prism_options() -> list[str]:
    binary = os.environ.get(PRISM_VARIABLE) or shutil.which("prism")
    if not binary:
        pytest.skip(
            f"no Prism binary: set {PRISM_VARIABLE}, or "
            "go install github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
        )
    return ["--runner=PrismRunner"]


def dask_options() -> list[str]:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("the package distributed is not installed")
    return ["--runner=DaskRunner"]


ROOT = Path(__file__).resolve().parents[3]


RUNNERS = {
    "processes": lambda: ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    "prism": prism_options,
    "dask": dask_options,
}


LAYOUTS: dict[str, list[Any]] = {
    "tokens": [],
    "packed": [
        *("--input-format", "lines", "--shuffle", "global", "--shard-bytes", 20_000),
        *("--pack", 128, "--pad-id", 0, "--split", "train=0.9,validation=0.1"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNNERS)
def test_training_and_encoding_give_the_same_files_on_every_runner(
    runner: str,
    tiny: Path,
    data_dir: Path,
    tmp_path: Path,
    run: Run,
    start: Run,
    tree_bytes: Tree,
) -> None:
    options = RUNNERS[runner]()
    train = ("train", "--input", tiny, "--range-bytes", 300_000, "--vocab-size", 1024)
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(*train, "--output", here / "model").code == 0
    process = start(*train, "--output", there / "model", *options)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "warning" not in err.lower()
    listed = json.loads((data_dir / "merges" / "hf_tiny_1024.json").read_bytes())["merges"]
    expected = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in listed]
    assert Tokenizer.load(there / "model").merges == expected
    source = tmp_path / "part.txt"
    source.write_bytes(tiny.read_bytes()[:100_000])
    encode = ("encode", "--input", source, "--range-bytes", 25_000, "--tokenizer", here / "model")
    # One runner for all layouts, and for the others the layout that has the most steps.
    layouts = LAYOUTS if runner == "processes" else {"packed": LAYOUTS["packed"]}
    for name, layout in layouts.items():
        assert run(*encode, "--output", here / name, *layout).code == 0
        process = start(*encode, "--output", there / name, *layout, *options)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert tree_bytes(there) == tree_bytes(here)


@pytest.mark.slow
@pytest.mark.parametrize(
    "runner",
    ["processes", *(pytest.param(name, marks=pytest.mark.slow) for name in ("prism", "dask"))],
)
def test_an_error_on_a_worker_is_one_message_on_every_runner(
    runner: str, model_dir: Path, tmp_path: Path, start: Run
) -> None:
    options = RUNNERS[runner]()
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "a"}\nnonsense\n')
    output = tmp_path / "out"
    process = start(
        "encode", "--input", source, "--tokenizer", model_dir, "--output", output, *options
    )
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"error: {source}: row 2" in err
    assert "Traceback" not in err
    assert "<<beam-bpe" not in err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_killed_worker_ends_the_run_and_the_same_command_goes_on(
    tiny: Path, model_dir: Path, tmp_path: Path, run: Run, start: Run, tree_bytes: Tree
) -> None:
    command = ("encode", "--input", tiny, "--tokenizer", model_dir, "--range-bytes", "40kB")
    output = tmp_path / "out"
    processes = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    driver = start(*command, "--output", output, *processes, seconds_per_rename=0.2)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(output.glob("__beam-bpe__/sidecars/*.json")):
        time.sleep(0.05)
    victims = worker_processes(driver.pid)
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    try:
        # Without the watch over workers it would wait for ever.
        _, err = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert driver.returncode == 1
    assert "a worker process died" in err
    assert f"run again: beam-bpe encode --input {tiny}" in err
    assert "Traceback" not in err
    again = run(*command, "--output", output)
    assert again.code == 0, again.err
    assert "resuming: kept" in again.err
    assert run(*command, "--output", tmp_path / "whole").code == 0
    assert tree_bytes(output) == tree_bytes(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals a process group")
def test_an_interrupt_of_workers_and_driver_is_one_message(
    tiny: Path, model_dir: Path, tmp_path: Path, start: Run
) -> None:
    """As Ctrl-C at a terminal: every process of the group gets the signal."""
    command = ["encode", "--input", tiny, "--tokenizer", model_dir, "--range-bytes", "20kB"]
    command += ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    output = tmp_path / "out"
    driver = start(*command, "--output", output, seconds_per_rename=0.2, new_session=True)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not list(output.glob("__beam-bpe__/sidecars/*.json")):
            time.sleep(0.05)
        workers = worker_processes(driver.pid)
        os.killpg(driver.pid, signal.SIGINT)
        _, err = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert driver.returncode == 130, err
    assert "Traceback" not in err
    assert "same command again" in err
    assert len(workers) == 2
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(map(is_running, workers)):
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def direct(options: PipelineOptions) -> tuple[str, int]:
    view = options.view_as(DirectOptions)
    return view.direct_running_mode, view.direct_num_workers


def test_the_default_is_threads_in_this_process() -> None:
    options = make_pipeline_options([])
    assert runner_name(options) == "FnApiRunner"
    assert direct(options) == ("multi_threading", os.cpu_count())


def test_what_the_user_says_stands() -> None:
    options = make_pipeline_options(["--direct_num_workers=7", "--job_name=mine"])
    assert direct(options) == ("multi_threading", 7)
    assert options.get_all_options()["job_name"] == "mine"


def test_direct_runner_is_taken_for_this_process_and_explained() -> None:
    notes: list[str] = []
    options = make_pipeline_options(["--runner=DirectRunner"], notes.append)
    assert runner_name(options) == "FnApiRunner"
    assert "DirectRunner" in notes[0]


def test_short_names_become_what_beam_can_import(monkeypatch: pytest.MonkeyPatch) -> None:
    dask_options()
    options = make_pipeline_options(["--runner", "DaskRunner"])
    assert str(options.view_as(StandardOptions).runner).startswith("apache_beam.runners.dask.")
    assert options.get_all_options()["npartitions"]
    monkeypatch.setenv(PRISM_VARIABLE, "/somewhere/prism")
    options = make_pipeline_options(["--runner=PrismRunner"])
    assert options.get_all_options()["prism_location"] == "/somewhere/prism"


def test_all_dask_jobs_of_a_command_share_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    dask_options()
    events: list[str] = []

    class Cluster:
        scheduler_address = "tcp://here:1"

        def __init__(
            self,
            *,
            dashboard_address: str | None,
            scheduler_kwargs: dict[str, str],
            preload: list[str],
        ) -> None:
            assert dashboard_address is None
            assert scheduler_kwargs == {"dashboard_address": ":0"}
            assert preload == ["pipelines.runners.dask_worker"]
            events.append("start")

        def close(self) -> None:
            events.append("close")

    monkeypatch.setattr("distributed.LocalCluster", Cluster)
    others = make_pipeline_options(["--runner=DaskRunner", "--dask_client_address=there:2"])
    with closing(LocalDask()) as dask:
        dask.join(others)
        assert not events
        for _ in range(3):
            options = make_pipeline_options(["--runner=DaskRunner"])
            dask.join(options)
            assert options.get_all_options()["address"] == "tcp://here:1"
    assert others.get_all_options()["address"] == "there:2"
    assert events == ["start", "close"]


def test_the_library_leaves_the_process_as_it_is() -> None:
    """Importing it, and an error that a worker reports, change neither loggers nor streams."""
    code = (
        "import logging, sys\n"
        "root, hooks, streams = logging.getLogger(), [*sys.meta_path], (sys.stdout, sys.stderr)\n"
        "import pipelines\nfrom pipelines.runners.worker_errors import reported_errors\n"
        "assert not root.filters and not root.handlers\n"
        "pipelines.CountWords, pipelines.EncodeToBatches, pipelines.TrainBpe\n"
        "try:\n    with reported_errors():\n        raise KeyError\n"
        "except RuntimeError:\n    pass\n"
        "assert not root.filters and not any(each.filters for each in root.handlers)\n"
        "assert set(hooks) <= set(sys.meta_path) and (sys.stdout, sys.stderr) == streams\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--runner=BundleBasedDirectRunner", "leave --runner out"),
        ("--direct_num_worker=2", "did you mean --direct_num_workers"),
    ],
)
def test_what_cannot_work_is_refused(argument: str, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        make_pipeline_options([argument])


def test_a_missing_prism_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRISM_VARIABLE, raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SettingsError, match=r"go install github\.com/.*/prism@v\d+\.\d+\.\d+ "):
        make_pipeline_options(["--runner=PrismRunner"])
    given = make_pipeline_options(["--runner=PrismRunner", "--prism_location=/a/prism"])
    assert given.get_all_options()["prism_location"] == "/a/prism"


def test_a_runner_that_cannot_be_had_or_started_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (tmp_path / "a.txt").write_text("some text")
    command = ("train", "--input", tmp_path / "a.txt", "--vocab-size", 258)

    def check(runner: str, expected: str, *options: str) -> None:
        refused = run(*command, "--output", tmp_path / runner, f"--runner={runner}", *options)
        assert refused.code == 1
        assert f"error: --runner={runner}: " in refused.err
        assert expected in refused.err
        assert "Traceback" not in refused.err

    def fail(*_: object) -> None:
        raise OSError("Timed out during handshake\nafter 30 s")

    check("FooRunner", "FooRunner")
    monkeypatch.setattr("apache_beam.Pipeline.run", fail)
    check("PortableRunner", "Timed out during handshake after 30 s", "--job_endpoint=localhost:1")


def test_portable_runners_may_take_options_that_beam_does_not_list() -> None:
    options = make_pipeline_options(["--runner=PortableRunner", "--checkpointing_interval=5"])
    assert runner_name(options) == "PortableRunner"


def test_an_error_crosses_a_runner_as_text() -> None:
    """Runners wrap, escape and pad what a worker raised; class and message come back."""
    message = 'b\u00f6ses \u4e2d file.jsonl: row 3:\n"quoted" \\ <<x>> \U0001f600'
    with pytest.raises(WorkerError) as raised, reported_errors():
        raise BadRecordError(message)
    wrapped = RuntimeError(json.dumps(f"Traceback … {raised.value} [while running 'X']"))
    found = own_error(wrapped)
    assert type(found) is BadRecordError
    assert str(found) == message
    chained = RuntimeError("outside")
    chained.__cause__ = raised.value
    assert isinstance(own_error(chained), BadRecordError)


def test_errors_of_others_are_not_taken_for_ours() -> None:
    assert own_error(RuntimeError("something else")) is None


def test_a_failing_disk_is_reported_too() -> None:
    with pytest.raises(WorkerError) as raised, reported_errors():
        raise OSError(28, "No space left on device")
    assert "No space left on device" in str(own_error(raised.value))
