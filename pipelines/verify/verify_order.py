"""Check that the rows of each document follow one another, over batches and shards.

What a writer guarantees depends on the layout:

    none    documents by file and place; rows of one together, also where it goes on in another unit
    shard   as a document may be longer than what is shuffled at a time, its rows may stand apart
    global  rows of a document together, in one bucket

Of documents packed by `best-fit`, whose pieces go where they fit, only the order within each row
is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from bpe.errors import OutputError
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.verify.document_parts import DocumentParts, refuse
from pipelines.verify.verify_places import InputPlaces
from schemas.sidecars import ShardSidecar

__all__ = ["RowOrder"]

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
# The writer leaves a document open at each end of a window, and takes it up in the next.
_MOST_OPEN = 64


@dataclass(frozen=True)
class _Latest:
    """The last row of a document at hand."""

    document: tuple[str, str] = ("", "")
    start: int = -1
    end: int = 0
    file: int = -1
    unit: int = -1
    is_last: bool = True
    at: str = ""


@dataclass
class _Chain:
    """What has come of a split."""

    unit: int = -1
    is_fresh: bool = True
    latest: _Latest = field(default_factory=_Latest)
    open: dict[tuple[str, str], _Latest] = field(default_factory=dict)


class RowOrder:
    """Follows the rows of an output, shard after shard in the manifest's order.

    Args:
        settings: of the run.
        places: says from which file each row is, and that it belongs there.
    """

    def __init__(self, settings: EncodeSettings, places: InputPlaces) -> None:
        self._settings = settings
        self._places = places
        self._chains: dict[str, _Chain] = {}
        self._chain = _Chain()
        self._drops = settings.pack_tail == "drop"

    def begin(self, sidecar: ShardSidecar) -> None:
        """A shard begins, of which the manifest says this.

        Raises:
            OutputError: a document of the shards before has no end; names its last row.
        """
        self._places.begin(sidecar)
        self._chain = self._chains.setdefault(sidecar.split, _Chain())
        if self._chain.unit == sidecar.unit:
            return
        if self._settings.shuffle == "global":
            self._finish(self._chain)
        if self._drops:
            # What follows here in its document may have been left out.
            self._chain.latest = replace(self._chain.latest, is_last=True)
            self._chain.open.clear()
        self._chain.unit, self._chain.is_fresh = sidecar.unit, True

    def close(self) -> None:
        """No shards follow.

        Raises:
            OutputError: as for `begin`.
        """
        for chain in self._chains.values():
            self._finish(chain)
        self._places.close()

    def add(self, rows: DocumentParts) -> None:
        """Take the next rows of the shard.

        Raises:
            OutputError: they do not follow from those before; names shard, row and document.
        """
        if not len(rows.rows):
            return
        files = self._places.add(rows)
        if self._settings.packs_best_fit:
            self._check_pieces(rows, files)
            return
        ended = _shifted(rows.is_last, self._chain.latest.is_last)
        joins = ~rows.is_first & ~ended
        if joins.any():
            joins &= self._same_document(rows)
        self._check_documents(rows, files)
        for place in np.flatnonzero(~joins & ~(ended & rows.is_first)).tolist():
            self._check_break(rows, place, ended=bool(ended[place]))
        self._check_joined(rows, joins)
        self._chain.latest = self._row(rows, len(files) - 1, int(files[-1]))
        self._chain.is_fresh = False

    def _finish(self, chain: _Chain) -> None:
        latest = chain.latest
        left = list(chain.open.values()) + [latest] * (not latest.is_last)
        if left and not self._drops:
            raise OutputError(
                f"{left[0].at} (document {left[0].document[0]}): is the last of its document, and "
                "does not end it: rows are lost or out of order"
            )
        chain.latest = _Latest()

    def _same_document(self, rows: DocumentParts) -> _Bools:
        """Whether the row before is of the same document, if that goes on."""
        count = len(rows.rows)
        same = np.ones(count, np.bool_)
        same[0] = self._row(rows, 0).document == self._chain.latest.document
        names, codes = rows.names, rows.sources.indices.to_numpy()
        equal = pc.equal(names.slice(1), names.slice(0, count - 1))
        same[1:] = equal.to_numpy(zero_copy_only=False) & (codes[1:] == codes[:-1])
        return same

    def _check_documents(self, rows: DocumentParts, files: _Ints) -> None:
        """Without a shuffle, documents stand in the order of files and places."""
        if self._settings.shuffle != "none":
            return
        latest = self._chain.latest
        files_before = _shifted(files, latest.file)
        starts_before = _shifted(rows.starts, latest.start)
        rises = _rises(files_before, starts_before, files, rows.starts)
        refuse(
            rows.is_first & ~rises,
            lambda place: _failure(
                rows,
                place,
                f"begins at {rows.starts[place]} of {rows.sources[place]}, after a row from "
                f"{starts_before[place]} on{self._before(place)}",
            ),
        )

    def _check_break(self, rows: DocumentParts, place: int, *, ended: bool) -> None:
        """A row follows another document before its end, or goes on with none."""
        before = self._row(rows, place - 1) if place else self._chain.latest
        opened = self._chain.open
        if not ended:
            opened[before.document] = before
            allowed = _MOST_OPEN if self._settings.shuffle == "shard" else 0
            if len(opened) > allowed:
                raise _failure(
                    rows,
                    place,
                    f"follows document {before.document[0]}, which has not ended"
                    f"{self._before(place)}",
                )
        if rows.is_first[place]:
            return
        row = self._row(rows, place)
        earlier = opened.pop(row.document, None)
        position = int(rows.places[place])
        if self._settings.pack is not None and position:
            raise _failure(rows, place, f"goes on from id {position}, and not from 0")
        if earlier is not None:
            self._check_taken_up(rows, place, earlier)
        elif not (self._drops and self._may_lack_start(place)):
            what = "goes on" if self._settings.pack is not None else f"goes on with part {position}"
            raise _failure(rows, place, f"{what}, and what comes before it is not there")

    def _may_lack_start(self, place: int) -> bool:
        """Whether the last rows of another unit, which were left out, may be what is missing."""
        begins_unit = place == 0 and self._chain.is_fresh
        return self._settings.shuffle == "shard" or (
            self._settings.shuffle == "none" and begins_unit
        )

    def _check_taken_up(self, rows: DocumentParts, place: int, earlier: _Latest) -> None:
        start, part = int(rows.starts[place]), int(rows.places[place])
        falls = self._settings.pack is None and earlier.unit == self._chain.unit
        if start < earlier.start or (falls and part < earlier.end):
            raise _failure(
                rows,
                place,
                f"goes on at {start} with part {part}, and {earlier.at} at {earlier.start} with "
                f"part {earlier.end - 1}",
            )

    def _check_joined(self, rows: DocumentParts, joins: _Bools) -> None:
        """Rows go on where the row before ended."""
        latest = self._chain.latest
        ends = _shifted(rows.ends, latest.end)
        starts = _shifted(rows.starts, latest.start)
        in_unit = np.ones(len(joins), np.bool_)
        in_unit[0] = not self._chain.is_fresh
        wrong = rows.starts < starts
        if self._settings.pack is not None:
            wrong |= rows.places != np.where(in_unit, ends, 0)
            what = "goes on from id {} at {}, and the segment before it ends at {}, from {} on"
            shown = ends
        else:
            # Parts of a piece are counted; those of the next are higher, save in another unit.
            same_piece = rows.starts == starts
            wrong |= same_piece & (rows.places != ends)
            if self._settings.shuffle != "global":
                wrong |= in_unit & (rows.places < ends)
            what = "has part {} from {} on, and the row before it part {} from {} on"
            shown = ends - 1

        def failure(at: int) -> OutputError:
            found = what.format(rows.places[at], rows.starts[at], shown[at], starts[at])
            return _failure(rows, at, f"{found}{self._before(at)}")

        refuse(wrong & joins, failure)

    def _check_pieces(self, rows: DocumentParts, files: _Ints) -> None:
        """Pieces start at multiples of a row, and those of a row are in their own order."""
        refuse(
            rows.places % (self._settings.pack or 1) != 0,
            lambda place: _failure(rows, place, f"goes on from id {rows.places[place]}"),
        )
        if self._settings.shuffle != "none":
            return
        same_row = rows.rows[1:] == rows.rows[:-1]
        rises = _rises(files[:-1], rows.starts[:-1], files[1:], rows.starts[1:])
        refuse(
            same_row & ~rises,
            lambda place: _failure(
                rows,
                place + 1,
                f"is from {rows.starts[place + 1]} on, after a segment from "
                f"{rows.starts[place]} on",
            ),
        )

    def _row(self, rows: DocumentParts, place: int, file: int = -1) -> _Latest:
        return _Latest(
            (rows.names[place].as_py(), rows.sources[place].as_py()),
            int(rows.starts[place]),
            int(rows.ends[place]),
            file,
            self._chain.unit,
            bool(rows.is_last[place]),
            f"{rows.path}: row {rows.rows[place]}",
        )

    def _before(self, place: int) -> str:
        """Where the row before is, if that is another shard."""
        return "" if place or not self._chain.latest.at else f" ({self._chain.latest.at})"


def _failure(rows: DocumentParts, place: int, what: str) -> OutputError:
    return rows.failure(place, f"{what}: rows are lost or out of order")


def _rises(files_before: _Ints, starts_before: _Ints, files: _Ints, starts: _Ints) -> _Bools:
    """Whether a document comes after the one before, by file and place."""
    rises: _Bools = (files > files_before) | ((files == files_before) & (starts > starts_before))
    return rises


def _shifted(column: npt.NDArray[Any], before: Any) -> npt.NDArray[Any]:
    """Of each row, the value of the row before it."""
    return np.concatenate([[before], column[:-1]]).astype(column.dtype)
