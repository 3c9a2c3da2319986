"""Counts of tokens by group of documents, and of the text that they stand for, batch by batch.

A group is a number: a language, say, or a source. Counts are exact whole numbers, so that their
sums over any division of a corpus are the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.errors import InputError
from bpe.insight.scripts import count_unspaced
from bpe.pretokenizing.schemes import get_scheme
from bpe.tokenizer import Tokenizer

__all__ = ["COUNTS", "MEASURES", "Tally", "TokenTally", "make_tally"]

COUNTS = ("group", "id", "count", "documents")
"""Columns of the counts: uint32 id, the others int64."""

MEASURES = ("documents", "bytes", "chars", "unspaced_chars", "words", "words_kept", "tokens")
"""Sums of a group: `words` are maximal runs without white space; one token covers each of
`words_kept` exactly, or it and one space before it. A byte of invalid UTF-8 is a character."""

_Ints = npt.NDArray[np.int64]


class Tally(Protocol):
    """Sums of one tokenizer's tokens; the native core and Python have one each."""

    @property
    def memory_bytes(self) -> int:
        """Memory of the counts of all groups."""

    def add(self, texts: Any, ids: Any, offsets: Any, groups: Any, begins: Any) -> None:
        """Add rows; see `bpe._native.TokenTally.add`."""

    def current_ids(self) -> Any:
        """The ids of the document that was added last, uint32, ascending."""

    def drain_counts(self) -> tuple[Any, ...]:
        """A column for each of `COUNTS`, ascending by group and id; empties them."""

    def drain_measures(self) -> tuple[Any, ...]:
        """Group, and a column for each of `MEASURES`, ascending by group; empties them."""


class _PythonTally:
    """The same in Python."""

    memory_bytes = 0

    def __init__(self, lengths: pa.Int64Array, *, spells: bool) -> None:
        self._lengths = lengths.to_numpy()
        self._spells = spells
        self._current: set[int] = set()
        self._counts: dict[int, Counter[int]] = {}
        self._documents: dict[int, Counter[int]] = {}
        self._measures: dict[int, _Ints] = {}
        self._whitespace = get_scheme("whitespace")

    def add(self, texts: Any, ids: Any, offsets: Any, groups: Any, begins: Any) -> None:
        """Add rows."""
        starts, values = offsets.to_numpy(), ids.to_numpy()
        for row, (text, group, begin) in enumerate(
            zip(texts.to_pylist(), groups.to_pylist(), begins.to_pylist(), strict=True)
        ):
            own = values[starts[row] : starts[row + 1]]
            if len(own) and own.max() >= len(self._lengths):
                raise InputError(f"id {own.max()} is none of the vocabulary")
            if begin:
                self._current = set()
            new = set(own.tolist()) - self._current
            self._current |= new
            self._counts.setdefault(group, Counter()).update(own.tolist())
            self._documents.setdefault(group, Counter()).update(new)
            sums = self._measures.setdefault(group, np.zeros(len(MEASURES), np.int64))
            sums += self._measure(text, own, documents=int(bool(begin)))

    def _measure(self, text: bytes, ids: npt.NDArray[Any], *, documents: int) -> _Ints:
        written = text.decode("utf-8", "surrogateescape")
        ends = np.cumsum(self._lengths[ids])
        tokens = set(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False))
        words = kept = place = 0
        for piece in self._whitespace.split(text):
            end = place + len(piece)
            if not _is_space(piece):
                words += 1
                spaced = place > 0 and text[place - 1 : place] == b" "
                covered = (place, end) in tokens or (spaced and (place - 1, end) in tokens)
                kept += self._spells and covered
            place = end
        figures = (len(text), len(written), count_unspaced(written), words, kept, len(ids))
        return np.array([documents, *figures], np.int64)

    def current_ids(self) -> Any:
        """The ids of the document that was added last."""
        return pa.array(sorted(self._current), pa.uint32())

    def drain_counts(self) -> tuple[Any, ...]:
        """The counts so far."""
        rows = [
            (group, token, count, self._documents[group][token])
            for group, counts in sorted(self._counts.items())
            for token, count in sorted(counts.items())
        ]
        self._counts, self._documents = {}, {}
        columns = list(zip(*rows, strict=True)) or [()] * len(COUNTS)
        types = (pa.int64(), pa.uint32(), pa.int64(), pa.int64())
        return tuple(pa.array(column, kind) for column, kind in zip(columns, types, strict=True))

    def drain_measures(self) -> tuple[Any, ...]:
        """The measures so far."""
        rows = [(group, *sums.tolist()) for group, sums in sorted(self._measures.items())]
        self._measures = {}
        columns = list(zip(*rows, strict=True)) or [()] * (1 + len(MEASURES))
        return tuple(pa.array(column, pa.int64()) for column in columns)


def _is_space(piece: bytes) -> bool:
    """Whether a piece of the scheme `whitespace` is one of white space."""
    text = piece.decode("utf-8", "surrogateescape")
    # What str.isspace takes besides White_Space are four control characters.
    return text[0].isspace() and text[0] not in "\x1c\x1d\x1e\x1f"


def make_tally(lengths: pa.Int64Array, *, spells: bool) -> Tally:
    """A tally of the backend in force.

    Args:
        lengths: int64, bytes of every id; 0 for a number that is none.
        spells: whether the ids of a text spell it byte for byte; if not, no word counts as kept.
    """
    if get_backend().name == "python":
        return _PythonTally(lengths, spells=spells)
    from bpe._native import TokenTally as NativeTally  # noqa: PLC0415 - may not be built

    return NativeTally(lengths, spells=spells)


class TokenTally:
    """Counts and measures of the documents of one tokenizer.

    Args:
        tokenizer: whose ids are counted.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        lengths = np.zeros(tokenizer.max_id + 1, np.int64)
        for token_id, data in tokenizer.model.all_tokens.items():
            lengths[token_id] = len(data)
        spells = tokenizer.reencodes and not tokenizer.lossy
        self._tally = make_tally(pa.array(lengths), spells=spells)

    @property
    def memory_bytes(self) -> int:
        """Memory of the counts."""
        return self._tally.memory_bytes

    def add(self, texts: pa.Array, ids: pa.LargeListArray, groups: _Ints, begins: _Ints) -> None:
        """Add documents, or parts of them.

        Args:
            texts: large_binary, the rows.
            ids: of each row.
            groups: int64, of each row.
            begins: int64, 0 where a row goes on with the document of the row before it, in this
                call or an earlier one.
        """
        self._tally.add(
            texts, ids.values, ids.offsets.cast(pa.int64()), pa.array(groups), pa.array(begins)
        )

    def current_ids(self) -> npt.NDArray[np.uint32]:
        """The ids of the document that was added last, ascending."""
        found: npt.NDArray[np.uint32] = pa.array(self._tally.current_ids()).to_numpy()
        return found

    def drain_counts(self) -> pa.Table:
        """The counts so far, with the columns `COUNTS`, and empty them."""
        return pa.table([pa.array(each) for each in self._tally.drain_counts()], names=list(COUNTS))

    def drain_measures(self) -> pa.Table:
        """The measures so far, with the columns `group` and `MEASURES`, and empty them."""
        columns = [pa.array(each) for each in self._tally.drain_measures()]
        return pa.table(columns, names=["group", *MEASURES])
