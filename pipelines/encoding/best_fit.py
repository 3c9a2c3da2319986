"""Best-fit-decreasing bin packing of many items of few different lengths.

Items go from the longest to the shortest, each into the fullest bin that still has room for it,
else into a new one. Items of a length and bins of a room are treated together: when the fullest bin
with room for an item of length n has room r, it takes r // n of them before any other bin becomes
the fullest, so that the work is a step per different length and room, not per item.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["best_fit_decreasing"]

_Ints = npt.NDArray[np.int64]


def best_fit_decreasing(lengths: _Ints, room: int) -> _Ints:
    """The bin of each item; bins are numbered from 0 in the order in which they are opened.

    Args:
        lengths: int64, from 1 to `room`.
        room: of a bin.
    """
    order = np.argsort(-lengths, kind="stable")
    descending = lengths[order]
    starts = np.flatnonzero(np.diff(descending, prepend=-1))
    counts = np.diff(np.append(starts, len(descending)))
    bins = _Bins(len(lengths), room)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        bins.place(int(descending[start]), start, count)
    result = np.empty(len(lengths), np.int64)
    result[order] = bins.of_item
    return result


class _Bins:
    """Open bins by the room that they have left."""

    def __init__(self, items: int, room: int) -> None:
        self.of_item = np.empty(items, np.int64)
        self._room = room
        self._opened = 0
        # Bit r is set where there are bins with room r: the fullest one is a shift away.
        self._rooms = 0
        self._groups: dict[int, list[_Ints]] = {}

    def place(self, length: int, start: int, count: int) -> None:
        """Place `count` items of a length, the first of which has the place `start` in order."""
        while count:
            room, bins = self._fullest(length, count)
            each = room // length
            full = min(len(bins), count // each)
            if full:
                placed = full * each
                self.of_item[start : start + placed] = np.repeat(bins[:full], each)
                self._add(room - each * length, bins[:full])
                start += placed
                count -= placed
            if count and full < len(bins):
                self.of_item[start : start + count] = bins[full]
                self._add(room - count * length, bins[full : full + 1])
                full += 1
                count = 0
            self._add(room, bins[full:])

    def _fullest(self, length: int, count: int) -> tuple[int, _Ints]:
        """Take out the bins with the least room that is enough for a length, else new bins."""
        fitting = self._rooms >> length
        if not fitting:
            opened = -(-count // (self._room // length))
            new = np.arange(self._opened, self._opened + opened)
            self._opened += opened
            return self._room, new
        room = length + (fitting & -fitting).bit_length() - 1
        self._rooms ^= 1 << room
        groups = self._groups.pop(room)
        return room, groups[0] if len(groups) == 1 else np.concatenate(groups)

    def _add(self, room: int, bins: _Ints) -> None:
        if room and len(bins):
            self._groups.setdefault(room, []).append(bins)
            self._rooms |= 1 << room
