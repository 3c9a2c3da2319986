"""The text of a document, chunk by chunk, with special tokens in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.tokenizer import Tokenizer

__all__ = ["TextStream"]


class TextStream:
    """Ids of a document or of a stretch between two boundaries, as `Tokenizer.encode` has them.

    Args:
        tokenizer: one that streams.
        limit_bytes: most bytes to keep because their tokens depend on what follows.
        block_bytes: of text that are taken before ids are made of it.
        cuts_at_specials: whether special tokens are what their text means; then no chunk may end
            within one.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        limit_bytes: int,
        block_bytes: int,
        cuts_at_specials: bool,
    ) -> None:
        self._tokenizer = tokenizer
        self._sizes = {"limit_bytes": limit_bytes, "block_bytes": block_bytes}
        self._cuts_at_specials = cuts_at_specials and bool(tokenizer.special_tokens)
        self._stream = tokenizer.stream_encoder(**self._sizes)

    def feed(self, text: bytes) -> npt.NDArray[Any]:
        """The ids that are final now; `bpe.stream_encoder.StreamLimitError` beyond the limit."""
        if not self._cuts_at_specials:
            return self._stream.feed(text)
        found: list[npt.NDArray[Any]] = [np.zeros(0, np.uint32)]
        view = memoryview(text)
        for start, end, special_id in self._tokenizer.specials.split(text):
            if special_id is None:
                found.append(self._stream.feed(view[start:end]))
                continue
            # It ends a document, and another one begins behind it.
            found += [self._stream.finish(), np.array([special_id], np.uint32)]
            self._stream = self._tokenizer.stream_encoder(**self._sizes)
        return np.concatenate(found)

    def finish(self) -> npt.NDArray[Any]:
        """The ids of the rest; nothing may be fed afterwards."""
        return self._stream.finish()
