"""Opens files that Arrow reads out of order: Parquet, and Arrow IPC."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bpe.errors import BadFileError, BpeError
from pipelines.corpus.compression.byte_streams import UnstableFileError, check_unchanged
from pipelines.corpus.listing.inputs import InputFile, is_local

__all__ = ["DamagedPartError", "damage", "open_table_file"]

_REMEDY = "make or copy the file again"


class DamagedPartError(BadFileError):
    """A part of a file is damaged that stands by itself, and that one range reads.

    The type stays inside the process; a worker hands on a `BadFileError`.
    """


@contextmanager
def open_table_file(file: InputFile, *, mapped: bool = False) -> Iterator[Any]:
    """Open an input file for Arrow, checking that it is still the one of the plan.

    Args:
        file: from the plan.
        mapped: map a local file into memory instead of reading from it. What is mapped is never
            copied, but a file that is cut short meanwhile ends the process.

    Yields:
        A `pyarrow.NativeFile` that can seek.

    Raises:
        UnstableFileError: the file vanished, changed, or cannot be opened.
    """
    check_unchanged(file)
    try:
        if is_local(file.path):
            # Arrow cannot map nothing at all.
            native = pa.memory_map(file.path) if mapped and file.size else pa.OSFile(file.path)
        else:
            stored = FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED)
            native = pa.PythonFile(_WholeReads(file, stored), mode="r")
    except (OSError, ValueError) as error:
        raise UnstableFileError(f"{file.path}: cannot be opened: {error}; {_REMEDY}") from error
    with native:
        yield native


@contextmanager
def damage(file: InputFile, what: str, *, everywhere: bool = False) -> Iterator[None]:
    """Take Arrow's errors for damage of the file.

    Args:
        file: that is being read.
        what: is being read, for the message.
        everywhere: whether every reader of the file meets the damage.

    Raises:
        BadFileError: instead of Arrow's error; a `DamagedPartError` unless `everywhere`.
        UnstableFileError: storage failed, which says nothing about the file.
    """
    try:
        yield
    except BpeError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        # Arrow may add its own call stack in further lines.
        reason = (str(error) or type(error).__name__).partition("\n")[0].rstrip(". ")
        # Arrow raises an OSError for damage as well, but then without a number.
        if isinstance(error, OSError) and error.errno is not None:
            kind: type[BadFileError] = UnstableFileError
        else:
            kind = BadFileError if everywhere else DamagedPartError
        raise kind(f"{file.path}: {what} cannot be read: {reason}; {_REMEDY}") from error


class _WholeReads(io.RawIOBase):
    """A file of another file system, which may give fewer bytes than asked for, as Arrow needs it.

    Args:
        file: from the plan, which knows the size.
        stored: the open file.
    """

    def __init__(self, file: InputFile, stored: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._stored = stored
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}
        self._position = origin[whence] + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        rest = max(0, self._file.size - self._position)
        missing = rest if size < 0 else min(size, rest)
        pieces = []
        while missing:
            piece = self._read_some(missing)
            pieces.append(piece)
            missing -= len(piece)
            self._position += len(piece)
        return b"".join(pieces)

    def _read_some(self, size: int) -> bytes:
        """At least one of the next bytes, which are there according to the plan."""
        try:
            self._stored.seek(self._position)
            piece = self._stored.read(size)
        except OSError as error:
            raise UnstableFileError(
                f"{self._file.path}: cannot be read: {error}; {_REMEDY}"
            ) from error
        if not piece:
            raise UnstableFileError(
                f"{self._file.path}: ends at byte {self._position}, but had {self._file.size} "
                f"bytes when the plan was made; run the command again when nothing writes to it"
            )
        return piece

    def close(self) -> None:
        if not self.closed:
            self._stored.close()
        super().close()
