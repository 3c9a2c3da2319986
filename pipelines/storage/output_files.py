"""Files of an output folder, local or on any file system that Beam knows, written whole or not.

A name is never a pattern here, whatever characters it holds. Local files are opened, listed and
removed by the operating system: Beam's functions expand patterns. `join` makes the paths of our
files, and refuses links that lead out of the folder.

Everything is written under a temporary name that no other attempt uses, in the folder
`_temporary` of the output, and renamed to its final name when it is complete. The rename replaces
an equal file of an earlier attempt, so a step that runs twice leaves the same folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from bpe.errors import BpeError, OutputError
from pipelines.storage.file_writing import start_writing
from pipelines.storage.own_paths import GLOB, escape, is_local, own_path

__all__ = [
    "TEMPORARY",
    "HashingFile",
    "delete_files",
    "delete_temporary",
    "exists",
    "is_local",
    "is_temporary_name",
    "join",
    "list_files",
    "make_folder_of",
    "match_remote",
    "open_bytes",
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


def join(directory: str, *names: str) -> str:
    """`directory/name/…`: the path of a file of ours, in the notation of its file system.

    Raises:
        OutputError: the path leads out of the folder (`own_paths.own_path`); Beam knows no such
            file system, or lacks what it needs for it.
    """
    if is_local(directory):
        return own_path(directory, *names)
    if ".." in "/".join(names).split("/"):
        raise OutputError(f"{directory}: the name {'/'.join(names)!r} leads out of this folder")
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


def open_bytes(path: str) -> Any:
    """A file to read as it is stored."""
    if is_local(path):
        return open(path, "rb")
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _create(path: str) -> Any:
    """A new file to write; a local one of that name must not be there."""
    if is_local(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return open(path, "xb")
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read_bytes(path: str) -> bytes:
    """The whole content of a small file, undecoded."""
    with open_bytes(path) as file:
        return bytes(file.read())


@contextmanager
def open_for_reading(path: str) -> Iterator[Any]:
    """An Arrow file to read from: memory-mapped where the path is local.

    Raises:
        OutputError: it cannot be opened.
    """
    try:
        file = pa.memory_map(path) if is_local(path) else pa.PythonFile(open_bytes(path), mode="r")
    except OSError as error:
        raise OutputError(f"{path}: cannot be opened: {error}") from error
    with file:
        yield file


def list_files(directory: str) -> dict[str, int]:
    """Names and sizes (bytes) of the files directly in `directory`; empty when it is missing.

    Links are among them, with sizes of their own: they can be removed, but are not followed.
    """
    if is_local(directory):
        if not os.path.isdir(directory):
            return {}
        with os.scandir(directory) as entries:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_size
                for entry in entries
                if not entry.is_dir(follow_symlinks=False)
            }
    found = match_remote(join(escape(directory), "*"))
    start = len(directory.rstrip("/")) + 1
    return {item.path[start:]: item.size_in_bytes for item in found if "/" not in item.path[start:]}


def match_remote(pattern: str, limit: int | None = None) -> list[FileMetadata]:
    """The files of another file system that match a pattern in Beam's notation, or the first."""
    with _no_warnings():
        return list(FileSystems.match([pattern], [limit])[0].metadata_list)


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Keep Python from warning of `[[]`, which is the only way to write a bracket for Beam."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def delete_files(directory: str, names: list[str]) -> None:
    """Delete files of `directory`; a missing one is no error.

    Raises:
        OutputError: a file cannot be deleted, or a name leads out of the folder.
    """
    paths = []
    for name in names:
        folder, _, last = name.rpartition("/")
        # A link is removed itself; a folder on the way to it must be none.
        parent = join(directory, folder) if folder else directory
        paths.append(os.path.join(parent, last) if is_local(parent) else join(parent, last))
    _delete(paths)


def delete_temporary(path: str) -> None:
    """Delete a file that `temporary_path` named, after an error; never fails."""
    with suppress(Exception):
        _delete([path])


def _delete(paths: list[str]) -> None:
    present = [path for path in paths if not is_local(path) and exists(path)]
    plain = [path for path in present if not GLOB.search(path)]
    if plain:
        FileSystems.delete(plain)
    for path in present:
        if GLOB.search(path):
            _delete_remote(path)
    for path in filter(is_local, paths):
        _delete_local(path)


def _delete_local(path: str) -> None:
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise OutputError(f"{path}: cannot be removed: {error}") from error


def _delete_remote(path: str) -> None:
    """Delete a remote file whose name holds pattern characters, and no other.

    Some of Beam's file systems expand patterns when they delete, others do not. The escaped name
    is tried first. A file system that does nothing then, without an error, expands nothing.
    """
    system = FileSystems.get_filesystem(path)
    expands = True
    if not system.exists(escape(path)):
        with suppress(Exception), _no_warnings():
            system.delete([escape(path)])
            expands = False
    if not system.exists(path):
        return
    if not expands or [item.path for item in match_remote(path)] in ([], [path]):
        with _no_warnings():
            system.delete([path])
        return
    raise OutputError(
        f"{path}: cannot be removed: its name holds characters of patterns, which this file system "
        "expands; choose an output without *, ? and [ in its name"
    )


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
        with _create(temporary) as file:
            file.write(data)
    except BpeError:
        raise
    except Exception as error:
        if temporary:
            delete_temporary(temporary)
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
        with _create(probe) as file:
            file.write(b"probe")
        _delete([probe])
    except Exception as error:
        # A full disk may have room for the name alone.
        delete_temporary(probe)
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
        self._file: Any = _create(path)
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
