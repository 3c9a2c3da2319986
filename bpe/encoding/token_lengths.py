"""How many bytes each token decodes to, for whole columns of ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.encoding.dense_ids import are_dense

__all__ = ["TokenLengths"]

_Ints = npt.NDArray[np.int64]


class TokenLengths:
    """Bytes of each id; an added token counts as its text.

    `lengths[ids]` gives an int64 array for an array of ids, and an int for one id: -1 for what is
    no id.

    tokens: bytes of every id.
    """

    def __init__(self, tokens: Mapping[int, bytes]) -> None:
        self._ids: _Ints | None = None
        # Whatever is no id is looked up in the last place.
        if are_dense(tokens):
            self._lengths = np.full(max(tokens) + 2, -1, np.int64)
            for token_id, data in tokens.items():
                self._lengths[token_id] = len(data)
            return
        ids = sorted(tokens)
        self._ids = np.array(ids, np.int64)
        self._lengths = np.array([*(len(tokens[each]) for each in ids), -1], np.int64)

    def __getitem__(self, ids: Any) -> Any:
        """Bytes of one id, or of each of an array; they are not negative."""
        if self._ids is None:
            return self._lengths.take(ids, mode="clip")
        places = np.searchsorted(self._ids, ids)
        found = self._ids.take(places, mode="clip") == ids
        return self._lengths.take(np.where(found, places, len(self._ids)))
