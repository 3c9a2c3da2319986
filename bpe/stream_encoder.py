"""Documents that arrive in chunks, and need not fit into memory.

A document of a scheme with certain cuts (`bpe.cut_points`) is encoded up to the last cut that its
bytes so far show. A raw document (`none`) is one pre-token; how its tokens become final:

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

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bpe.cut_points import CutFinder
from bpe.errors import InputError, SettingsError
from bpe.schemes import Scheme

__all__ = ["StreamEncoder", "are_in_merge_order"]

Encode = Callable[[bytes], npt.NDArray[np.uint32]]

_BLOCK_BYTES = 1 << 20
_CUT_WINDOW_BYTES = 256


class StreamEncoder:
    """Ids of one document, chunk by chunk: all of `feed`'s, then `finish`'s, are its encoding.

    encode: ids of a whole document. merge: ids by merging alone, without a look at whole
        pre-tokens; None where merges have no order that lets tokens become final early.
    limit_bytes: `InputError` when more bytes have to be kept. block_bytes: work is done when so
        many are there.
    Not for several threads at once.
    """

    def __init__(
        self,
        scheme: Scheme,
        tokens: Mapping[int, bytes],
        encode: Encode,
        merge: Encode | None,
        *,
        limit_bytes: int = 256 << 20,
        block_bytes: int = _BLOCK_BYTES,
    ) -> None:
        if limit_bytes < 1 or block_bytes < 1:
            raise SettingsError(
                f"limit_bytes is {limit_bytes}, block_bytes {block_bytes}: both must be at least 1"
            )
        self._scheme = scheme
        self._tokens = tokens
        self._encode = encode
        self._merge = merge if not scheme.pattern else None
        self._cuts = CutFinder(scheme)
        self._ids = np.array(sorted(tokens), np.uint32)
        self._sizes = np.array([len(tokens[token_id]) for token_id in sorted(tokens)], np.int64)
        self._longest = int(self._sizes.max())
        self._limit = limit_bytes
        self._block = max(block_bytes, self._longest + 1)
        self._pending = bytearray()
        self._position = 0  # of the first pending byte in the document
        self._next_try = self._block
        self._finished = False

    def feed(self, data: bytes) -> npt.NDArray[np.uint32]:
        """Take more bytes; returns the ids that became final, uint32.

        Raises `InputError` where more than limit_bytes would have to be kept.
        """
        self._refuse_finished()
        found = [np.zeros(0, np.uint32)]
        view = memoryview(data)
        # By blocks, so that a large chunk is not kept as a whole.
        for start in range(0, len(view), self._block):
            self._pending += view[start : start + self._block]
            while len(self._pending) >= self._next_try:
                found.append(self._advance())
            if len(self._pending) > self._limit:
                raise InputError(self._describe_limit())
        return np.concatenate(found)

    def finish(self) -> npt.NDArray[np.uint32]:
        """End the document; returns the ids that were still open, uint32."""
        self._refuse_finished()
        self._finished = True
        rest = bytes(self._pending)
        self._pending.clear()
        if self._merge is not None and self._position:
            return self._merge(rest)
        return self._encode(rest)

    def _advance(self) -> npt.NDArray[np.uint32]:
        """Make what can be made final so; sets how many bytes are worth another try."""
        data = bytes(self._pending)
        if self._merge is not None:
            ids, end = self._final_tokens(data, self._merge)
        else:
            end = self._last_cut(data)
            ids = self._encode(data[:end]) if end else np.zeros(0, np.uint32)
        del self._pending[:end]
        self._position += end
        # A try takes time in proportion to the bytes, so after one in vain they have to double.
        self._next_try = self._block if end else 2 * len(self._pending)
        if end:
            self._next_try += len(self._pending)
        return ids

    def _last_cut(self, data: bytes) -> int:
        """Last place that bounds a pre-token whatever follows; 0 if there is none."""
        if not self._cuts.can_cut:
            return 0
        window = _CUT_WINDOW_BYTES
        while True:
            start = max(0, len(data) - window)
            last, cut = 0, self._cuts.first_cut(data, start, final=False)
            while cut is not None:
                last, cut = cut, self._cuts.first_cut(data, cut, final=False)
            if last:
                return last
            if start == 0:
                return self._cuts.last_safe_boundary(data) or 0
            window *= 8

    def _final_tokens(self, data: bytes, merge: Encode) -> tuple[npt.NDArray[np.uint32], int]:
        """Tokens at the front of a raw document's rest that are final, and the bytes they spell."""
        ids = merge(data)
        ends = np.cumsum(self._sizes[np.searchsorted(self._ids, ids)])
        distance = 2 * self._longest
        while distance < len(data):
            count = int(np.searchsorted(ends, len(data) - distance, side="right"))
            if count == 0:
                break
            border = int(ends[count - 1])
            if self._is_shared(data, border, int(ids[count - 1]), merge):
                return ids[:count], border
            distance *= 2
        return ids[:0], 0

    def _is_shared(self, data: bytes, border: int, before: int, merge: Encode) -> bool:
        """Whether the encodings of all prefixes that may matter have this border.

        before: the token that ends at the border in the encoding of `data`, and so in that of
        its first `border` bytes.
        """
        left = self._tokens[before]
        known: dict[int, bool] = {}
        for end in range(len(data) - self._longest + 1, len(data) + 1):
            after = int(merge(data[border:end])[0])
            if after not in known:
                both = merge(left + self._tokens[after])
                known[after] = both.tolist() == [before, after]
            if not known[after]:
                return False
        return True

    def _describe_limit(self) -> str:
        where = f"at byte {self._position} of the document begin more than {self._limit} bytes"
        if self._scheme.pattern and self._cuts.can_cut:
            reason = "that may be one pre-token"
        elif self._scheme.pattern:
            reason = "of a document that a pattern of the user's does not let be cut"
        elif self._merge is None:
            reason = "whose tokens are open: this vocabulary's merges are not in a usable order"
        else:
            reason = "whose tokens depend on what follows"
        return f"{where} {reason}; raise limit_bytes, or cut the document where that does no harm"

    def _refuse_finished(self) -> None:
        if self._finished:
            raise InputError("this document is finished: take a new stream encoder for another one")


def are_in_merge_order(merges: Sequence[tuple[int, int, int]]) -> bool:
    """Whether every merge comes after all merges that make its parts."""
    last = {made: rank for rank, (_, _, made) in enumerate(merges)}
    return all(
        last.get(left, -1) < rank and last.get(right, -1) < rank
        for rank, (left, right, _) in enumerate(merges)
    )
