"""The bytes of an input file, uncompressed, in order, with every kind of damage detected.

Beam's own decompression accepts truncated streams in silence, so files are opened as stored and
unpacked here. A stream either gives every byte of the file or ends in a `BadFileError`. What may
change while the file is being read is for the caller to ask about afterwards: `check_unchanged`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from typing import IO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bpe.backends.process_memory import join_large, large_buffer
from bpe.errors import BadFileError
from pipelines.corpus.compression.compressed_members import MemberError, member_chunks
from pipelines.corpus.compression.zstd_frames import FrameError, zstd_chunks
from pipelines.corpus.listing.content_kinds import HEAD_BYTES
from pipelines.corpus.listing.file_formats import check_magic, is_declared
from pipelines.corpus.listing.inputs import InputFile, file_identity

__all__ = ["ByteStream", "UnstableFileError", "check_unchanged", "check_whole", "open_stream"]

# How much is asked of the file system at a time, and the most that one step unpacks; bytes.
READ_BYTES = 1 << 20
# A compressed file's damage is mended by fetching it again, never by reading on.
_REMEDY = "make or copy the file again"


class UnstableFileError(BadFileError):
    """A file is not what it was when the plan was made, or cannot be read right now.

    Other readers of the same file may have met it in another state. The type stays inside the
    process; a worker hands on a `BadFileError`.
    """


class ByteStream:
    """A file's uncompressed bytes from some position on.

    Attributes:
        position: of the next byte, from the start of the uncompressed file.
    """

    def __init__(self, file: InputFile, stored: IO[bytes], chunks: Iterator[bytes] | None) -> None:
        self.position = 0
        self._file = file
        self._stored = stored
        self._chunks = chunks
        self._rest: bytes | memoryview = b""

    def close(self) -> None:
        """Close the file."""
        self._stored.close()

    def seek(self, position: int) -> None:
        """Go to a position of an uncompressed file."""
        if self._chunks is not None:
            raise ValueError(f"{self._file.path} is compressed and cannot be entered at {position}")
        self._stored.seek(position)
        self.position = position

    def peek(self, size: int) -> bytes:
        """The next bytes of a compressed file, which stay the next ones."""
        if self._chunks is None:
            raise ValueError(f"{self._file.path} is not compressed")
        found = b"".join(self._take_unpacked(self._chunks, size))
        self._rest = found + self._rest
        return found

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end of the file, b"" after it.

        Raises:
            BadFileError: the file is damaged, or has shrunk since the plan was made.
        """
        return bytes(self.read_behind(b"", size))

    def read_behind(self, data: bytes | memoryview, size: int) -> memoryview:
        """Some bytes, and after them the next ones of the file as `read` gives them."""
        if self._chunks is not None:
            found = join_large([data, *self._take_unpacked(self._chunks, size)])
        else:
            wanted = max(0, min(size, self._file.size - self.position))
            found = large_buffer(len(data) + wanted)
            found[: len(data)] = data
            self._fill(found[len(data) :])
        self.position += len(found) - len(data)
        return found

    def _fill(self, data: memoryview) -> None:
        """Read the next bytes of an uncompressed file, which has so many."""
        filled = 0
        while filled < len(data):
            # Remote files may give less than asked for.
            count = _read_into(self._file, self._stored, data[filled:])
            if not count:
                raise UnstableFileError(
                    f"{self._file.path}: ends {len(data) - filled} bytes before byte "
                    f"{self.position + len(data)}, but had {self._file.size} bytes when the plan "
                    f"was made; run the command again when nothing writes to it"
                )
            filled += count

    def _take_unpacked(self, chunks: Iterator[bytes], size: int) -> list[bytes | memoryview]:
        """The next bytes of a compressed file: so many, or fewer at its end."""
        pieces: list[bytes | memoryview] = []
        missing = size
        while missing > 0:
            piece = self._rest or next(chunks, b"")
            self._rest = b""
            if not piece:
                break
            if len(piece) > missing:
                # Only here: there may be a member for every few bytes, and views are large.
                view = memoryview(piece)
                piece, self._rest = view[:missing], view[missing:]
            pieces.append(piece)
            missing -= len(piece)
        return pieces


def open_stream(file: InputFile, *, sniff: bool = False) -> ByteStream:
    """Open an input file, checking that it is still the one of the plan.

    Args:
        file: from the plan.
        sniff: also check that the content of a compressed file does not start like another format
            than text. (Files that are not compressed are looked at when they are listed.)

    Raises:
        UnstableFileError: the file vanished, changed, or cannot be opened.
        BadFileError: it is of another format.
    """
    check_unchanged(file)
    try:
        stored = FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED)
    except (OSError, ValueError) as error:
        raise UnstableFileError(f"{file.path}: cannot be opened: {error}; {_REMEDY}") from error
    stream = ByteStream(file, stored, _unpack(file, stored))
    if sniff and file.compression != "none":
        try:
            head = stream.peek(HEAD_BYTES)
            check_magic(file.path, head, is_declared=is_declared(file.path))
        except BaseException:
            stored.close()
            raise
    return stream


def check_whole(file: InputFile) -> None:
    """Unpack a compressed file once and forget it, to know beforehand that all of it is good.

    Raises:
        BadFileError: it is not.
    """
    with closing(open_stream(file)) as stream:
        while stream.read_behind(b"", READ_BYTES):
            pass


def check_unchanged(file: InputFile) -> None:
    """Compare a file's identity with that of the plan.

    Raises:
        UnstableFileError: it is another one, or the file is gone.
    """
    try:
        metadata = FileSystems.get_filesystem(file.path).metadata(file.path)
    except (BeamIOError, OSError) as error:
        raise UnstableFileError(
            f"{file.path}: was there when the plan was made, and is not to be found now "
            f"({error}); put it back"
        ) from error
    identity = file_identity(metadata)
    if identity != file.identity:
        raise UnstableFileError(
            f"{file.path}: changed since the plan was made: {file.identity} then, {identity} now; "
            f"run the command again when nothing writes to it"
        )


def _read(file: InputFile, stored: IO[bytes], size: int) -> bytes:
    """Bytes of a file as stored, at most `size`; b"" at its end."""
    try:
        return stored.read(size)
    except OSError as error:
        raise UnstableFileError(f"{file.path}: cannot be read: {error}; {_REMEDY}") from error


def _read_into(file: InputFile, stored: IO[bytes], data: memoryview) -> int:
    """Read bytes of a file as stored, at most as many as there is room for; how many."""
    if not isinstance(stored, io.BufferedReader):
        # Files of other kinds need not have `readinto`, whatever they say.
        piece = _read(file, stored, len(data))
        data[: len(piece)] = piece
        return len(piece)
    try:
        return stored.readinto(data)
    except OSError as error:
        raise UnstableFileError(f"{file.path}: cannot be read: {error}; {_REMEDY}") from error


def _unpack(file: InputFile, stored: IO[bytes]) -> Iterator[bytes] | None:
    """Pieces of a compressed file's content; None if it is not compressed."""

    def read() -> bytes:
        return _read(file, stored, READ_BYTES)

    if file.compression == "none":
        return None
    if file.compression == "zstd":
        return _named(file, zstd_chunks(read))
    return _named(file, member_chunks(file.compression, read))


def _named(file: InputFile, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces; errors name the file."""
    try:
        yield from chunks
    except (FrameError, MemberError) as error:
        raise BadFileError(f"{file.path}: {file.compression} stream {error}; {_REMEDY}") from error
