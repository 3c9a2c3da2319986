"""Unpacks zstd files of any number of frames, block by block.

The library's streaming readers do not tell a stream that ends from one that was cut, and a few
bytes of it may unpack to gigabytes. So the frames are walked here (RFC 8878, section 3.1): a few
blocks are handed over at a time, each of which unpacks to at most 128 KiB, and the end of the file
must be the end of a frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import zstandard

__all__ = ["FrameError", "zstd_chunks"]

# The library's limit is 128 MiB unless told otherwise; `zstd --long=31` goes to the format's own.
MAX_WINDOW_BYTES = 2**31
_MAGIC = b"\x28\xb5\x2f\xfd"
_RLE_BLOCK = 1
# So many blocks are unpacked at a time: 1 MiB at most, in one go without Python's lock.
_BLOCKS = 8
_CHUNK_BYTES = _BLOCKS << 17
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)


class FrameError(Exception):
    """What is wrong with a zstd stream, as the rest of a sentence."""


class _StoredBytes:
    """Takes exact numbers of bytes from a file, remembering the position."""

    def __init__(self, read: Callable[[], bytes]) -> None:
        self.position = 0
        self._read = read
        self._waiting = b""
        self._used = 0

    def at_end(self) -> bool:
        """Whether nothing follows."""
        return not self._fill(1)

    def take(self, size: int) -> bytes:
        """The next `size` bytes; a file that ends before is cut."""
        if not self._fill(size):
            end = self.position + len(self._waiting) - self._used
            raise FrameError(
                f"is truncated: it ends at byte {end} of the compressed file, inside a frame"
            )
        data = self._waiting[self._used : self._used + size]
        self._used += size
        self.position += size
        return data

    def _fill(self, size: int) -> bool:
        while len(self._waiting) - self._used < size:
            more = self._read()
            if not more:
                return False
            self._waiting = self._waiting[self._used :] + more
            self._used = 0
        return True


def zstd_chunks(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Unpack a zstd stream.

    Args:
        read: gives the next bytes of the compressed file, b"" at its end.

    Yields:
        Non-empty pieces of the content, 1 MiB at most each.

    Raises:
        FrameError: the stream is truncated, damaged, empty, followed by something else, or needs
            a dictionary.
    """
    stored = _StoredBytes(read)
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    first = True
    while first or not stored.at_end():
        start = stored.position
        magic = stored.take(4)
        if magic == _MAGIC:
            yield from _frame_chunks(stored, decompressor, start)
        elif magic[0] & 0xF0 == 0x50 and magic[1:] == b"\x2a\x4d\x18":
            _skip(stored, int.from_bytes(stored.take(4), "little"))
        else:
            raise FrameError(
                f"is none: the file does not start with a zstd frame, but with {magic!r}"
                if first
                else f"is followed by something else, from byte {start} of the compressed file on"
            )
        first = False


def _frame_chunks(
    stored: _StoredBytes, decompressor: zstandard.ZstdDecompressor, start: int
) -> Iterator[bytes]:
    """Content of one frame, whose magic number was taken."""
    unpacker = decompressor.decompressobj(write_size=_CHUNK_BYTES)
    header, has_checksum = _take_header(stored, start)
    packed = [_MAGIC, header]
    last = False
    try:
        while not last:
            last = _take_blocks(stored, packed)
            if last and has_checksum:
                packed.append(stored.take(4))
            content = unpacker.decompress(b"".join(packed))
            packed = []
            if content:
                yield content
    except zstandard.ZstdError as error:
        raise FrameError(
            f"is damaged before byte {stored.position} of the compressed file, in the frame that "
            f"starts at byte {start}: {error}"
        ) from error
    if not unpacker.eof:
        raise FrameError(f"is damaged: the frame at byte {start} does not end where it should")


def _take_blocks(stored: _StoredBytes, packed: list[bytes]) -> bool:
    """Append the next blocks of a frame as they are stored; whether they are its last ones."""
    for _ in range(_BLOCKS):
        head = stored.take(3)
        bits = int.from_bytes(head, "little")
        size = 1 if bits >> 1 & 3 == _RLE_BLOCK else bits >> 3
        packed += head, stored.take(size)
        if bits & 1:
            return True
    return False


def _take_header(stored: _StoredBytes, start: int) -> tuple[bytes, bool]:
    """The frame's header after the magic number, and whether a checksum follows the blocks."""
    descriptor = stored.take(1)
    flags = descriptor[0]
    single_segment = bool(flags & 0x20)
    window = b"" if single_segment else stored.take(1)
    dictionary = stored.take(_DICTIONARY_ID_BYTES[flags & 3])
    if any(dictionary):
        raise FrameError(
            f"needs dictionary {int.from_bytes(dictionary, 'little')} for the frame at byte "
            f"{start}; dictionaries are not supported, compress it again without"
        )
    size_bytes = _CONTENT_SIZE_BYTES[flags >> 6] or int(single_segment)
    return descriptor + window + dictionary + stored.take(size_bytes), bool(flags & 4)


def _skip(stored: _StoredBytes, size: int) -> None:
    while size:
        size -= len(stored.take(min(size, 1 << 20)))
