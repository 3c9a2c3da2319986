"""Encode the pieces that a reader hands on, also those that stand for themselves only together.

Such a series of pieces goes through a stream (`bpe.encoding.stream_encoder`). What comes out are
pieces too: each has the text that its ids spell, so that places and sizes of rows stay true.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bpe.encoding.added_stream import AddedStream
from bpe.encoding.stream_encoder import StreamEncoder, StreamLimitError
from bpe.errors import BpeError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.corpus.plan import Unit
from pipelines.corpus.special_text import refuse_special_text
from pipelines.corpus.token_lengths import token_lengths
from schemas.documents import DOCUMENT_PIECES

__all__ = ["PieceEncoder"]

# Of text that a stream takes before it makes ids of it.
_BLOCK_BYTES = 1 << 20

_Encoded = tuple[pa.RecordBatch, pa.LargeListArray]


class PieceEncoder:
    """Encodes the pieces of one unit, batch after batch.

    Args:
        tokenizer: of the run; where it does not stream, there must be no pieces that go on.
        special_text: what the text of special tokens means: `text`, `allow` or `reject`.
        unit: that the pieces were read from.
        limit_bytes: most bytes that a stream may keep because their tokens depend on what follows.

    Attributes:
        streamed: how many series of pieces have gone through a stream.
    """

    def __init__(
        self, tokenizer: Tokenizer, special_text: str, unit: Unit, *, limit_bytes: int
    ) -> None:
        self._tokenizer = tokenizer
        self._special_text = special_text
        self._unit = unit
        self._limit = limit_bytes
        self._range: _Range | None = None
        self.streamed = 0

    def encode(self, pieces: pa.RecordBatch) -> Iterator[_Encoded]:
        """Pieces in reading order, each with its ids; not always those that came in.

        Args:
            pieces: `schemas.documents.DOCUMENT_PIECES`; the next batch of the unit.

        Raises:
            InputError: a special token in a document where the policy is to reject.
            SettingsError: a range whose tokens stay open for longer than the limit.
        """
        goes_on = pieces["goes_on"].to_numpy(zero_copy_only=False)
        row = 0
        while row < len(goes_on):
            if self._range is None and not goes_on[row]:
                end = int(np.argmax(goes_on[row:])) + row if goes_on[row:].any() else len(goes_on)
                whole = pieces.slice(row, end - row)
                yield whole, self._encode_whole(whole)
                row = end
                continue
            yield from self._stream(pieces.slice(row, 1), goes_on=bool(goes_on[row]))
            row += 1

    def _encode_whole(self, pieces: pa.RecordBatch) -> pa.LargeListArray:
        try:
            return self._tokenizer.encode_batch(pieces["text"], special_text=self._special_text)
        except BpeError as error:
            if self._special_text == "reject":
                refuse_special_text(self._tokenizer.first_special, pieces, self._unit)
            raise type(error)(f"{_place(pieces)}: {error}") from error

    def _stream(self, piece: pa.RecordBatch, *, goes_on: bool) -> Iterator[_Encoded]:
        if self._special_text == "reject":
            refuse_special_text(self._tokenizer.first_special, piece, self._unit)
        if self._range is None:
            stream = self._tokenizer.stream_encoder(
                special_text=self._special_text,
                limit_bytes=self._limit,
                block_bytes=_block_bytes(self._limit),
            )
            self._range = _Range(self._tokenizer, piece, stream)
            self.streamed += 1
        try:
            encoded = self._range.feed(piece, ends=not goes_on)
        except StreamLimitError as error:
            raise SettingsError(
                f"--max-row-bytes={self._limit} is too small for {_place(piece)}: from byte "
                f"{self._range.byte_start} on, the text has more bytes than that "
                f"{error.reason}; raise the limit, or divide the text with --document-separator"
            ) from error
        if not goes_on:
            self._range = None
        if encoded is not None:
            yield encoded


def _block_bytes(limit: int) -> int:
    """So much less than the limit that what waits for more text stays below it.

    A stream keeps up to two blocks, and the few bytes whose tokens are not final.
    """
    return _BLOCK_BYTES if limit >= 2 * _BLOCK_BYTES else max(1, limit // 4)


class _Range:
    """A range of a document that comes in several pieces, from one boundary to another.

    Attributes:
        byte_start: place in the file of the first byte without ids.
    """

    def __init__(
        self, tokenizer: Tokenizer, piece: pa.RecordBatch, stream: StreamEncoder | AddedStream
    ) -> None:
        self.byte_start: int = piece["byte_start"][0].as_py()
        self._tokenizer = tokenizer
        self._lengths = token_lengths(tokenizer)
        self._stream = stream
        self._is_first: bool = piece["is_first"][0].as_py()
        self._text = b""  # without ids so far

    def feed(self, piece: pa.RecordBatch, *, ends: bool) -> _Encoded | None:
        """The text that has ids now, as a piece; None if that is none and nothing begins or ends.

        Args:
            piece: one row, the next of the range.
            ends: whether it is the last one.
        """
        text: bytes = piece["text"][0].as_py()
        found = [self._stream.feed(text)]
        if ends:
            found.append(self._stream.finish())
        ids = np.concatenate(found)
        self._text += text
        size = int(self._lengths[ids].sum())
        is_last: bool = piece["is_last"][0].as_py()
        if not len(ids) and not is_last:
            return None
        columns = {
            "text": pa.array([self._text[:size]], pa.large_binary()),
            **{name: piece[name] for name in ("document_id", "source", "part")},
            "byte_start": pa.array([self.byte_start], pa.int64()),
            "is_first": pa.array([self._is_first]),
            "is_last": pa.array([is_last]),
            "goes_on": pa.array([not ends]),
        }
        arrays = [columns[name] for name in DOCUMENT_PIECES.names]
        self._text = self._text[size:]
        self.byte_start += size
        self._is_first = False
        values = pa.array(ids).cast(self._tokenizer.id_type)
        lists = pa.LargeListArray.from_arrays(pa.array([0, len(ids)], pa.int64()), values)
        return pa.RecordBatch.from_arrays(arrays, schema=DOCUMENT_PIECES), lists


def _place(pieces: pa.RecordBatch) -> str:
    first, last = pieces["document_id"][0], pieces["document_id"][-1]
    names = f"document {first}" if first == last else f"documents {first} to {last}"
    return f"{pieces['source'][0]}, {names}"
