"""One run at a time in an output folder: a lock that dies with its process.

The operating system holds the lock (`flock`) and gives it up when the process ends, however it
ends. The file only tells the next one who holds it, and is removed with the lock.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bpe.errors import OutputError
from pipelines.storage.own_paths import is_local, refuse_link

__all__ = ["LOCK_NAME", "locked_output"]

LOCK_NAME = ".beam-bpe.lock"
_LONGEST_HOLDER = 300


@contextmanager
def locked_output(directory: str) -> Iterator[None]:
    """Hold the lock of an output folder while the block runs.

    Folders on object stores, and file systems without locks, are not locked.

    Args:
        directory: an output folder that exists.

    Raises:
        OutputError: another run holds it; names the folder and the process.
    """
    path = os.path.join(directory, LOCK_NAME)
    descriptor = _acquire(directory, path) if is_local(directory) else None
    try:
        yield
    finally:
        if descriptor is not None:
            # Removed while it is held: whoever opened it meanwhile sees that it is gone.
            with suppress(OSError):
                os.unlink(path)
            os.close(descriptor)


def _acquire(directory: str, path: str) -> int | None:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, _LONGEST_HOLDER).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise OutputError(
                f"--output {directory}: another run is writing there "
                f"({holder or 'it has just started'}); wait until it is done, or choose another "
                "folder"
            ) from None
        except OSError:
            # The file system has no locks.
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(path)
            return None
        if _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            return descriptor
        # Its holder removed it between our opening and our locking.
        os.close(descriptor)


def _open(path: str) -> int:
    """Open the lock file, which is written to: it must be a file of this folder alone.

    Raises:
        OutputError: it is a link, also a hard one, or no file, or it cannot be opened.
    """
    refuse_link(path)
    # Between the look and the opening, the name may have become a link.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise OutputError(f"{path}: cannot be opened: {error}") from error
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise OutputError(f"{path}: is a hard link, also known by another name; remove it")
    return descriptor


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
