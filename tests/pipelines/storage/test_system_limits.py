"""A small `ulimit -v` or `-n` is named as what it is, never as a fault of the input or of ours."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bpe.errors import BadFileError, LimitError, OutputError
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.runners.worker_errors import describe_fault, own_error, reported_errors
from pipelines.storage import system_limits
from pipelines.storage.system_limits import describe_limit

ROOT = Path(__file__).resolve().parents[3]
GIB = 1 << 30


def caused(cause: Exception) -> Exception:
    error = OutputError("out/shard.arrow: cannot be written")
    error.__cause__ = cause
    return error


MEMORY = [
    MemoryError(),
    MemoryError("std::bad_alloc"),
    pa.lib.ArrowMemoryError("malloc of size 64 failed"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    ImportError("x.so: failed to map segment from shared object"),
    RuntimeError("RuntimeError: std::bad_alloc"),
    # What a module of others made of it while it was imported.
    SystemError("error return without exception set"),
    SystemError("<class 'X'> returned NULL without setting an exception"),
    caused(MemoryError()),
]
FILES = [
    OSError(errno.EMFILE, "Too many open files", "a.txt"),
    OSError(errno.ENFILE, "Too many open files in system"),
    caused(OSError(errno.EMFILE, "Too many open files")),
    RuntimeError("[Errno 24] Too many open files: 'x'"),
]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Soft limits as this process sees them; none but what a test puts in."""
    found: dict[int, int] = {}

    def getrlimit(limit: int) -> tuple[int, int]:
        return found.get(limit, resource.RLIM_INFINITY), resource.RLIM_INFINITY

    monkeypatch.setattr(system_limits.resource, "getrlimit", getrlimit)
    return found


@pytest.mark.parametrize("error", MEMORY, ids=repr)
def test_memory_under_a_limit_names_it(error: Exception, limits: dict[int, int]) -> None:
    assert describe_limit(error) is None
    limits[resource.RLIMIT_AS] = GIB
    said = describe_limit(error)
    assert said is not None
    assert "out of memory: address space is limited to 1,048,576 KiB (-v); raise" in said
    assert "--direct_num_workers=1" in said
    assert "fault" not in describe_fault(error)


@pytest.mark.parametrize("error", FILES, ids=repr)
def test_open_files_name_the_limit(error: Exception, limits: dict[int, int]) -> None:
    limits[resource.RLIMIT_NOFILE] = 64
    said = describe_limit(error)
    assert said is not None
    assert "too many open files: they are limited to 64 (-n); raise" in said


def test_a_thread_that_cannot_start_names_the_limits(limits: dict[int, int]) -> None:
    limits[resource.RLIMIT_NPROC] = 20
    said = describe_limit(RuntimeError("can't start new thread"))
    assert said is not None
    assert "a thread cannot be started: processes and threads is limited to 20 (-u)" in said


def test_other_errors_are_what_they_are(limits: dict[int, int]) -> None:
    limits[resource.RLIMIT_AS] = GIB
    for error in (ValueError("x"), OSError(errno.ENOSPC, "No space left on device")):
        assert describe_limit(error) is None


def test_a_worker_reports_the_limit(limits: dict[int, int]) -> None:
    limits[resource.RLIMIT_NOFILE] = 64
    with pytest.raises(RuntimeError) as raised, reported_errors():
        raise FILES[0]
    found = own_error(raised.value)
    assert isinstance(found, LimitError)
    assert "limited to 64 (-n)" in str(found)


def test_a_limit_makes_no_file_a_bad_one(limits: dict[int, int]) -> None:
    """Else the documents of an output would depend on the machine."""
    limits[resource.RLIMIT_NOFILE] = 64
    file = InputFile(0, "/in/a.txt", 9, "x", "text", "none", "a.txt")
    part = FileRange(file, 0, 9)
    rejects = Rejects(Unit(0, (part,)), ReadOptions(on_bad_file="skip"))
    error = BadFileError("a.txt: cannot be read")
    error.__cause__ = FILES[0]
    with pytest.raises(LimitError, match="too many open files"):
        rejects.bad_file(part, error)
    assert not rejects.counts


@pytest.mark.parametrize(
    ("limit", "value", "named"),
    [(resource.RLIMIT_NOFILE, 12, "(-n)"), (resource.RLIMIT_AS, 700 << 20, "(-v)")],
)
def test_a_job_under_a_limit_says_which(
    limit: int,
    value: int,
    named: str,
    model_dir: Path,
    small: Path,
    tmp_path: Path,
) -> None:
    def lower() -> None:
        resource.setrlimit(limit, (value, value))

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pipelines", "encode", "--input", str(small)),
            *("--tokenizer", str(model_dir), "--output", str(tmp_path / "out")),
        ],
        preexec_fn=lower,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert named in done.stderr
    assert "fault of beam-bpe" not in done.stderr
