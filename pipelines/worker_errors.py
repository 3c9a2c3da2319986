"""Carry this project's own errors from a worker to the driver in one piece.

A runner hands an exception of a worker over as text: several kilobytes of traceback, escaped
differently by each runner. So a worker raises its error with a marker that holds the class name and
the message in base64, which no escaping touches; the driver finds the marker, raises the error
again, and keeps the log records that repeat the traceback off the terminal.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from bpe import errors
from bpe.errors import BpeError

__all__ = ["WorkerError", "hide_reported_errors", "own_error", "reported_errors"]

_MARKER = re.compile(r"<<beam-bpe:(\w+):([A-Za-z0-9+/=]*)>>")
# Prism and Flink carry a message in a gRPC status, whose headers end at 8 KiB.
_LONGEST_MESSAGE = 3000


class WorkerError(RuntimeError):
    """What a worker raises in place of an error of ours: its text ends with the marker."""


@contextmanager
def reported_errors() -> Iterator[None]:
    """Inside a worker: turn `BpeError` and `OSError` into a `WorkerError` that crosses any runner.

    Raises:
        WorkerError: in place of the error, which is not chained (its traceback would only make the
            text longer; the message says where in the input or output it happened).
    """
    try:
        yield
    except (BpeError, OSError) as error:
        text = str(error)[:_LONGEST_MESSAGE]
        packed = base64.b64encode(text.encode("utf-8", "backslashreplace")).decode("ascii")
        message = f"{text} <<beam-bpe:{type(error).__name__}:{packed}>>"
        raise WorkerError(message) from None


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


# Beam says this whenever it is imported without its Google Cloud extra.
_IDLE_WARNING = "apitools not found"


class _ReportedErrorFilter(logging.Filter):
    """Drops records that repeat an error which the driver is going to print by itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += str(record.exc_info[1])
        return _MARKER.search(text) is None and not text.startswith(_IDLE_WARNING)


def hide_reported_errors(handler: logging.Handler) -> None:
    """Keep worker tracebacks that carry our marker out of what `handler` prints."""
    handler.addFilter(_ReportedErrorFilter())
