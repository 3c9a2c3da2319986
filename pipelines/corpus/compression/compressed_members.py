"""Unpacks gzip, bzip2 and xz files of any number of members, bounded pieces at a time.

The end of the file must be the end of a member. What may follow the last one is what the format's
own tool fills files up with, and nothing else.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

__all__ = ["MEMBER_FORMATS", "MemberError", "member_chunks"]

# The most that one step unpacks; bytes.
_STEP_BYTES = 1 << 20
# An xz file says how large a dictionary it needs: 64 MiB by `xz -9`, and up to 4 GiB.
_XZ_MEMORY_BYTES = 2 << 30


class MemberError(Exception):
    """What is wrong with a compressed stream, as the rest of a sentence."""


class _Member(Protocol):
    """Unpacks one member, as `bz2` and `lzma` do it."""

    @property
    def eof(self) -> bool:
        """Whether the member's end was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing more can be given before more is taken."""

    @property
    def unused_data(self) -> bytes:
        """What was taken from after the end."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take more of the member, and give some of its content."""


class _GzipMember:
    """A gzip member after the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


@dataclass(frozen=True)
class _MemberFormat:
    """What is special about a format.

    Attributes:
        new_member: starts to unpack another member.
        errors: what it raises on damage.
        start: first byte of every member.
        padding_unit: zero bytes may follow a member, so many at a time; 0 for none.
        padding_ends: whether nothing but zero bytes may follow padding.
    """

    new_member: Callable[[], _Member]
    errors: tuple[type[Exception], ...]
    start: bytes
    padding_unit: int
    padding_ends: bool


MEMBER_FORMATS = {
    "gzip": _MemberFormat(_GzipMember, (zlib.error,), b"\x1f", 1, padding_ends=True),
    "bzip2": _MemberFormat(bz2.BZ2Decompressor, (OSError, ValueError), b"B", 0, padding_ends=True),
    "xz": _MemberFormat(
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES),
        (lzma.LZMAError,),
        b"\xfd",
        4,
        padding_ends=False,
    ),
}


def member_chunks(name: str, read: Callable[[], bytes]) -> Iterator[bytes]:
    """Unpack a file of one or more members.

    Args:
        name: one of `MEMBER_FORMATS`.
        read: gives the next bytes of the compressed file, b"" at its end.

    Yields:
        Non-empty pieces of the content, 1 MiB at most each.

    Raises:
        MemberError: the file is truncated, damaged, or goes on with something else.
    """
    return _Unpacker(MEMBER_FORMATS[name], read).chunks()


class _Unpacker:
    """The bytes in hand, and how many were read."""

    def __init__(self, form: _MemberFormat, read: Callable[[], bytes]) -> None:
        self._form = form
        self._read = read
        self._waiting = b""
        self._fetched = 0

    def chunks(self) -> Iterator[bytes]:
        """The content of all members."""
        while True:
            yield from self._member()
            self._pass_padding()
            if not self._waiting:
                return
            if not self._waiting.startswith(self._form.start):
                raise self._followed_by_garbage(self._fetched - len(self._waiting))

    def _fetch(self) -> bool:
        """Have some bytes in hand; False at the end of the file."""
        if not self._waiting:
            self._waiting = self._read()
            self._fetched += len(self._waiting)
        return bool(self._waiting)

    def _member(self) -> Iterator[bytes]:
        member = self._form.new_member()
        while not member.eof:
            if member.needs_input and not self._fetch():
                raise MemberError(
                    f"is truncated: it ends at byte {self._fetched} of the compressed file, inside "
                    f"a member"
                )
            data, self._waiting = (self._waiting, b"") if member.needs_input else (b"", b"")
            try:
                unpacked = member.decompress(data, _STEP_BYTES)
            except self._form.errors as error:
                raise MemberError(
                    f"is damaged before byte {self._fetched} of the compressed file: {error}"
                ) from error
            if unpacked:
                yield unpacked
        self._waiting = member.unused_data

    def _pass_padding(self) -> None:
        """Read over the zero bytes that may follow a member."""
        padding = 0
        while self._fetch():
            rest = self._waiting.lstrip(b"\0") if self._form.padding_unit else self._waiting
            padding += len(self._waiting) - len(rest)
            self._waiting = rest
            if rest:
                break
        place = self._fetched - len(self._waiting)
        if padding and self._waiting and self._form.padding_ends:
            raise self._followed_by_garbage(place)
        if padding and padding % self._form.padding_unit:
            raise self._followed_by_garbage(place - padding)

    def _followed_by_garbage(self, place: int) -> MemberError:
        return MemberError(
            f"is followed by something else, from byte {place} of the compressed file on"
        )
