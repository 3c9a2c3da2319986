"""Ids as places of a table: where they are close together, and what is done where they are not.

An id may be anything up to 2^31 - 1, even in a vocabulary of 300 tokens. A table with a place for
each id up to the largest one is made only where that is little more than a place for each token.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.protocol import Encoder
from bpe.backends.values import EncodingModel
from bpe.encoding.added_tokens import Find, Segment

__all__ = ["SparseEncoder", "are_dense"]

_FREE_PLACES = 1 << 20
_MOST_PLACES = 1 << 24  # the native encoder keeps ids in 24 bits


def are_dense(ids: Collection[int]) -> bool:
    """Whether a table with a place for each id up to the largest one is small."""
    return max(ids, default=0) < min(_MOST_PLACES, 4 * len(ids) + _FREE_PLACES)


class SparseEncoder:
    """Encoder of a model whose ids are far apart; see `bpe.backends.protocol.Encoder`.

    Another encoder works with ids from 0 without gaps; here they are replaced by the model's.

    make_encoder: makes that encoder.
    """

    def __init__(
        self, model: EncodingModel, make_encoder: Callable[[EncodingModel], Encoder]
    ) -> None:
        ids = sorted({*model.tokens, *(token.id for token in model.added_tokens)})
        places = {token_id: place for place, token_id in enumerate(ids)}
        self._ids = np.array(ids, np.uint32)
        self._encoder = make_encoder(
            EncodingModel(
                {places[token_id]: data for token_id, data in model.tokens.items()},
                [(places[left], places[right], places[made]) for left, right, made in model.merges],
                model.whole_piece,
                model.scheme,
                tuple(replace(token, id=places[token.id]) for token in model.added_tokens),
            )
        )

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes."""
        return self._ids[self._encoder.encode(data, find)]

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document (no nulls), uint32."""
        encoded = self._encoder.encode_array(texts, threads=threads, find=find)
        ids = pa.array(self._ids).take(encoded.values)
        return pa.LargeListArray.from_arrays(encoded.offsets, ids)

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Segments of a text, in order: ordinary text and added tokens."""
        return [
            (start, end, None if place is None else int(self._ids[place]))
            for start, end, place in self._encoder.cut(text, find)
        ]
