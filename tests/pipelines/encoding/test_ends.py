"""How a command ends: its exit code, and standard streams that nobody reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import argument_types, command_line
from pipelines.cli.arguments import _COMMANDS
from pipelines.runners.exit_codes import EXIT_CODES, EXIT_CODES_NOTE

Run = Callable[..., Any]
# The fixtures set it to 1 later.
REAL_LEAST = argument_types.LEAST_CUT_SIZE
ROOT = Path(__file__).resolve().parents[3]


def shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which "$@" is a command of ours."""
    words = [sys.executable, "-m", "pipelines", *map(str, arguments)]
    return subprocess.run(
        ["bash", "-c", line, "bash", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "line",
    ['"$@" | head -c0', '"$@" >&-', '"$@" >&- 2>&-', '"$@" 2>&1 | :'],
)
def test_a_job_whose_summary_nobody_reads_is_done(
    line: str, model_dir: Path, small: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("encode", "--input", small, "--tokenizer", model_dir, "--output", output)
    done = shell(f"{line}; exit ${{PIPESTATUS[0]}}", *command)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert run("verify", output).code == 0


def test_a_command_that_prints_ends_quietly_with_its_reader(model_dir: Path) -> None:
    line = '"$@" | :; exit ${PIPESTATUS[0]}'
    done = shell(line, "inspect", model_dir, "--text", "the " * 5_000)
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_command_that_prints_needs_somewhere_to_print(model_dir: Path) -> None:
    done = shell('"$@" >&-', "inspect", model_dir, "--text", "the")
    assert done.returncode == 1
    assert "error: [Errno 9] Bad file descriptor: 'standard output'" in done.stderr


def test_a_summary_that_does_not_fit_the_disk_is_an_error(model_dir: Path) -> None:
    done = shell('"$@" > /dev/full', "inspect", model_dir, "--text", "the")
    assert done.returncode == 1
    assert done.stderr == "error: [Errno 28] No space left on device: 'standard output'\n"


def end_by(error: BaseException | None, monkeypatch: pytest.MonkeyPatch) -> int:
    def run_nothing(_: object) -> int:
        if error is not None:
            raise error
        return 0

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(command_line, "run", run_nothing)
    monkeypatch.setattr(command_line.os, "_exit", leave)
    try:
        return command_line.main([])
    except SystemExit as end:
        return int(str(end.code))


def test_a_broken_pipe_inside_a_job_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a connection to a worker, say: only standard output may be closed."""
    assert end_by(BrokenPipeError(32, "Broken pipe"), monkeypatch) == 1


def test_each_exit_code_is_produced_and_shown(
    monkeypatch: pytest.MonkeyPatch, run: Run, model_dir: Path, tmp_path: Path
) -> None:
    found = {
        run("inspect", model_dir).code,
        run("inspect", tmp_path / "nothing").code,
        run("inspect").code,
        end_by(KeyboardInterrupt(), monkeypatch),
    }
    assert found == set(EXIT_CODES) == {0, 1, 2, 130}
    monkeypatch.undo()
    for command in ([], *([name] for name in _COMMANDS)):
        assert EXIT_CODES_NOTE in re.sub(r"\s+", " ", run(*command, "--help").out)


@pytest.mark.parametrize("option", ["--range-bytes", "--shard-bytes"])
@pytest.mark.parametrize(("value", "is_taken"), [("1", False), ("1023", False), ("1KiB", True)])
def test_ranges_and_shards_of_no_size_are_refused(
    option: str,
    value: str,
    is_taken: bool,  # noqa: FBT001 - a parameter of the test
    model_dir: Path,
    small: Path,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(argument_types, "LEAST_CUT_SIZE", REAL_LEAST)
    command = ("encode", "--input", small, "--tokenizer", model_dir, "--output", tmp_path / "out")
    done = run(*command, "--max-row-tokens", 2000, option, value)
    if is_taken:
        assert done.code == 0, done.err
    else:
        assert done.code == 2
        assert f"{option}: '{value}' is too small; give at least 1024 bytes" in done.err
        assert not (tmp_path / "out").exists()
