"""How many bytes each token decodes to, as a table for whole columns of ids."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from bpe.tokenizer import Tokenizer

__all__ = ["token_lengths"]

# One job has one tokenizer; the table of a large vocabulary takes tens of milliseconds.
_latest: tuple[str, npt.NDArray[np.int64]] | None = None
_lock = threading.Lock()


def token_lengths(tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    """Bytes of each id, -1 for one that no token has: int64, `max_id + 1` entries, not to write to.

    Added tokens count as their text.
    """
    global _latest  # noqa: PLW0603 - a cache
    with _lock:
        if _latest is None or _latest[0] != tokenizer.digest:
            _latest = (tokenizer.digest, _table(tokenizer))
        return _latest[1]


def _table(tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    lengths = np.full(tokenizer.max_id + 1, -1, np.int64)
    for token_id, data in tokenizer.model.all_tokens.items():
        lengths[token_id] = len(data)
    lengths.setflags(write=False)
    return lengths
