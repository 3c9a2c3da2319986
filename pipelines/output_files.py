"""Files of an output folder, local or on any file system that Beam knows, written whole or not.

Everything is written under a temporary name that no other attempt uses, in the folder
`_temporary` of the output, and renamed to its final name when it is complete. The rename replaces
an equal file of an earlier attempt, so a step that runs twice leaves the same folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bpe.errors import OutputError
from bpe.file_writing import start_writing

__all__ = [
    "TEMPORARY",
    "HashingFile",
    "delete_files",
    "exists",
    "is_local",
    "is_temporary_name",
    "join",
    "list_files",
    "make_folder_of",
    "open_for_reading",
    "prepare_output",
    "publish",
    "read_bytes",
    "remove_empty_folder",
    "remove_temporary_files",
    "temporary_path",
    "write_atomically",
]

TEMPORARY = "_temporary"
_TEMPORARY_NAME = re.compile(r".+\.[0-9a-f]{32}")


def is_local(path: str) -> bool:
    """Whether `path` is on this machine's own file system."""
    return "://" not in path


def join(directory: str, *names: str) -> str:
    """`directory/name/…` in the notation of the directory's file system.

    Raises:
        OutputError: Beam knows no such file system, or lacks what it needs for it.
    """
    if is_local(directory):
        return os.path.join(directory, *names)
    try:
        return str(FileSystems.join(directory, *names))
    except ValueError as error:
        scheme = directory.partition("://")[0]
        raise OutputError(
            f"{directory}: nothing here knows {scheme}:// ({error}); install what does, or write "
            "a local path"
        ) from error


def exists(path: str) -> bool:
    """Whether a file or folder of that name is there."""
    return os.path.exists(path) if is_local(path) else bool(FileSystems.exists(path))


def read_bytes(path: str) -> bytes:
    """The whole content of a small file, undecoded."""
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        return bytes(file.read())


@contextmanager
def open_for_reading(path: str) -> Iterator[Any]:
    """An Arrow file to read from: memory-mapped where the path is local.

    Raises:
        OutputError: it cannot be opened.
    """
    try:
        file = pa.memory_map(path) if is_local(path) else pa.PythonFile(_open_remote(path))
    except OSError as error:
        raise OutputError(f"{path}: cannot be opened: {error}") from error
    with file:
        yield file


def _open_remote(path: str) -> Any:
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def list_files(directory: str) -> dict[str, int]:
    """Names and sizes (bytes) of the files directly in `directory`; empty when it is missing."""
    if is_local(directory):
        if not os.path.isdir(directory):
            return {}
        with os.scandir(directory) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
    found = FileSystems.match([join(directory, "*")])[0].metadata_list
    start = len(directory.rstrip("/")) + 1
    return {item.path[start:]: item.size_in_bytes for item in found if "/" not in item.path[start:]}


def delete_files(directory: str, names: list[str]) -> None:
    """Delete files of `directory`; a missing one is no error."""
    present = [join(directory, name) for name in names if exists(join(directory, name))]
    if present:
        FileSystems.delete(present)


def _make_directory(path: str) -> None:
    if is_local(path):
        os.makedirs(path, exist_ok=True)
    elif not FileSystems.exists(path):
        FileSystems.mkdirs(path)


def make_folder_of(path: str) -> None:
    """Make the folder that a file lies in, where it is missing."""
    _make_directory(path.rsplit("/", 1)[0])


def temporary_path(directory: str, name: str) -> str:
    """A path below `directory/_temporary` that no other attempt uses; the folder is made."""
    folder = join(directory, TEMPORARY)
    _make_directory(folder)
    return join(folder, f"{name}.{uuid.uuid4().hex}")


def is_temporary_name(name: str) -> bool:
    """Whether a file's name is one that `temporary_path` makes: an attempt's, not a user's."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def publish(temporary: str, final: str) -> None:
    """Rename a complete file to its final name, replacing what an earlier attempt left there.

    On a local file system the content reaches the disk first, and the name before this returns: a
    file that a later step relies on survives a crash of the machine.

    Raises:
        OutputError: the file system refuses.
    """
    try:
        if is_local(final):
            _synchronize(temporary)
            os.replace(temporary, final)
            # Some file systems cannot do it for folders.
            with suppress(OSError):
                _synchronize(os.path.dirname(final) or ".")
        else:
            FileSystems.rename([temporary], [final])
    except Exception as error:
        raise OutputError(f"{final}: cannot be put in place: {error}") from error


def _synchronize(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(directory: str, name: str, data: bytes) -> None:
    """Write `directory/name` (the name may hold one folder) so that it is never seen in part.

    Raises:
        OutputError: the file cannot be written; the text names it and the cause.
    """
    final = join(directory, name)
    temporary = ""
    try:
        temporary = temporary_path(directory, name.replace("/", "-"))
        make_folder_of(final)
        with FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.write(data)
    except Exception as error:
        if temporary:
            with suppress(Exception):
                FileSystems.delete([temporary])
        raise OutputError(f"{final}: cannot be written: {error}") from error
    publish(temporary, final)


def prepare_output(directory: str) -> None:
    """Make the output folder and write a probe into it, so that a bad one is found before work.

    Raises:
        OutputError: the folder cannot be made or written; the text names it and the cause.
    """
    probe = join(directory, f"_probe.{uuid.uuid4().hex}")
    try:
        _make_directory(directory)
        with FileSystems.create(probe, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.write(b"probe")
        FileSystems.delete([probe])
    except Exception as error:
        # A full disk may have room for the name alone.
        with suppress(Exception):
            FileSystems.delete([probe])
        raise OutputError(
            f"--output {directory}: cannot be written ({error}); choose a folder that can"
        ) from error


def remove_temporary_files(directory: str) -> None:
    """Remove what killed attempts left behind, and the folder of temporary files if it is empty."""
    folder = join(directory, TEMPORARY)
    delete_files(folder, [name for name in list_files(folder) if is_temporary_name(name)])
    remove_empty_folder(folder)


def remove_empty_folder(directory: str) -> None:
    """Remove a folder if it is local and empty; object stores have none."""
    if is_local(directory):
        with suppress(OSError):
            os.rmdir(directory)


_BEGUN_BYTES = 8 << 20


class HashingFile:
    """A binary output file that knows the SHA-256 and the size of what went through it.

    Arrow's writer only appends, so the digest of the file is there when it closes, without reading
    it back.

    Args:
        path: where to write; local or any path that Beam's file systems take.

    Attributes:
        size: bytes written so far.
    """

    def __init__(self, path: str) -> None:
        self._file: Any = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
        self._hash = hashlib.sha256()
        self._begun = 0
        self._is_local = is_local(path)
        self.size = 0

    def write(self, data: Any) -> int:
        """Append `data` (bytes-like); returns the number of bytes."""
        self._file.write(data)
        self._hash.update(data)
        count = len(data)
        self.size += count
        if self._is_local and self.size - self._begun >= _BEGUN_BYTES:
            # Then the end, which waits for the disk, has little left to wait for.
            start_writing(self._file.fileno(), self._begun, self.size - self._begun)
            self._begun = self.size
        return count

    def tell(self) -> int:
        """The position of the next byte."""
        return self.size

    def flush(self) -> None:
        """Hand what is buffered to the file system."""
        self._file.flush()

    def close(self) -> None:
        """Close the file; twice is no error."""
        if not self._file.closed:
            self._file.close()

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return bool(self._file.closed)

    def writable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always false."""
        return False

    def seekable(self) -> bool:
        """Always false: the digest needs the bytes in order."""
        return False

    def sha256(self) -> str:
        """Hexadecimal digest of everything written."""
        return self._hash.hexdigest()
