"""Errors that nobody foresaw end in one line too; the traceback is there for who asks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import BpeError
from pipelines.cli import command_line
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.encoding.encode_long_documents import PieceEncoder
from pipelines.runners import runner_setup
from pipelines.runners.worker_errors import TRACEBACK_VARIABLE, own_error, reported_errors

Run = Callable[..., Any]


@pytest.fixture
def command(model_dir: Path, tmp_path: Path) -> list[Any]:
    (tmp_path / "a.txt").write_text("the hand")
    output = tmp_path / "out"
    return ["encode", "--input", tmp_path / "a.txt", "--tokenizer", model_dir, "--output", output]


def break_down(*_: object, **__: object) -> None:
    raise KeyError("a fault")


@pytest.mark.parametrize(
    ("module", "name"), [(PieceEncoder, "encode"), (runner_setup, "own_error")]
)
def test_a_fault_of_the_program_is_one_line_that_says_so(
    module: Any,
    name: str,
    command: list[Any],
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "own_error":
        monkeypatch.setattr(PieceEncoder, "encode", break_down)
    monkeypatch.setattr(module, name, break_down)
    done = run(*command, "--direct_num_workers=1")
    assert done.code == 1
    lines = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert "KeyError" in lines[0]
    assert "fault of beam-bpe" in lines[0]
    assert TRACEBACK_VARIABLE in lines[0]
    assert "Traceback" not in done.err
    if module is PieceEncoder:
        assert "unit 0" in lines[0]
        assert str(tmp_path / "a.txt") in lines[0]


def test_the_traceback_is_shown_to_who_asks(
    command: list[Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PieceEncoder, "encode", break_down)
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    done = run(*command, "--direct_num_workers=1")
    assert done.code == 1
    assert "in break_down" in done.err


def test_a_fault_names_the_unit_in_hand(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    read = ReadOptions()
    unit = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read).units[0]

    def fail() -> None:
        with reported_errors() as work:
            work.name = unit.describe()
            raise ZeroDivisionError(unit.index)

    with pytest.raises(Exception, match="<<beam-bpe") as raised:
        fail()
    found = str(own_error(raised.value))
    assert found.startswith(f"unit 0 ({tmp_path / 'a.txt'}): ZeroDivisionError: 0")


def test_memory_that_ran_out_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exception, match="<<beam-bpe") as raised, reported_errors():
        raise MemoryError
    assert "out of memory" in str(own_error(raised.value))
    assert "fault" not in str(own_error(raised.value))
    assert not capsys.readouterr().err


def test_an_error_of_the_system_on_the_driver_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise PermissionError(13, "Permission denied", "/a/file")

    monkeypatch.setattr(command_line, "run", fail)
    assert command_line.main([]) == 1
    assert capsys.readouterr().err == "error: [Errno 13] Permission denied: '/a/file'\n"


DRIVER = """
import os, subprocess, sys
line = sys.argv[1].replace("424242", str(os.getpid()))
child = subprocess.Popen(["sh", "-c", line])
print(child.pid, flush=True)
sys.stdin.read()
"""


def ends(pid: int, seconds: float) -> bool:
    """Whether a process that is no child of ours ends in time (a zombie has)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("way", ["by the system", "by looking"])
def test_a_worker_ends_with_a_driver_that_dies_before_it_is_connected(way: str) -> None:
    root = Path(__file__).resolve().parents[3]
    code = (
        "from pipelines.runners import parent_watchdog as d; import time; "
        + ("d._ask_kernel = lambda: None; " if way == "by looking" else "")
        + ("d._watch = lambda *_: None; " if way == "by the system" else "")
        + "d.end_with_driver(); time.sleep(60)"
    )
    line = runner_setup.worker_command(f'{sys.executable} -c "{code}"', 424242)
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        text=True,
    ) as driver:
        assert driver.stdout is not None
        worker = int(driver.stdout.readline())
        assert not ends(worker, 1.5)
        driver.kill()
    assert ends(worker, 60)


@pytest.mark.parametrize(
    "said",
    [
        "prism worker[job-003[job]_ref_1] didn't get control connection to localhost:1 after 1m0s",
        "SDK worker disconnected: worker[job-003[job]_ref_1], 2 active instructions, error: EOF",
    ],
)
def test_a_runner_that_lost_a_worker_says_how_to_go_on(said: str) -> None:
    def build(_: object) -> None:
        raise RuntimeError(f"Pipeline job-003 failed in state FAILED: {said}")

    with pytest.raises(BpeError, match="the same command again goes on where this one stopped"):
        runner_setup.run_pipeline(runner_setup.make_pipeline_options([]), build)
