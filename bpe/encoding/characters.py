"""BPE over characters, done by merges over bytes: SentencePiece's kind, with byte fallback.

UTF-8 is prefix-free. So merges that assemble characters from their bytes, before all others, never
touch the bytes of another character. A character that is no token is assembled in part at most:
what its bytes became is taken apart again, and each has the token of its byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.backends.protocol import Encoder
from bpe.encoding.added_tokens import Find, Segment

__all__ = ["BLANK_SIGN", "CharacterEncoder", "assembled_characters"]

BLANK_SIGN = "\u2581"
"""SentencePiece writes a blank so."""

Merge = tuple[int, int, int]


def assembled_characters(
    tokens: Mapping[int, bytes], first_id: int
) -> tuple[dict[int, bytes], list[Merge]]:
    """Parts of characters, with ids from first_id on, and the merges that make the characters.

    tokens: id to bytes; all single bytes are among them, and characters.
    """
    ids = {data: token_id for token_id, data in tokens.items()}
    parts: dict[int, bytes] = {}
    merges: list[Merge] = []
    for character in sorted(filter(_is_character, tokens.values())):
        for size in range(2, len(character) + 1):
            whole = character[:size]
            is_known = whole in ids
            if not is_known:
                ids[whole] = first_id + len(parts)
                parts[ids[whole]] = whole
            if not is_known or size == len(character):
                merges.append((ids[whole[:-1]], ids[whole[-1:]], ids[whole]))
    return parts, merges


def _is_character(data: bytes) -> bool:
    if not 1 < len(data) <= 4:
        return False
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


class CharacterEncoder:
    """An encoder whose ids of parts of characters become those of their bytes.

    Args:
        encoder: of a model with the merges of `assembled_characters`.
        parts: id of each part, ascending from one id on, to its bytes.
        byte_ids: id of each byte value.
    """

    def __init__(
        self, encoder: Encoder, parts: Mapping[int, bytes], byte_ids: Sequence[int]
    ) -> None:
        self._encoder = encoder
        self._first = min(parts, default=2**32 - 1)
        rows = [[byte_ids[byte] for byte in parts[each]] for each in sorted(parts)]
        self._starts = np.cumsum([0, *map(len, rows)])
        self._bytes = np.array([each for row in rows for each in row], np.uint32)

    def encode(self, data: bytes, find: Find = Find.NOTHING) -> npt.NDArray[np.uint32]:
        """Ids of one document, see `Encoder`."""
        return self._take_apart(self._encoder.encode(data, find))[0]

    def encode_array(
        self, texts: pa.LargeBinaryArray, *, threads: int = 1, find: Find = Find.NOTHING
    ) -> pa.LargeListArray:
        """Ids of each document, see `Encoder`."""
        encoded = self._encoder.encode_array(texts, threads=threads, find=find)
        ids = encoded.values.to_numpy()
        found, ends = self._take_apart(ids)
        if found is ids:
            return encoded
        offsets = np.concatenate((np.zeros(1, np.int64), ends))[encoded.offsets.to_numpy()]
        return pa.LargeListArray.from_arrays(
            pa.array(offsets), pa.array(found, encoded.type.value_type)
        )

    def cut(self, data: bytes, find: Find) -> list[Segment]:
        """Added tokens and the text between them, see `Encoder`."""
        return self._encoder.cut(data, find)

    def _take_apart(self, ids: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Ids with those of bytes for parts, and how many there are up to each of `ids`."""
        places = np.flatnonzero(ids >= self._first)
        if not len(places):
            return ids, np.zeros(0, np.int64)
        parts = ids[places].astype(np.int64) - self._first
        sizes = np.ones(len(ids), np.int64)
        sizes[places] = self._starts[parts + 1] - self._starts[parts]
        ends = np.cumsum(sizes)
        apart = np.repeat(ids, sizes)
        sizes = sizes[places]
        before = np.cumsum(sizes) - sizes
        within = np.arange(int(sizes.sum())) - np.repeat(before, sizes)
        targets = np.repeat(ends[places] - sizes, sizes) + within
        apart[targets] = self._bytes[np.repeat(self._starts[parts], sizes) + within]
        return apart, ends
