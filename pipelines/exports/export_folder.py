"""The files of an export: written under temporary names, all given their own names at the end.

A reader of the folder sees an export whole or not at all, but for the moment of the renames; the
record `export.json`, written after them, says that it is whole.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from bpe.errors import OutputError
from pipelines.storage.output_files import (
    TEMPORARY,
    HashingFile,
    delete_temporary,
    is_local,
    join,
    publish,
    temporary_path,
)
from schemas.export_record import ExportedFile

__all__ = ["ExportFile", "ExportFolder"]

# So many ids are converted to another width at once.
_BLOCK_IDS = 1 << 20


class ExportFile:
    """A file of an export that is being written.

    Args:
        directory: the output folder.
        name: in that folder.

    Attributes:
        name: may be changed until the files are published, for names that tell how many there are.
    """

    def __init__(self, directory: str, name: str) -> None:
        self.name = name
        self._directory = directory
        self._path = temporary_path(directory, name)
        try:
            self._file = HashingFile(self._path)
        except OSError as error:
            raise self._failure(error) from error

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._file.size

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes; returns their number.

        Raises:
            OutputError: the file system refuses (no space, say).
        """
        try:
            return self._file.write(data)
        except OSError as error:
            raise self._failure(error) from error

    def write_array(self, values: npt.NDArray[Any], dtype: npt.DTypeLike) -> None:
        """Append integers, little-endian, one after the other.

        Args:
            values: one-dimensional; every value fits `dtype`, which is for the caller to see to.
            dtype: in the file.

        Raises:
            OutputError: as for `write`.
        """
        stored = np.dtype(dtype).newbyteorder("<")
        for start in range(0, len(values), _BLOCK_IDS):
            block = np.ascontiguousarray(values[start : start + _BLOCK_IDS], dtype=stored)
            self.write(block.data.cast("B"))

    def close(self) -> None:
        """End the file, which keeps its temporary name; twice is no error.

        Raises:
            OutputError: as for `write`.
        """
        try:
            self._file.close()
        except OSError as error:
            raise self._failure(error) from error

    def publish(self) -> ExportedFile:
        """Give the file its name."""
        self.close()
        publish(self._path, join(self._directory, self.name))
        return ExportedFile(name=self.name, bytes=self._file.size, sha256=self._file.sha256())

    def abandon(self) -> None:
        """Throw the file away after an error elsewhere."""
        # The error being handled says more than a second one from here would.
        with suppress(Exception):
            self._file.close()
        delete_temporary(self._path)

    # What Arrow's writers ask of a Python file.
    def flush(self) -> None:
        """Hand what is buffered to the file system."""
        self._file.flush()

    def tell(self) -> int:
        """The position of the next byte."""
        return self._file.size

    def writable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always false."""
        return False

    def seekable(self) -> bool:
        """Always false."""
        return False

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._file.closed

    def _failure(self, error: Exception) -> OutputError:
        return OutputError(
            f"{join(self._directory, self.name)}: cannot be written: {error}; make room, or choose "
            "another --output, and run the same command again"
        )


class ExportFolder:
    """The output folder of an export.

    Args:
        directory: exists, and is this export's.

    Used as a context manager: on an error, what was written is thrown away.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._files: list[ExportFile] = []

    def __enter__(self) -> ExportFolder:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.abandon()

    def create(self, name: str) -> ExportFile:
        """Begin a file. Files get their names in the order in which they were begun.

        Raises:
            OutputError: the file system refuses.
        """
        file = ExportFile(self._directory, name)
        self._files.append(file)
        return file

    def spool(self) -> IO[bytes]:
        """A nameless local file to set something aside in; it is gone when it is closed.

        It lies beside the output, where the room is that the export needs anyway, or among this
        machine's temporary files if the output is elsewhere.
        """
        if not is_local(self._directory):
            return tempfile.TemporaryFile()
        folder = join(self._directory, TEMPORARY)
        os.makedirs(folder, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder)

    def publish(self) -> list[ExportedFile]:
        """Give all files their names; returns them in that order.

        Raises:
            OutputError: the file system refuses.
        """
        done = []
        while self._files:
            done.append(self._files[0].publish())
            self._files.pop(0)
        return done
