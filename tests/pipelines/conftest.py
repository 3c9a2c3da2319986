"""Fixtures of the pipeline tests: the command run in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bpe.tokenizer import Tokenizer
from pipelines import cli

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command printed and returned."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `beam-bpe ARGUMENTS` in this process."""

    def run_here(*arguments: object) -> Outcome:
        capfd.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run_here


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Starts `beam-bpe ARGUMENTS` as a process of its own."""

    def start_process(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_process


@pytest.fixture(scope="session")
def tiny(data_dir: Path) -> Path:
    """A small English text, 1,115,394 bytes."""
    return data_dir / "tiny_shakespeare.txt"


@pytest.fixture
def small(tiny: Path, tmp_path: Path) -> Path:
    """The first 40,000 bytes of it, in a file that the test may change."""
    path = tmp_path / "small.txt"
    path.write_bytes(tiny.read_bytes()[:40_000])
    return path


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tokenizer with one special token, as a model directory."""
    merges = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he"), (b"a", b"n"), (b"an", b"d")]
    tokenizer = Tokenizer.from_merges(merges, pretokenizer="gpt2", special_tokens=["<|endoftext|>"])
    directory = tmp_path_factory.mktemp("tokenizer") / "model"
    tokenizer.save(directory)
    return directory


@pytest.fixture
def tree_bytes() -> Callable[[Path], dict[str, bytes]]:
    """Reads all files below a folder: relative name to content."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return read
