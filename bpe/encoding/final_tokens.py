"""Which tokens of an unfinished pre-token are final, whatever follows it.

The encoding of a prefix of it is the encoding of a shorter prefix and one more token, for merges
in an order where what makes a token's parts comes before what joins them. So whatever follows the
n bytes so far, the encoding of the whole has a last border p at or before n, its tokens up to p
are the encoding of the first p bytes, and p > n - L, L being the length of the longest token. A
border b that the encodings of all these prefixes share is a border of the whole, and the tokens
before it are final. It is one exactly if, for each p, the first token of the bytes from b to p is
a neighbour that the last token before b may have: encoding the bytes of the two gives the two.
How far back the nearest such border is has no proved bound (a few dozen bytes are usual), so it
is looked for ever farther back, and the bytes are kept as long as there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from bpe.encoding.dense_ids import are_dense

__all__ = ["FinalTokens"]

Merge = Callable[[bytes], npt.NDArray[np.uint32]]


class FinalTokens:
    """Finds final tokens of one vocabulary, whose merges are in such an order.

    tokens: id to bytes. merge: ids of a pre-token by merging alone. longest: bytes of the longest
    token.
    """

    def __init__(self, tokens: Mapping[int, bytes], merge: Merge) -> None:
        self._tokens = tokens
        self.merge = merge
        self._ids = np.array(sorted(tokens), np.uint32)
        self._sizes = np.array([len(tokens[token_id]) for token_id in sorted(tokens)], np.int32)
        self.longest = int(self._sizes.max())
        if are_dense(tokens):
            by_id = np.zeros(int(self._ids[-1]) + 1, np.int32)
            by_id[self._ids] = self._sizes
            self._ids, self._sizes = self._ids[:0], by_id

    def find(self, data: bytes) -> tuple[npt.NDArray[np.uint32], int]:
        """Final tokens at the front of `data`, before which there is a border, and their bytes."""
        ids = self.merge(data)
        places = np.searchsorted(self._ids, ids) if len(self._ids) else ids
        ends = np.cumsum(self._sizes[places], dtype=np.int64)
        distance = 2 * self.longest
        while distance < len(data):
            count = int(np.searchsorted(ends, len(data) - distance, side="right"))
            if count == 0:
                break
            border = int(ends[count - 1])
            if self.is_shared(data, border, int(ids[count - 1])):
                return ids[:count], border
            distance *= 2
        return ids[:0], 0

    def is_shared(self, data: bytes, border: int, before: int) -> bool:
        """Whether the encodings of all prefixes that may matter have this border.

        before: the token that ends at the border in the encoding of `data`, or of its first
        `border` bytes; at least `longest` bytes follow the border.
        """
        left = self._tokens[before]
        known: dict[int, bool] = {}
        for end in range(len(data) - self.longest + 1, len(data) + 1):
            after = int(self.merge(data[border:end])[0])
            if after not in known:
                both = self.merge(left + self._tokens[after])
                known[after] = both.tolist() == [before, after]
            if not known[after]:
                return False
        return True
