"""Check the order of the documents of a unit or bucket, and that none of them has a gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import OutputError
from pipelines.corpus.document_keys import shuffle_keys
from pipelines.verify.verify_ranges import NO_END, size_of
from schemas.run_record import InputRecord

__all__ = ["DocumentOrder", "FaultError", "PlaceSettings", "PlacedRows"]

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
# Files of a unit and places in them, in one integer.
_PLACE_BITS = 44


class PlaceSettings(Protocol):
    """What is needed of a run's settings; see `pipelines.shards.encode_settings`."""

    pack: int | None
    pack_mode: str | None
    pack_window: int | None
    shuffle: str
    seed: int | None
    id_field: str | None
    input_format: str


@dataclass(frozen=True)
class PlacedRows:
    """Rows of a shard, or segments of its packed rows, in order.

    Attributes:
        names, sources: string and dictionary of strings, as in `schemas.token_shards`.
        starts: int64, `byte_start`.
        positions, lengths: int64; of packed rows alone: the ids of each segment.
        is_first, is_last: whether the document starts or ends here.
    """

    names: pa.Array
    sources: pa.DictionaryArray
    starts: _Ints
    positions: _Ints
    lengths: _Ints
    is_first: _Bools
    is_last: _Bools


class FaultError(ValueError):
    """What is wrong with a row: its place in the batch, and a phrase."""

    def __init__(self, row: int, what: str) -> None:
        super().__init__(what)
        self.row = row


class DocumentOrder:
    """The order of the documents of a unit or bucket, and of a split.

    Attributes:
        path: of the shard at hand, for messages.
    """

    def __init__(self, settings: PlaceSettings) -> None:
        self.path = ""
        self._settings = settings
        self._fits = settings.pack_mode == "best-fit"
        self._tiles = _Tiles() if self._fits and settings.shuffle != "shard" else None
        self._seen = _Seen((settings.pack_window or 0) + (settings.pack or 0))
        self._key = -1
        # Of a shuffle within the unit: the largest place of the run at hand, and of those before.
        self._run = self._before = -1

    def add(
        self,
        rows: PlacedRows,
        files: _Ints,
        origins: _Ints,
        ranges: Mapping[int, tuple[int, int]],
        inputs: Sequence[InputRecord],
    ) -> None:
        """Take the next rows."""
        first = np.flatnonzero(rows.is_first)
        if self._tiles is not None:
            self._tiles.add(rows, files, origins, _is_open(ranges, inputs))
        keys = shuffle_keys(files[first], rows.starts[first], self._settings.seed or 0)
        places = (files[first] << _PLACE_BITS) + rows.starts[first]
        if self._settings.shuffle == "global":
            # Half a key, since integers have a sign: two documents are hardly ever closer.
            places = (keys >> np.uint64(1)).astype(np.int64)
        if self._fits:
            wrong = self._seen.add(places, int(rows.lengths.sum()), self._settings.shuffle)
        elif self._settings.shuffle == "global":
            wrong = np.flatnonzero(np.diff(places, prepend=self._key) <= 0)
        elif self._settings.shuffle == "shard":
            wrong = self._check_runs(keys, places)
        else:
            return
        if len(wrong):
            row = int(first[wrong[0]])
            raise FaultError(
                row,
                f"begins at {rows.starts[row]} of {rows.sources[row]}, which is not its place in "
                "the order of documents: it is there twice, or was moved",
            )
        if len(places) and self._settings.shuffle == "global":
            self._key = int(places[-1])

    def close(self) -> None:
        """The unit ends."""
        if self._tiles is not None:
            self._tiles.close(self.path)

    def _check_runs(self, keys: npt.NDArray[np.uint64], places: _Ints) -> _Ints:
        """Keys rise within a window, and each window holds later documents than those before."""
        halves = (keys >> np.uint64(1)).astype(np.int64)
        falls = np.diff(halves, prepend=self._key) <= 0
        if not len(places):
            return np.zeros(0, np.int64)
        run = np.cumsum(falls)
        starts = np.flatnonzero(np.diff(run, prepend=-1))
        largest = np.maximum.reduceat(places, starts)
        if not falls[0]:
            largest[0] = max(int(largest[0]), self._run)
            floors = np.concatenate([[self._before], largest[:-1]])
        else:
            floors = np.concatenate([[max(self._run, self._before)], largest[:-1]])
        floors = np.maximum.accumulate(floors)
        of_rows = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(places))))
        wrong = np.flatnonzero(places <= floors[of_rows])
        self._key = int(halves[-1])
        self._run, self._before = int(largest[-1]), int(floors[-1])
        return wrong


def _is_open(
    ranges: Mapping[int, tuple[int, int]], inputs: Sequence[InputRecord]
) -> Callable[[int], tuple[bool, bool]]:
    """Whether a file's documents may begin before the unit, or end after it."""

    def look(file: int) -> tuple[bool, bool]:
        low, high = ranges.get(file, (0, NO_END))
        size = size_of(inputs[file])
        return low > 0, high not in (NO_END, size)

    return look


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

    def add(self, places: _Ints, ids: int, shuffle: str) -> _Ints:
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
        return np.flatnonzero(is_wrong)


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

    def __init__(self) -> None:
        self._open: dict[tuple[str, int, int], _Pieces] = {}
        self._look: Callable[[int], tuple[bool, bool]] = lambda _: (False, False)

    def add(
        self,
        rows: PlacedRows,
        files: _Ints,
        origins: _Ints,
        look: Callable[[int], tuple[bool, bool]],
    ) -> None:
        """Take the next segments."""
        self._look = look
        for row in np.flatnonzero(~(rows.is_first & rows.is_last)).tolist():
            name, file = rows.names[row].as_py(), int(files[row])
            key = (name, file, int(origins[row]))
            pieces = self._open.setdefault(key, _Pieces(name, [], file))
            start = int(rows.positions[row])
            if not _insert(pieces.spans, start, start + int(rows.lengths[row])):
                raise FaultError(row, f"repeats ids from {start} on of its document")
            pieces.has_first |= bool(rows.is_first[row])
            pieces.has_last |= bool(rows.is_last[row])
            is_whole = pieces.has_first and pieces.has_last
            if is_whole and len(pieces.spans) == 1 and pieces.spans[0][0] == 0:
                del self._open[key]

    def close(self, path: str) -> None:
        """No more segments of the unit come."""
        for pieces in self._open.values():
            may_begin_before, may_go_on = self._look(pieces.file)
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
