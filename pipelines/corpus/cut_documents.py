"""Cuts one long document into pieces that stand for themselves, whoever reads which part of it.

Marks lie at multiples of `range_bytes` from the document's start, and the piece of a mark goes
from the first certain cut (`bpe.pretokenizing.cut_points`) after it to the first certain cut after
the next. A mark without a cut of its own has no piece; the one before goes on. Since a certain cut
depends on the bytes from the mark on alone, a reader that starts at a mark finds the same cuts as
one that comes from the document's start.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from bpe.backends.process_memory import join_large
from bpe.errors import BadFileError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder

__all__ = ["LOOK_BYTES", "Piece", "cut_pieces"]

# A cut further than this after a mark does not depend on the mark: what a certain cut looks at is
# two characters and the special tokens around it, and no special token is nearly as long.
LOOK_BYTES = 1 << 16
# A range is divided where so much of it shows no cut: more than the characters at its end, which
# may yet turn out to have a cut between them.
_LEAST_BYTES = 16


@dataclass(frozen=True)
class Piece:
    """A range of a document.

    Attributes:
        start: position in the file, bytes.
        text: the bytes; mostly a view of what was read, which nothing changes later.
        part: number of the mark that it belongs to, counted from the document's start.
        is_last: whether the document ends here.
        goes_on: whether it stands for itself only together with the next one.
    """

    start: int
    text: memoryview
    part: int
    is_last: bool
    goes_on: bool = False


def cut_pieces(
    read: Callable[[int], bytes | memoryview],
    finder: CutFinder,
    *,
    name: str,
    document_start: int,
    start: int,
    stop: int | None,
    range_bytes: int,
    max_bytes: int,
) -> Iterator[Piece]:
    """Pieces of the marks from `start` up to, not including, `stop`.

    Args:
        read: gives the next bytes of the document, from `start` on; fewer than asked for only at
            its end.
        finder: where the document may be cut.
        name: of the file, for messages.
        document_start: position of the document in the file, bytes.
        start: position of a mark, bytes.
        stop: position of a later mark, or None for the document's end.
        range_bytes: distance of the marks.
        max_bytes: the longest range to hold in memory; twice range_bytes are in any case, if the
            scheme allows cuts. Without effect where ranges may be streamed: these come in pieces of
            twice range_bytes.

    Raises:
        BadFileError: the scheme allows no cuts, and the document is longer than `max_bytes`.
        SettingsError: a range that cannot be divided is longer than `max_bytes`.
    """
    if start > document_start and not finder.can_cut:
        return iter(())
    cutter = _Cutter(
        read,
        finder,
        name=name,
        document_start=document_start,
        start=start,
        range_bytes=range_bytes,
        max_bytes=max_bytes,
    )
    return cutter.pieces(stop)


class _Cutter:
    """The bytes in hand and the marks around them; positions are those of the file."""

    def __init__(
        self,
        read: Callable[[int], bytes | memoryview],
        finder: CutFinder,
        *,
        name: str,
        document_start: int,
        start: int,
        range_bytes: int,
        max_bytes: int,
    ) -> None:
        self._read = read
        self._finder = finder
        self._name = name
        self._document_start = document_start
        self._range_bytes = range_bytes
        self._max_bytes = max_bytes
        self._data = memoryview(b"")
        self._base = start
        self._at_end = False
        # The mark whose piece is being looked for.
        self._part = (start - document_start) // range_bytes

    def pieces(self, stop: int | None) -> Iterator[Piece]:
        """All pieces of the marks before `stop`."""
        if self._part == 0:
            start: int | None = self._document_start
        else:
            start = self._first_start(stop)
        while start is not None:
            mark = self._position(self._part + 1)
            cut = yield from self._range(start, mark)
            start = None if cut is None else self._go_to(cut, self._part + 1, stop)

    def _first_start(self, stop: int | None) -> int | None:
        """Where the first piece of these marks starts; None if none does."""
        while stop is None or self._position(self._part) < stop:
            mark = self._position(self._part)
            window = mark + self._range_bytes + LOOK_BYTES
            self._fill(window)
            cut = self._first_cut(mark, window)
            if cut is not None:
                return self._go_to(cut, self._part, stop)
            if self._ends_before(window):
                return None
            self._part += 1
            self._drop_before(self._position(self._part))
        return None

    def _range(self, start: int, mark: int) -> Generator[Piece, None, int | None]:
        """The pieces from `start` to the first certain cut after `mark`; returns that cut.

        Mostly one; none if `start` is that cut; more where the range is longer than twice
        range_bytes and has to be divided at borders of pre-tokens. At the document's end there is
        no cut.
        """
        streams = self._finder.streams
        shortest = self._max_bytes
        if self._finder.can_cut or streams:
            shortest = max(2 * self._range_bytes, _LEAST_BYTES)
        limit = shortest
        is_open = False
        search = mark
        while True:
            window = start + limit
            self._fill(min(window, mark + LOOK_BYTES))
            cut = self._first_cut(search, window)
            if cut is None:
                # One byte more tells whether the document ends with the window.
                searched = min(window, self._base + len(self._data)) - LOOK_BYTES
                self._fill(window + 1)
                cut = self._first_cut(max(search, searched), window)
            if cut is not None and cut < start:
                raise RuntimeError(f"a cut at byte {cut} was missed before {start}")
            if cut is not None or self._ends_before(window):
                if cut != start or is_open:
                    yield self._piece(start, cut)
                return cut
            search = max(search, window - LOOK_BYTES)
            # A piece that goes on has no end of a pre-token to look from.
            end = None if is_open else self._last_safe_boundary(start, window)
            if end is None and streams:
                end = start + self._finder.streamed_cut(bytes(self._bytes(start, window)))
                is_open = is_open or end > start
            if end is None or end == start:
                limit = self._longer(limit, start)
                continue
            yield self._piece(start, end, goes_on=is_open)
            start = end
            limit = shortest
            self._drop_before(min(start, search))

    def _last_safe_boundary(self, start: int, window: int) -> int | None:
        """A late safe boundary between a boundary and the end of a window."""
        found = self._finder.late_safe_boundary(self._bytes(start, window))
        return None if found is None else start + found

    def _go_to(self, cut: int, part: int, stop: int | None) -> int | None:
        """Make the mark `part`, whose piece starts at `cut`, the current one; None after `stop`.

        Marks further before the cut than it looks have no other cut of their own.
        """
        self._part = max(part, (cut - LOOK_BYTES - self._document_start) // self._range_bytes)
        self._drop_before(cut)
        if stop is not None and self._position(self._part) >= stop:
            return None
        return cut

    def _position(self, part: int) -> int:
        return self._document_start + part * self._range_bytes

    def _piece(self, start: int, end: int | None, *, goes_on: bool = False) -> Piece:
        text = self._bytes(start, self._base + len(self._data) if end is None else end)
        if 2 * len(text) < len(self._data):
            # A view would keep all of what was read in memory, for as long as the little is there.
            text = memoryview(bytes(text))
        return Piece(start, text, self._part, is_last=end is None, goes_on=goes_on)

    def _bytes(self, start: int, end: int) -> memoryview:
        return self._data[start - self._base : end - self._base]

    def _first_cut(self, search: int, window: int) -> int | None:
        """First certain cut after `search`, judged by the bytes up to `window` and no others."""
        final = self._ends_before(window)
        data = self._data[: window - self._base]
        cut = self._finder.first_cut(data, search - self._base, final=final)
        return None if cut is None else self._base + cut

    def _ends_before(self, position: int) -> bool:
        """Whether the document is known to end at or before a position."""
        return self._at_end and self._base + len(self._data) <= position

    def _fill(self, end: int) -> None:
        """Have the bytes up to `end`, or all that there are."""
        missing = end - self._base - len(self._data)
        if missing > 0 and not self._at_end:
            more = memoryview(self._read(missing))
            self._at_end = len(more) < missing
            self._data = join_large([self._data, more]) if len(self._data) else more

    def _drop_before(self, position: int) -> None:
        """Forget what is not needed any more; marks close before a cut look at what precedes it."""
        unused = position - LOOK_BYTES - self._base
        if unused > 0:
            # A copy of the little that is left: a view would keep all of it in memory.
            self._data = memoryview(bytes(self._data[unused:]))
            self._base += unused

    def _longer(self, limit: int, start: int) -> int:
        """The next limit of an undivided range."""
        if limit < self._max_bytes:
            return min(2 * limit, self._max_bytes)
        if not self._finder.can_cut:
            raise BadFileError(
                f"{self._name}: the document at byte {start} is longer than "
                f"--max-row-bytes={self._max_bytes}, and this pre-tokenizer allows no cuts in it; "
                f"raise the limit, or divide the text with --document-separator"
            )
        raise SettingsError(
            f"--max-row-bytes={self._max_bytes} is too small for {self._name}: from byte {start} "
            f"on, the text is a single pre-token, or special tokens in an unbroken row, of more "
            f"bytes than that; raise the limit, or divide the text with --document-separator"
        )
