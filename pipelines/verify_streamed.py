"""Encode the rows of a document again, in order, where they stand for themselves only together.

A document that was encoded as a stream (`pipelines.encode_pieces`), is longer than
`--max-row-tokens` or was packed, is cut into rows anywhere between two ids, also within a
pre-token. The ids of all its rows together are still those of its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.errors import OutputError
from bpe.stream_encoder import StreamLimitError
from bpe.tokenizer import Tokenizer
from pipelines.text_stream import TextStream

__all__ = ["DocumentRows", "StoredRow"]

_BLOCK_BYTES = 1 << 16
# Kept in any case, however little encoding was allowed to.
_LEAST_LIMIT_BYTES = 4 << 20


@dataclass(frozen=True)
class StoredRow:
    """A row of a document of several rows, or a segment of such a document in a packed row.

    Attributes:
        place: shard and row, for messages.
        document_id: of its document.
        part: 0 if the row does not go on where the one before it ended.
        ids: without BOS and EOS; uint32.
        is_last: whether the document ends here.
        is_boundary: whether what comes before the row is known not to change its ids.
    """

    place: str
    document_id: str
    part: int
    ids: npt.NDArray[np.uint32]
    is_last: bool
    is_boundary: bool


class _HeldText:
    """In place of `TextStream`, for a tokenizer that needs the whole text."""

    def __init__(self, tokenizer: Tokenizer, limit_bytes: int, policy: str) -> None:
        self._tokenizer = tokenizer
        self._limit = limit_bytes
        self._policy = policy
        self._texts: list[bytes] = []
        self._size = 0

    def feed(self, text: bytes) -> npt.NDArray[Any]:
        """No ids; `StreamLimitError` beyond the limit."""
        self._texts.append(text)
        self._size += len(text)
        if self._size > self._limit:
            raise StreamLimitError(f"a document of more than {self._limit} bytes is not held")
        return np.zeros(0, np.uint32)

    def finish(self) -> npt.NDArray[Any]:
        """All ids."""
        return self._tokenizer.encode(b"".join(self._texts), special_text=self._policy)


@dataclass
class _Open:
    """A document of which rows have come, and its last one has not."""

    document_id: str
    stream: TextStream | _HeldText
    # Rows whose ids have not all been made again, with how many are missing, and these ids.
    missing: list[tuple[str, int]] = field(default_factory=list)
    ids: list[npt.NDArray[Any]] = field(default_factory=list)


class DocumentRows:
    """Follows documents over the rows of shards.

    Args:
        tokenizer: that made the ids; where it does not stream, documents are held in memory.
        limit_bytes: of the run, see `TextStream`; also most bytes of a document that is held.
        special_text: of the run.
        follows: whether all rows come, so that each can be encoded behind those before it; else
            each is encoded alone, which may give other ids.
        ends_at_boundary: whether the rows of a document stand together, so that where others come
            before its end, a unit of the plan ends, and a boundary is there.

    Attributes:
        checked: rows whose ids were made again and are the same.
        passed: rows of which that cannot be said: alone, they have other ids.
        documents: that ended, and of which all ids that came are the same.
        passed_ids: in rows that were passed; not those of a row that were made again.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        limit_bytes: int,
        special_text: str,
        follows: bool,
        ends_at_boundary: bool,
    ) -> None:
        self.checked = 0
        self.passed = 0
        self.documents = 0
        self.passed_ids = 0
        self._tokenizer = tokenizer
        self._limit = limit_bytes
        self._policy = "allow" if special_text == "allow" else "text"
        self._follows = follows
        self._ends_at_boundary = ends_at_boundary
        self._open: _Open | None = None

    def add(self, row: StoredRow) -> None:
        """Take the next row.

        Raises:
            OutputError: ids that were stored differ from those of the text; names the row.
        """
        document = self._open
        if row.part == 0 or document is None or not _goes_on(document, row):
            self.close()
            document = self._start(row)
        text = self._tokenizer.decode(row.ids)
        if document is None:
            again = self._tokenizer.encode(text, special_text=self._policy)
            is_same = np.array_equal(again, row.ids)
            self.checked += is_same
            self.passed += not is_same
            self.passed_ids += 0 if is_same else len(row.ids)
            return
        document.missing.append((row.place, len(row.ids)))
        document.ids.append(row.ids)
        try:
            self._compare(document, document.stream.feed(text))
        except StreamLimitError:
            self._drop()
            return
        if row.is_last and self._finish(document):
            self.documents += 1

    def close(self) -> None:
        """End the document at hand, of which no more rows come.

        Raises:
            OutputError: as for `add`.
        """
        if self._open is not None and self._ends_at_boundary:
            self._finish(self._open)
        self._drop()

    def _finish(self, document: _Open) -> bool:
        """Returns whether all ids were made again."""
        try:
            self._compare(document, document.stream.finish(), ends=True)
        except StreamLimitError:
            self._drop()
            return False
        self._open = None
        return True

    def _drop(self) -> None:
        if self._open is not None:
            self.passed += len(self._open.missing)
            self.passed_ids += sum(count for _, count in self._open.missing)
        self._open = None

    def _start(self, row: StoredRow) -> _Open | None:
        if not (row.is_boundary and self._follows):
            return None
        limit = max(self._limit, _LEAST_LIMIT_BYTES)
        stream: TextStream | _HeldText = (
            TextStream(
                self._tokenizer,
                limit_bytes=limit,
                block_bytes=_BLOCK_BYTES,
                cuts_at_specials=self._policy == "allow",
            )
            if self._tokenizer.streams
            else _HeldText(self._tokenizer, limit, self._policy)
        )
        self._open = _Open(row.document_id, stream)
        return self._open

    def _compare(self, document: _Open, again: npt.NDArray[Any], *, ends: bool = False) -> None:
        """Take ids that were made again off the stored ones."""
        if not (ends or len(again)):
            return
        stored = np.concatenate(document.ids)
        start, place = 0, document.missing[0][0] if document.missing else ""
        while document.missing and (ends or start < len(again)):
            place, count = document.missing[0]
            taken = count if ends else min(count, len(again) - start)
            if not np.array_equal(stored[start : start + taken], again[start : start + taken]):
                raise _failure(place, document.document_id)
            start += taken
            if taken < count:
                document.missing[0] = (place, count - taken)
                break
            del document.missing[0]
            self.checked += 1
        if start < len(again):
            raise _failure(place, document.document_id)
        document.ids = [stored[start:]]


def _failure(place: str, document_id: str) -> OutputError:
    return OutputError(
        f"{place} ({document_id}): encoding the text of its document again gives other ids than "
        "those that are stored"
    )


def _goes_on(document: _Open, row: StoredRow) -> bool:
    # That parts rise is known by `pipelines.verify_order`, as is where they need not.
    return row.part != 0 and row.document_id == document.document_id
