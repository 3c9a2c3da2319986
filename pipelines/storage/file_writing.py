"""What Python does not offer for files that are being written."""

from __future__ import annotations

from pipelines.storage.native_io import native_io_if_there

__all__ = ["start_writing"]


def start_writing(file: int, start: int, size: int) -> None:
    """Have the system begin to write a range of a file to the disk, without waiting for it.

    An `fsync` later on then finds little left to do. A hint: nothing happens where the system or
    the extension lacks it, and errors are for that `fsync` to report.

    Args:
        file: descriptor.
        start: of the range, bytes.
        size: bytes.
    """
    extension = native_io_if_there()
    if extension is not None:
        extension.start_writing(file, start, size)
