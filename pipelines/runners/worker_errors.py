"""Carry this project's own errors from a worker to the driver in one piece.

A runner hands an exception of a worker over as text: several kilobytes of traceback, escaped
differently by each runner. So a worker raises its error with a marker that holds the class name and
the message in base64, which no escaping touches; the driver finds the marker, raises the error
again, and keeps the log records that repeat the traceback off the terminal.
"""

from __future__ import annotations

import base64
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bpe import errors
from bpe.errors import BpeError, LimitError
from pipelines.storage.system_limits import describe_limit

__all__ = [
    "TRACEBACK_VARIABLE",
    "WorkInHand",
    "WorkerError",
    "describe_fault",
    "hide_reported_errors",
    "own_error",
    "reported_errors",
    "set_up_worker_logging",
    "show_traceback",
]

_MARKER = re.compile(r"<<beam-bpe:(\w+):([A-Za-z0-9+/=]*)>>")
# Prism and Flink carry a message in a gRPC status, whose headers end at 8 KiB.
_LONGEST_MESSAGE = 3000
_LONGEST_FAULT = 500

TRACEBACK_VARIABLE = "BEAM_BPE_TRACEBACK"
"""Environment variable that asks for the tracebacks of faults."""


class WorkerError(RuntimeError):
    """What a worker raises in place of an error of ours: its text ends with the marker."""


@dataclass
class WorkInHand:
    """What a worker does: `name` is for the message of a fault, such as `unit 0 (a.txt)`."""

    name: str = ""


@contextmanager
def reported_errors() -> Iterator[WorkInHand]:
    """Inside a worker: turn every error into a `WorkerError` that crosses any runner.

    The message of an error of ours, or of the system, says where it happened. Any other error is a
    fault of this program: its message begins with the name that the caller gave to its work, and
    `BEAM_BPE_TRACEBACK=1` prints the traceback.

        with reported_errors() as work:
            unit = Unit.from_json(element)
            work.name = unit.describe()

    Raises:
        WorkerError: in place of the error, which is not chained (its traceback would only make the
            text longer).
    """
    work = WorkInHand()
    try:
        yield work
    except (BpeError, OSError) as error:
        limit = describe_limit(error)
        if limit is not None:
            raise _packed(LimitError.__name__, limit) from None
        raise _packed(type(error).__name__, str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the user sees one line
        show_traceback(error)
        place = f"{work.name}: " if work.name else ""
        raise _packed(BpeError.__name__, place + describe_fault(error)) from None


def _packed(kind: str, message: str) -> WorkerError:
    text = message[:_LONGEST_MESSAGE]
    packed = base64.b64encode(text.encode("utf-8", "backslashreplace")).decode("ascii")
    return WorkerError(f"{text} <<beam-bpe:{kind}:{packed}>>")


def describe_fault(error: BaseException) -> str:
    """One line about an error that nobody foresaw."""
    limit = describe_limit(error)
    if limit is not None:
        return limit
    if isinstance(error, MemoryError):
        return (
            "out of memory; run fewer workers at a time (--direct_num_workers), or allow less with "
            "--max-row-bytes and --range-bytes"
        )
    # Runners end their texts with the line that matters.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1][:_LONGEST_FAULT] if lines else ""
    return (
        f"{type(error).__name__}: {said}: this is a fault of beam-bpe, or of what it runs on; "
        f"please report it with the traceback that {TRACEBACK_VARIABLE}=1 prints"
    )


def show_traceback(error: BaseException) -> None:
    """Print an error's traceback if the environment asks for it."""
    if os.environ.get(TRACEBACK_VARIABLE):
        sys.stderr.write("".join(traceback.format_exception(error)))


def own_error(error: BaseException) -> BpeError | None:
    """The error of ours that a worker reported inside `error`, or None.

    Follows the chain of causes, since runners wrap what they got; of several reports (each worker
    may fail) the first is returned.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, BpeError):
            return seen
        found = _MARKER.search(str(seen))
        if found:
            return _rebuild(found[1], found[2])
        seen = seen.__cause__ or seen.__context__
    return None


def _rebuild(name: str, packed: str) -> BpeError:
    message = base64.b64decode(packed).decode("utf-8")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, BpeError):
        return kind(message)
    # A file system's own error (a disk that fails while reading, say).
    return errors.OutputError(message) if name.endswith("OSError") else BpeError(message)


# What Beam and its runners log whenever all is well (without Beam's Google Cloud extra, on Prism,
# on Dask), and beside an error that is reported anyway.
_IDLE_RECORDS = (
    "apitools not found",
    "Really starting service",
    "Really destroying service",
    "The new default partition size",
    # Of a local Dask cluster that is closed, on a busy machine.
    "Worker process still alive after",
    "If direct_num_workers is not equal to 1",
    "No semi_persistent_directory found",
    "Prism received bundle error",
    "stage.Execute aborting due to bundle error",
    # What the other workers say when the driver has given up.
    "Failed to read inputs in the data plane",
    "Logging client failed",
    "StatusCode.UNAVAILABLE",
    # A worker thread that finishes its bundle after another one's error has ended the job.
    "self.active_bundle_processors.pop(instruction_id)",
)


def _is_noise(text: str) -> bool:
    return _MARKER.search(text) is not None or any(phrase in text for phrase in _IDLE_RECORDS)


class _ReportedErrorFilter(logging.Filter):
    """Drops records that repeat a reported error, and those that say nothing to a user."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += str(record.exc_info[1])
        return not _is_noise(text)


class _QuietStream:
    """A text stream that drops what repeats a reported error: Beam prints tracebacks to stderr."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._dropped = False

    def write(self, text: str) -> int:
        """Pass `text` on unless it holds a marker, or is the end of a line that was dropped."""
        repeats = _is_noise(text) or (self._dropped and text == "\n")
        self._dropped = repeats and text != "\n"
        return len(text) if repeats else int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def hide_reported_errors() -> None:
    """Keep this process from printing tracebacks of errors that are reported anyway.

    Whatever prints there: Beam's `print` to stderr, and the handlers of loggers. Twice is no error.
    """
    if not isinstance(sys.stderr, _QuietStream):
        sys.stderr = _QuietStream(sys.stderr)
    loggers = [logging.getLogger(), *map(logging.getLogger, ("distributed", "apache_beam"))]
    for handler in {each for logger in loggers for each in logger.handlers}:
        if not any(isinstance(each, _ReportedErrorFilter) for each in handler.filters):
            handler.addFilter(_ReportedErrorFilter())


def set_up_worker_logging() -> None:
    """Print warnings alone, in one line each, in a worker process that the command starts.

    Before Beam is imported, which says something then, and would set up logging by itself.
    """
    handler = logging.StreamHandler()
    # Beam lowers the root logger to INFO while it starts; the handler is ours.
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    hide_reported_errors()
