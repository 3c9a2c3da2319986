"""Puts ranges of text together to sequences, as one array of bytes with offsets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.training.rounds.raw_sequences import RawSequences

__all__ = ["SequenceBuilder", "Sequences", "divide"]

_Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sequences:
    """Sequences that follow each other.

    Attributes:
        content: uint8, the bytes of all, one after the other.
        offsets: int64, where each starts, and the end of the last; at least one entry.
        open_left: whether the first goes on from what precedes.
        open_right: whether the last goes on in what follows.
    """

    content: npt.NDArray[np.uint8]
    offsets: _Positions
    open_left: bool
    open_right: bool

    def to_binary(self) -> pa.LargeBinaryArray:
        """The sequences as an Arrow array over the same memory."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.content)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.offsets) - 1, buffers)


class SequenceBuilder:
    """Collects ranges until they are taken as sequences.

    Attributes:
        size: bytes collected.
    """

    def __init__(self) -> None:
        self.size = 0
        self._contents: list[npt.NDArray[np.uint8]] = []
        self._starts: list[_Positions] = []
        self._open_left = False
        self._is_open = False

    def add(self, found: RawSequences) -> None:
        """Add ranges that follow those collected so far; the empty ones are nothing."""
        lengths = found.ends - found.starts
        some = np.flatnonzero(lengths)
        self._is_open = found.is_open
        if not len(some):
            return
        starts, lengths, joins = found.starts[some], lengths[some], found.joins[some]
        if not self.size:
            self._open_left = bool(joins[0])
            joins = joins.copy()
            joins[0] = False
        places = self.size + np.cumsum(lengths) - lengths
        self._starts.append(places[~joins])
        self._contents.append(_gather(found.content, starts, lengths))
        self.size += int(lengths.sum())

    def take(self) -> Sequences:
        """The sequences collected; the next ones follow them."""
        contents, ends = self._contents, [np.array([self.size], np.int64)]
        content = np.concatenate(contents) if contents else np.empty(0, np.uint8)
        offsets = np.concatenate([*self._starts, ends[0]])
        taken = Sequences(content, offsets, self._open_left, self._is_open)
        self.size, self._contents, self._starts, self._open_left = 0, [], [], False
        return taken


def _gather(
    content: npt.NDArray[np.uint8], starts: _Positions, lengths: _Positions
) -> npt.NDArray[np.uint8]:
    """Ranges of a buffer one after the other, copied."""
    total = int(lengths.sum())
    if int(starts[-1] + lengths[-1] - starts[0]) == total:
        return content[starts[0] : starts[0] + total].copy()
    before = np.cumsum(lengths) - lengths
    places = np.repeat(starts - before, lengths) + np.arange(total)
    gathered: npt.NDArray[np.uint8] = content[places]
    return gathered


def divide(found: RawSequences, room: int) -> tuple[RawSequences, RawSequences | None]:
    """The first `room` bytes of some ranges, and the rest; None if nothing is left."""
    reached = np.cumsum(found.ends - found.starts)
    if not len(reached) or reached[-1] <= room:
        return found, None
    last = int(np.searchsorted(reached, room, side="left"))
    at = int(found.ends[last]) - (int(reached[last]) - room)
    inside = bool(at < found.ends[last])
    ends = found.ends[: last + 1].copy()
    ends[last] = at
    goes_on = inside or bool(found.joins[last + 1])
    first = RawSequences(
        found.content, found.starts[: last + 1], ends, found.joins[: last + 1], goes_on
    )
    if not inside:
        last += 1
    starts, joins = found.starts[last:].copy(), found.joins[last:].copy()
    if inside:
        starts[0], joins[0] = at, True
    return first, RawSequences(found.content, starts, found.ends[last:], joins, found.is_open)
