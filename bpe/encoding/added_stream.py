"""Documents that arrive in chunks and hold added tokens.

What has arrived is divided at a place that no match spans, whether it counts or not: the search of
the document is then that of the two parts. Ordinary text goes on to `bpe.encoding.stream_encoder`,
a new stream after each token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from bpe.encoding.added_tokens import AddedSearch, Find
from bpe.encoding.stream_encoder import StreamEncoder, StreamLimitError
from bpe.errors import InputError

__all__ = ["AddedStream"]

_Ids = npt.NDArray[np.uint32]


class AddedStream:
    """Ids of one document, chunk by chunk: all of `feed`'s, then `finish`'s, are its encoding.

    search, find: what to look for; no token that counts may look around (`AddedToken`).
    encode: ids of texts, one after another, without any search.
    make_stream: what encodes ordinary text that comes in chunks.
    limit_bytes, block_bytes: as for `StreamEncoder`.
    Not for several threads at once.
    """

    def __init__(
        self,
        search: AddedSearch,
        find: Find,
        encode: Callable[[Sequence[bytes]], Sequence[_Ids]],
        make_stream: Callable[[], StreamEncoder],
        *,
        limit_bytes: int,
        block_bytes: int,
    ) -> None:
        self._search = search
        self._find = find
        self._encode = encode
        self._make_stream = make_stream
        self._stream = make_stream()
        self._limit = limit_bytes
        self._block = block_bytes + 3 * search.longest
        self._next_try = self._block
        self._pending = bytearray()
        self._position = 0  # of the first pending byte in the document
        self._stream_start = 0  # of the stream at hand
        self._finished = False

    def feed(self, data: bytes | memoryview) -> _Ids:
        """Take more bytes; returns the ids that became final, uint32.

        Raises `StreamLimitError`, an `InputError`, where more than limit_bytes would have to be
        kept.
        """
        self._refuse_finished()
        found = [np.zeros(0, np.uint32)]
        view = memoryview(data)
        for start in range(0, len(view), self._block):
            self._pending += view[start : start + self._block]
            if len(self._pending) < self._next_try:
                continue
            text = bytes(self._pending)
            end = self._search.last_border(text, self._find)
            found.append(self._take(text[:end]))
            del self._pending[:end]
            kept = len(self._pending)
            if kept > max(self._limit, self._block):
                error = StreamLimitError(
                    f"at byte {self._position} of the document begin more than {self._limit} bytes "
                    "in which added tokens lie across each other; raise limit_bytes"
                )
                error.position = self._position
                error.reason = "in which added tokens lie across each other"
                raise error
            # A try takes time in proportion to the bytes, so after one in vain they have to double.
            self._next_try = kept + (self._block if end else kept)
        return np.concatenate(found)

    def finish(self) -> _Ids:
        """End the document; returns the ids that were still open, uint32."""
        self._refuse_finished()
        self._finished = True
        ids = self._take(bytes(self._pending))
        self._pending.clear()
        return np.concatenate([ids, self._stream.finish()])

    def _take(self, text: bytes) -> _Ids:
        """Ids of a text that ends at a border, as far as they are final."""
        segments = self._search.cut(text, self._find)
        tokens = [place for place, segment in enumerate(segments) if segment[2] is not None]
        if not tokens:
            return self._feed(text)
        first, last = segments[tokens[0]], segments[tokens[-1]]
        inner = segments[tokens[0] : tokens[-1] + 1]
        encoded = iter(self._encode([text[start:end] for start, end, i in inner if i is None]))
        parts = [
            self._feed(text[: first[0]]),
            self._stream.finish(),
            *(next(encoded) if i is None else np.array([i], np.uint32) for _, _, i in inner),
        ]
        self._stream = self._make_stream()
        self._stream_start = self._position = self._position + last[1] - first[0]
        parts.append(self._feed(text[last[1] :]))
        return np.concatenate(parts)

    def _feed(self, text: bytes) -> _Ids:
        try:
            ids = self._stream.feed(text)
        except StreamLimitError as error:
            moved = StreamLimitError(
                f"in the segment from byte {self._stream_start} of the document, {error}"
            )
            moved.position = self._stream_start + error.position
            moved.reason = error.reason
            raise moved from error
        self._position += len(text)
        return ids

    def _refuse_finished(self) -> None:
        if self._finished:
            raise InputError("this document is finished: take a new stream encoder for another one")
