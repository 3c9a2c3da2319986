"""The portable encoder: a pre-token's bytes are merged by rank, lowest first.

It equals `bpe.reference.naive`, which is the specification and the place to start.

Of the pairs that a pre-token holds, the one of the lowest rank is merged, leftmost first, until no
pair has a rank. Decoding is the concatenation of the tokens' bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.values import EncodingModel
from bpe.encoding.added_tokens import AddedSearch, Find, Segment
from bpe.encoding.missing_bytes import encodable_bytes
from bpe.errors import InputError

__all__ = ["ReferenceDecoder", "ReferenceEncoder", "merge_by_rank"]

_GONE = -1  # symbol of a position that its left neighbour has absorbed
_ENTRY_BYTES = 200  # of memory, for a remembered pre-token besides its bytes and ids
_ID_BYTES = 8


class ReferenceEncoder:
    """Documents to ids in plain Python; see `bpe.backends.protocol.Encoder`.

    cache_bytes: memory for the ids of pre-tokens seen before, roughly.
    """

    def __init__(self, model: EncodingModel, *, cache_bytes: int = 64 << 20) -> None:
        self._scheme = model.scheme
        self._tokens = model.tokens
        largest = max((*model.tokens, *(token.id for token in model.added_tokens)))
        self._value_type = pa.uint16() if largest < 1 << 16 else pa.uint32()
        self._merges = {
            (left, right): (rank, made) for rank, (left, right, made) in enumerate(model.merges)
        }
        ids = {token: token_id for token_id, token in model.tokens.items()}
        self._missing = encodable_bytes(model.tokens)
        self._byte_ids = [ids.get(bytes([value]), _GONE) for value in range(256)]
        self._whole = ids if model.whole_piece else {}
        self._search = AddedSearch(model.added_tokens)
        self._cache: dict[bytes, Sequence[int]] = {}
        self._cache_room = cache_bytes

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document; any bytes that have ids."""
        self._missing.check(data, "text")
        return np.array(self._encode(data, find), dtype=np.uint32)

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document (no nulls); values uint16 if the model's ids fit, else uint32.

        threads is for other implementations: this one holds Python's lock.
        """
        del threads
        self._missing.check_array(texts)
        offsets = array("q", (0,))
        ids = array("I")
        for text in texts:
            ids.extend(self._encode(text.as_py(), find))
            offsets.append(len(ids))
        values = pa.array(np.frombuffer(ids, dtype=np.uint32)).cast(self._value_type)
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)

    def cut(self, text: bytes, find: Find) -> list[Segment]:
        """Segments of a text, in order: ordinary text and added tokens."""
        return self._search.cut(text, find)

    def _encode(self, data: bytes, find: Find) -> array[int]:
        if Find.ADDED in find:
            ids = array("I")
            for start, end, token_id in self.cut(data, find):
                ids.extend(
                    self._encode_ordinary(data[start:end]) if token_id is None else (token_id,)
                )
            return ids
        return self._encode_ordinary(data)

    def _encode_ordinary(self, data: bytes) -> array[int]:
        ids = array("I")
        for word in self._scheme.split(data):
            known = self._cache.get(word)
            if known is None:
                known = self._encode_word(word)
                self._remember(word, known)
            ids.extend(known)
        return ids

    def _remember(self, word: bytes, ids: Sequence[int]) -> None:
        size = len(word) + _ID_BYTES * len(ids) + _ENTRY_BYTES
        if size <= self._cache_room:
            self._cache_room -= size
            self._cache[word] = ids

    def _encode_word(self, word: bytes) -> Sequence[int]:
        whole = self._whole.get(word)
        if whole is not None:
            return (whole,)
        return merge_by_rank([self._byte_ids[value] for value in word], self._merges)


def merge_by_rank(
    symbols: list[int], merges: Mapping[tuple[int, int], tuple[int, int]]
) -> list[int]:
    """Merge the pair of the lowest rank, leftmost first, until no pair has a rank.

    symbols: is used up. merges: pair of symbols to (rank, symbol that replaces it).
    """
    after = list(range(1, len(symbols) + 1))
    before = list(range(-1, len(symbols) - 1))
    candidates = [
        (merges[pair][0], position, pair)
        for position, pair in enumerate(pairwise(symbols))
        if pair in merges
    ]
    heapify(candidates)

    def consider(position: int, pair: tuple[int, int]) -> None:
        if pair in merges:
            heappush(candidates, (merges[pair][0], position, pair))

    while candidates:
        _, position, pair = heappop(candidates)
        absorbed = after[position]
        # The pair may be gone, as one of its halves was merged with another neighbour.
        if symbols[position] != pair[0] or absorbed == len(symbols):
            continue
        if symbols[absorbed] != pair[1]:
            continue
        made = merges[pair][1]
        symbols[position], symbols[absorbed] = made, _GONE
        following = after[position] = after[absorbed]
        if before[position] >= 0:
            consider(before[position], (symbols[before[position]], made))
        if following < len(symbols):
            before[following] = position
            consider(position, (made, symbols[following]))
    return [symbol for symbol in symbols if symbol != _GONE]


class ReferenceDecoder:
    """Ids to bytes in plain Python; see `bpe.backends.protocol.Decoder`.

    tokens: id to bytes, those of special tokens among them.
    """

    def __init__(self, tokens: Mapping[int, bytes]) -> None:
        self._tokens = tokens

    def decode(self, ids: npt.NDArray[Any]) -> bytes:
        """Bytes of the ids of a 1-d array."""
        return self._join(ids.tolist(), "ids")

    def decode_array(self, ids: pa.LargeListArray, *, threads: int = 1) -> pa.LargeBinaryArray:
        """Bytes of each list of ids; threads is for other implementations."""
        del threads
        rows = enumerate(ids.to_pylist())
        return pa.array([self._join(row, f"ids[{n}]") for n, row in rows], pa.large_binary())

    def _join(self, ids: list[int], place: str) -> bytes:
        try:
            return b"".join(map(self._tokens.__getitem__, ids))
        except KeyError:
            position = next(i for i, token_id in enumerate(ids) if token_id not in self._tokens)
            raise InputError(
                f"{place}[{position}] is {ids[position]}, which is no id of this vocabulary "
                f"({len(self._tokens)} ids, the largest is {max(self._tokens)})"
            ) from None
