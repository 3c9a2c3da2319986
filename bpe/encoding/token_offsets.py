r"""Where each token of an encoded text comes from, in bytes and in characters.

A token may begin or end inside a character: `é` is two bytes, and may be two tokens. Byte offsets
are exact. Character offsets name every character that the token holds a byte of, so that both
tokens of a split `é` have its place, and neighbouring tokens may overlap by one character.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe.pretokenizing.utf8_text import utf8_bytes

__all__ = ["EncodedText", "character_offsets"]


@dataclass(frozen=True, eq=False)
class EncodedText:
    """Ids of a text with the place of each.

    ids: uint32, shape (n,).
    byte_offsets: int64, shape (n, 2): start and end (exclusive) in the text as UTF-8, or in the
        bytes that were given. They join without gap or overlap, from 0 to the text's length.
    character_offsets: int64, shape (n, 2): start and end (exclusive) in the str that was given;
        for bytes, in `data.decode("utf-8", "surrogateescape")`, where each byte that is no valid
        UTF-8 is one character. A token's characters are all that it holds a byte of.
    """

    ids: npt.NDArray[np.uint32]
    byte_offsets: npt.NDArray[np.int64]
    character_offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.ids)


def character_offsets(
    text: str | bytes, byte_offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Characters of byte ranges; see `EncodedText`. Memory: about 20 bytes for each character."""
    as_text = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    if len(as_text) == _byte_length(text):  # one byte each, as in ASCII
        return byte_offsets.copy()
    codes = np.frombuffer(as_text.encode("utf-32-le", "surrogatepass"), "<u4")
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    # In bytes a surrogate stands for a byte; in a str, for half of a character of four bytes.
    sizes[(codes >= 0xD800) & (codes <= 0xDFFF)] = 2 if isinstance(text, str) else 1
    ends = np.cumsum(sizes)
    offsets = np.empty_like(byte_offsets)
    offsets[:, 0] = np.searchsorted(ends, byte_offsets[:, 0], side="right")
    offsets[:, 1] = np.searchsorted(ends - sizes, byte_offsets[:, 1], side="left")
    return offsets


def _byte_length(text: str | bytes) -> int:
    return len(utf8_bytes(text)) if isinstance(text, str) else len(text)
