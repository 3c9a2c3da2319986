"""Standard input, and standard output and error that may be closed.

The result of a job lies in files, so a job goes on without its reader.

beam-bpe encode … | head -0     the reader has gone
beam-bpe encode … >&- 2>&-      there was none
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pipelines.storage.escape_control import one_line

__all__ = ["ReaderGoneError", "note", "standard_input", "standard_streams"]

_BLOCK_BYTES = 1 << 20


class ReaderGoneError(Exception):
    """Nobody reads standard output any more, and the command has nothing else to do."""


def note(sentence: str) -> None:
    """Tell the user something that is not the result, on stderr."""
    sys.stderr.write(f"{one_line(sentence)}\n")


def standard_input() -> Iterator[bytes]:
    """Yield standard input in blocks, as it arrives: of a pipe, what is there.

    Raises:
        OSError: it is closed, or cannot be read.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
    stream: Any = sys.stdin.buffer
    try:
        while block := stream.read1(_BLOCK_BYTES):
            yield block
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, "standard input") from error


@contextmanager
def standard_streams(*, product: bool) -> Iterator[None]:
    """While the block runs, let closed streams swallow what is written to them.

    Args:
        product: the command works for what it prints alone: end it by `ReaderGoneError` when
            nobody reads on.

    Raises:
        ReaderGoneError: see `product`.
        OSError: standard output cannot be written for another reason, such as a full disk; or it
            is closed from the beginning, with `product`.
    """
    is_closed = sys.stdout is None
    _fill_closed_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout = _Stream(sys.stdout or _nowhere(), "standard output", ends=product)
    sys.stderr = _Stream(sys.stderr or _nowhere(), "standard error", ends=False)
    try:
        if is_closed and product:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
        yield
        sys.stdout.flush()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ReaderGoneError):
                stream.flush()
        sys.stdout, sys.stderr = before


def _fill_closed_descriptors() -> None:
    """Keep files that are opened later from becoming standard output or error."""
    for wanted in range(3):
        try:
            os.fstat(wanted)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != wanted:
                os.dup2(opened, wanted)
                os.close(opened)
            os.set_inheritable(wanted, True)


def _nowhere() -> Any:
    return open(os.devnull, "w", encoding="utf-8")


class _Stream:
    """A text stream that goes on without its reader."""

    def __init__(self, stream: Any, name: str, *, ends: bool) -> None:
        self._stream = stream
        self._name = name
        self._ends = ends

    def write(self, text: str) -> int:
        """Write, or drop the text if nobody reads it."""
        try:
            return int(self._stream.write(text))
        except OSError as error:
            self._give_up(error)
            return len(text)

    def write_bytes(self, data: Any) -> int:
        """Write bytes as they are, or drop them if nobody reads them."""
        try:
            # Text that was written before waits in a buffer of its own.
            self._stream.flush()
            return int(self._stream.buffer.write(data))
        except OSError as error:
            self._give_up(error)
            return len(data)

    @property
    def buffer(self) -> _Bytes:
        """The stream of bytes below, with the same guard."""
        return _Bytes(self)

    def flush(self) -> None:
        """Flush, or drop what was held back if nobody reads it."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        # What the stream still holds goes there too, at the latest when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, self._name) from error
        if self._ends:
            raise ReaderGoneError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Bytes:
    """The bytes of a `_Stream`, for `sys.stdout.buffer`."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self.flush = stream.flush

    def write(self, data: Any) -> int:
        """Write bytes, or drop them if nobody reads them."""
        return self._stream.write_bytes(data)
