"""Show on the terminal how far a job has come, whatever local runner does the work.

Workers may be threads, processes or a cluster on this machine; what they share with the driver is
the file system. The driver makes a folder, each worker thread keeps one small file in it with the
number of bytes that it has read, and the driver adds them up a few times a second. A worker on
another machine does not find the folder and reports nothing: there, the runner's own page shows the
progress.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

__all__ = [
    "ProgressReporter",
    "Stopwatch",
    "format_bytes",
    "format_count",
    "show_merges",
    "show_progress",
]

_SECONDS_BETWEEN_LOOKS = 0.25


class ProgressReporter:
    """A worker's side: adds up bytes in a file of its own.

    Args:
        folder: the driver's folder, or "" to report nothing.
    """

    def __init__(self, folder: str) -> None:
        self._path = ""
        self._total = 0
        if folder and os.path.isdir(folder):
            self._path = os.path.join(folder, f"{os.getpid()}-{threading.get_ident()}")
            self._total = _read_number(self._path)

    def add(self, size: int) -> None:
        """Report that `size` more bytes of input were worked on."""
        if not self._path:
            return
        self._total += size
        # Progress is a courtesy: a full disk must not end a job here.
        with suppress(OSError):
            temporary = f"{self._path}.new"
            with open(temporary, "w", encoding="ascii") as file:
                file.write(str(self._total))
            os.replace(temporary, self._path)


def _read_number(path: str) -> int:
    with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
        return int(file.read())
    return 0


def _sum_of_reports(folder: str) -> int:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return 0
    return sum(_read_number(os.path.join(folder, n)) for n in names if not n.endswith(".new"))


@contextmanager
def show_progress(title: str, total_bytes: int) -> Iterator[str]:
    """The driver's side: a bar with bytes, rate and remaining time while the block runs.

    Args:
        title: a word or two before the bar.
        total_bytes: size of the input as it lies on storage. Compressed input grows when it is
            read, so there the bar can reach its end early.

    Yields:
        The folder to hand to workers; "" when stderr is no terminal (then nothing is shown).
    """
    if not sys.stderr.isatty():
        yield ""
        return
    folder = tempfile.mkdtemp(prefix="beam-bpe-progress-")
    try:
        with _ProgressThread(title, total_bytes, folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def show_merges(vocab_size: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for the merges of a training on the driver.

    Args:
        vocab_size: shown beside the bar.

    Yields:
        A callback (merges made, merges wanted) for the trainer; None when stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, as above
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"training {format_count(vocab_size)}", total=None)
        yield lambda made, wanted: bar.update(task, completed=made, total=wanted)


class _ProgressThread:
    """Redraws the bar from the reports in `folder` until the block ends."""

    def __init__(self, title: str, total_bytes: int, folder: str) -> None:
        # rich is slow to import and only a terminal needs it.
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(title, total=total_bytes or None)
        self._total = total_bytes
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._redraw, name="progress", daemon=True)

    def _redraw(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_LOOKS):
            done = _sum_of_reports(self._folder)
            self._progress.update(self._task, completed=min(done, self._total))

    def __enter__(self) -> None:
        self._progress.start()
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=2)
        self._progress.stop()


def format_bytes(size: float) -> str:
    """`size` bytes in decimal units, as the size options are written: 1115394 -> '1.12 MB'."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if abs(size) < 1000 or unit == "TB":
            break
        size /= 1000
    if unit == "bytes":
        return "1 byte" if round(size) == 1 else f"{size:.0f} bytes"
    return f"{size:.3g} {unit}"


def format_count(number: int) -> str:
    """A number with thousands separated: 1115394 -> '1,115,394'."""
    return f"{number:,}"


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the stopwatch was made."""
        return time.monotonic() - self._start
