"""Ids of words that are encoded once: for libraries that are slow, where words stand apart.

A text is cut at single blanks between two printable ASCII characters, or, where words are fields,
at every blank. The blanks have no ids.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.engines.library import Encoded

__all__ = ["WordCache", "cut_fields", "cut_words"]

_CUT = "([!-~]) ([!-~])"
# Stands at the cuts for a moment. A text that holds it is not cut.
_SIGN = "\x1e\x1f"
_MOST_BYTES = 64 << 20
_WORD_BYTES = 150  # of an entry beside its text and ids


class WordCache:
    """Encodes texts word by word, each distinct word once while memory lasts.

    Args:
        encode: gives the ids of texts.
        cut: into words, `cut_words` or `cut_fields`.
    """

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Encoded],
        cut: Callable[[pa.LargeStringArray], pa.LargeListArray],
    ) -> None:
        self._encode = encode
        self._cut = cut
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._ids: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._ends: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._bytes = 0

    def encode(self, texts: pa.LargeStringArray) -> Encoded:
        """Ids of each text, the same as when it is encoded as a whole."""
        parts = self._cut(texts)
        words = pc.dictionary_encode(parts.flatten())
        with self._lock:
            ids, lengths = self._find(words.dictionary.to_pylist(), words.indices.to_numpy())
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        borders = ends[parts.offsets.to_numpy() - parts.offsets[0].as_py()]
        return ids, np.diff(borders)

    def _find(self, words: list[str], places: npt.NDArray[np.int32]) -> Encoded:
        if self._bytes > _MOST_BYTES:
            self._forget()
        new = [word for word in words if word not in self._places]
        if new:
            self._add(new)
        rows = np.fromiter((self._places[word] for word in words), np.int64, len(words))
        row = rows[places]
        lengths = (self._ends[1:] - self._ends[:-1])[row]
        # Index of every id: where its word's ids start, and how far it is into them.
        before = np.cumsum(lengths) - lengths
        index = np.repeat(self._ends[row] - before, lengths) + np.arange(int(lengths.sum()))
        return self._ids[index], lengths

    def _add(self, words: list[str]) -> None:
        ids, lengths = self._encode(words)
        first = len(self._places)
        self._places.update(zip(words, range(first, first + len(words)), strict=True))
        self._ids = np.concatenate((self._ids, ids))
        self._ends = np.concatenate((self._ends, self._ends[-1] + np.cumsum(lengths)))
        self._bytes += sum(map(len, words)) + ids.nbytes + _WORD_BYTES * len(words)


def cut_fields(texts: pa.LargeStringArray) -> pa.LargeListArray:
    """What stands between the blanks of each text; nothing of an empty one."""
    fields = pc.split_pattern(texts, " ").cast(pa.large_list(pa.large_string()))
    nothing = pa.scalar([], fields.type)
    return pc.if_else(pc.equal(texts, ""), nothing, fields)


def cut_words(texts: pa.LargeStringArray) -> pa.LargeListArray:
    """Words of each text; of a text that holds the sign, the text."""
    marked = texts
    for _ in range(2):  # a word of one character stands between two blanks
        marked = pc.replace_substring_regex(marked, _CUT, rf"\1{_SIGN}\2")
    words = pc.split_pattern(marked, _SIGN).cast(pa.large_list(pa.large_string()))
    whole = pa.LargeListArray.from_arrays(pa.array(range(len(texts) + 1), pa.int64()), texts)
    return pc.if_else(pc.match_substring(texts, _SIGN[0]), whole, words)
