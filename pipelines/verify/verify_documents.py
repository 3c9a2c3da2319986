"""Check the order of the documents of a unit or bucket, and that none of them has a gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe.errors import OutputError
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.verify.document_parts import DocumentParts, refuse

__all__ = ["DocumentOrder"]

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
# Files of a unit and places in them, in one integer.
_PLACE_BITS = 44


class DocumentOrder:
    """The order of the documents of a unit or bucket, and of a split.

    Args:
        settings: of the run.
        is_open: whether a file's documents may begin before the unit, and end after it.
    """

    def __init__(
        self, settings: EncodeSettings, is_open: Callable[[int], tuple[bool, bool]]
    ) -> None:
        self._shuffle = settings.shuffle
        self._fits = settings.packs_best_fit
        self._tiles = _Tiles(is_open) if self._fits and self._shuffle != "shard" else None
        self._seen = _Seen(settings.pack_window + (settings.pack or 0))
        self._key = -1
        # Of a shuffle within the unit: the largest place of the run at hand, and of those before.
        self._run = self._before = -1

    def add(
        self, parts: DocumentParts, files: _Ints, origins: _Ints, keys: npt.NDArray[np.uint64]
    ) -> None:
        """Take the next parts.

        Args:
            parts: rows or segments.
            files: number of each one's file.
            origins: where its document starts.
            keys: in a shuffle, of those that begin a document.
        """
        if self._tiles is not None:
            self._tiles.add(parts, files, origins)
        first = np.flatnonzero(parts.is_first)
        # Half a key, since integers have a sign: two documents are hardly ever closer.
        halves = (keys >> np.uint64(1)).astype(np.int64)
        places = (files[first] << _PLACE_BITS) + parts.starts[first]
        if self._fits:
            by = halves if self._shuffle == "global" else places
            wrong = self._seen.add(by, int(parts.lengths.sum()), self._shuffle)
        elif self._shuffle == "global":
            wrong = np.diff(halves, prepend=self._key) <= 0
            self._key = int(halves[-1]) if len(halves) else self._key
        elif self._shuffle == "shard":
            wrong = self._check_runs(halves, places)
        else:
            return

        def failure(at: int) -> OutputError:
            return parts.failure(
                int(first[at]),
                f"begins at {parts.starts[first[at]]} of {parts.sources[first[at]]}, which is not "
                "its place in the order of documents: it is there twice, or was moved",
            )

        refuse(wrong, failure)

    def close(self, path: str) -> None:
        """The unit ends, with the shard of this path."""
        if self._tiles is not None:
            self._tiles.close(path)

    def _check_runs(self, keys: _Ints, places: _Ints) -> _Bools:
        """Keys rise within a window, and each window holds later documents than those before."""
        if not len(places):
            return np.zeros(0, np.bool_)
        falls = np.diff(keys, prepend=self._key) <= 0
        run = np.cumsum(falls)
        largest = np.maximum.reduceat(places, np.flatnonzero(np.diff(run, prepend=-1)))
        before = self._before
        if falls[0]:
            before = max(before, self._run)
        else:
            # The run of the rows before goes on.
            largest[0] = max(int(largest[0]), self._run)
        floors = np.maximum.accumulate(np.concatenate([[before], largest[:-1]]))
        self._key, self._run, self._before = int(keys[-1]), int(largest[-1]), int(floors[-1])
        wrong: _Bools = places <= floors[run - run[0]]
        return wrong


class _Seen:
    """Documents of the windows that best-fit packed last; one that comes twice is found.

    Rows of a window come together, and each window holds later documents than those before. So it
    is enough to hold two times as many ids as a window has.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._old = np.zeros(0, np.int64)
        self._new: list[_Ints] = []
        self._ids = 0
        self._floor = -1

    def add(self, places: _Ints, ids: int, shuffle: str) -> _Bools:
        """Take documents; returns which of these are there twice."""
        held = np.concatenate([self._old, *self._new])
        _, firsts = np.unique(places, return_index=True)
        is_wrong = np.ones(len(places), np.bool_)
        is_wrong[firsts] = False
        is_wrong |= np.isin(places, held) | (places <= self._floor)
        self._new.append(places)
        self._ids += ids
        # In a window of a shuffled unit, no place says what comes later: all of the unit is held.
        if self._ids > self._window and shuffle != "shard":
            self._floor = max(self._floor, int(self._old.max(initial=-1)))
            self._old = np.concatenate(self._new)
            self._new, self._ids = [], 0
        return is_wrong


@dataclass
class _Pieces:
    """What has come of a document that is divided among packed rows."""

    place: str
    spans: list[tuple[int, int]]
    file: int
    has_first: bool = False
    has_last: bool = False


class _Tiles:
    """Pieces of documents that best-fit put into rows in any order: they leave no gap."""

    def __init__(self, is_open: Callable[[int], tuple[bool, bool]]) -> None:
        self._open: dict[tuple[str, int, int], _Pieces] = {}
        self._is_open = is_open

    def add(self, rows: DocumentParts, files: _Ints, origins: _Ints) -> None:
        """Take the next segments."""
        for row in np.flatnonzero(~(rows.is_first & rows.is_last)).tolist():
            name, file = rows.names[row].as_py(), int(files[row])
            key = (name, file, int(origins[row]))
            pieces = self._open.setdefault(key, _Pieces(name, [], file))
            start = int(rows.places[row])
            if not _insert(pieces.spans, start, int(rows.ends[row])):
                raise rows.failure(row, f"repeats ids from {start} on of its document")
            pieces.has_first |= bool(rows.is_first[row])
            pieces.has_last |= bool(rows.is_last[row])
            is_whole = pieces.has_first and pieces.has_last
            if is_whole and len(pieces.spans) == 1 and pieces.spans[0][0] == 0:
                del self._open[key]

    def close(self, path: str) -> None:
        """No more segments of the unit come."""
        for pieces in self._open.values():
            may_begin_before, may_go_on = self._is_open(pieces.file)
            is_tiled = len(pieces.spans) == 1 and pieces.spans[0][0] == 0
            if not (
                is_tiled
                and (pieces.has_first or may_begin_before)
                and (pieces.has_last or may_go_on)
            ):
                raise OutputError(
                    f"{path}: document {pieces.place} lacks ids: its segments cover "
                    f"{', '.join(f'{start} to {end}' for start, end in pieces.spans[:3])}"
                )
        self._open = {}


def _insert(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    """Add a span to sorted ones, joined where they meet; False if it overlaps one of them."""
    place = len(spans)
    while place and spans[place - 1][0] >= start:
        place -= 1
    if (place and spans[place - 1][1] > start) or (place < len(spans) and spans[place][0] < end):
        return False
    if place and spans[place - 1][1] == start:
        place -= 1
        start = spans.pop(place)[0]
    if place < len(spans) and spans[place][0] == end:
        end = spans.pop(place)[1]
    spans.insert(place, (start, end))
    return True
