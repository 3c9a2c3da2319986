"""Where the record batches of an Arrow IPC file lie, and how many rows each has.

Arrow's Python interface tells neither without decoding the batches, so the few fields are taken
from the Flatbuffers metadata here (https://arrow.apache.org/docs/format/Columnar.html,
`File.fbs` and `Message.fbs`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["FOOTER_MAGIC", "BatchPlace", "batch_places", "batch_rows"]

FOOTER_MAGIC = b"ARROW1"
# Places of the fields in their tables, and of the parts of a `Block`.
_FOOTER_BATCHES = 3
_MESSAGE_HEADER = 2
_BATCH_LENGTH = 0
_BATCH_NODES = 1
_BLOCK = struct.Struct("<qi4xq")

ReadAt = Callable[[int, int], bytes]


@dataclass(frozen=True)
class BatchPlace:
    """A record batch's message.

    Attributes:
        start: position in the file, bytes.
        metadata_bytes: size of its metadata, with the prefix.
    """

    start: int
    metadata_bytes: int


def batch_places(read_at: ReadAt, size: int) -> list[BatchPlace]:
    """The record batches of an IPC file, in the order of its footer.

    Args:
        read_at: gives bytes of the file: position and size.
        size: of the file, bytes.

    Raises:
        ValueError: the file does not end with a footer, or the footer is damaged.
    """
    end = read_at(max(0, size - 10), 10)
    if not end.endswith(FOOTER_MAGIC) or len(end) < 10:
        raise ValueError("the file does not end as an Arrow file does; it is cut, or goes on")
    length = struct.unpack_from("<i", end)[0]
    if not 0 < length <= size - 10:
        raise ValueError(f"the footer has an impossible length of {length} bytes")
    footer = _Flatbuffer(read_at(size - 10 - length, length))
    vector = footer.follow(footer.field(footer.follow(0), _FOOTER_BATCHES))
    if vector is None:
        return []
    places = []
    for index in range(footer.uint32(vector)):
        start, metadata_bytes, body_bytes = footer.block(vector + 4 + index * _BLOCK.size)
        if not (start > 0 < metadata_bytes and start + metadata_bytes + body_bytes < size):
            raise ValueError(f"record batch {index} lies outside of the file")
        places.append(BatchPlace(start, metadata_bytes))
    return places


def batch_rows(read_at: ReadAt, place: BatchPlace) -> int:
    """Number of rows of a record batch, not negative.

    It is written there twice: of the batch, and of its first column.

    Raises:
        ValueError: the metadata of the batch is damaged.
    """
    data = read_at(place.start, place.metadata_bytes)
    # Files of Arrow before 0.15 have no mark in front of the length.
    message = _Flatbuffer(data[8:] if data.startswith(b"\xff\xff\xff\xff") else data[4:])
    header = message.follow(message.field(message.follow(0), _MESSAGE_HEADER))
    length = message.field(header, _BATCH_LENGTH)
    rows = 0 if length is None else message.int64(length)
    nodes = message.follow(message.field(header, _BATCH_NODES))
    in_column = message.int64(nodes + 4) if nodes and message.uint32(nodes) else rows
    if rows < 0 or rows != in_column:
        raise ValueError(
            f"the metadata of the record batch at byte {place.start} is damaged: it has {rows} "
            f"rows, and its first column {in_column}"
        )
    return rows


class _Flatbuffer:
    """Just enough of the Flatbuffers format: tables, their fields, and references."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def follow(self, place: int | None) -> int | None:
        """Where the reference at a place leads to."""
        return None if place is None else place + self.uint32(place)

    def field(self, table: int | None, index: int) -> int | None:
        """Place of a table's field; None if it has its default."""
        if table is None:
            raise ValueError("the metadata has no content")
        layout = table - self._unpack("<i", table)
        if 4 + 2 * index >= self._unpack("<H", layout):
            return None
        offset = self._unpack("<H", layout + 4 + 2 * index)
        return table + offset if offset else None

    def uint32(self, place: int) -> int:
        """The number at a place."""
        return self._unpack("<I", place)

    def int64(self, place: int) -> int:
        """The number at a place."""
        return self._unpack("<q", place)

    def block(self, place: int) -> tuple[int, int, int]:
        """A `Block` of the footer: offset, size of the metadata, size of the body."""
        self._check(place, _BLOCK.size)
        start, metadata_bytes, body_bytes = _BLOCK.unpack_from(self._data, place)
        return start, metadata_bytes, body_bytes

    def _unpack(self, form: str, place: int) -> int:
        self._check(place, struct.calcsize(form))
        return int(struct.unpack_from(form, self._data, place)[0])

    def _check(self, place: int, size: int) -> None:
        if not 0 <= place <= len(self._data) - size:
            raise ValueError("the metadata is damaged: a reference leads out of it")
