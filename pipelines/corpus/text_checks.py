"""What is unusual about texts, and where a byte stands: natively where the backend is, else not.

The functions in Python are the specification of those in the core.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.storage.native_io import native_io

__all__ = ["count_text_features", "find_byte", "longest_string"]

# Unicode's White_Space; Python's own `isspace` also takes four control characters.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_FEATURES = ("empty", "whitespace_only", "invalid_utf8", "nul", "cr", "crlf")


def count_text_features(texts: pa.LargeBinaryArray, whole: npt.NDArray[np.bool_]) -> dict[str, int]:
    """Count the texts that have each feature.

    Args:
        texts: without nulls.
        whole: bool, per text: whether it is a whole document.

    Returns:
        All features by name: `empty` and `whitespace_only` (of Unicode's White_Space; whole
        documents alone), `invalid_utf8`, `nul`, `cr` (a carriage return without a line feed after
        it) and `crlf`.
    """
    extension = native_io()
    if extension is not None:
        counts = extension.count_text_features(texts, whole.tobytes())
    else:
        counts = [0] * len(_FEATURES)
        for text, is_whole in zip(texts.to_pylist(), whole.tolist(), strict=True):
            found = _features(text, is_whole=is_whole)
            counts = [count + has for count, has in zip(counts, found, strict=True)]
    return dict(zip(_FEATURES, counts, strict=True))


def _features(text: bytes, *, is_whole: bool) -> tuple[bool, ...]:
    """Whether a text has each of `_FEATURES`."""
    pairs = text.count(b"\r\n")
    return (
        is_whole and not text,
        is_whole and bool(text) and not text.decode("utf-8", "replace").strip(_WHITE_SPACE),
        not _is_utf8(text),
        b"\0" in text,
        text.count(b"\r") > pairs,
        pairs > 0,
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def find_byte(data: bytes | memoryview, byte: int, start: int = 0) -> npt.NDArray[np.int64]:
    """Positions of a byte from `start` on, ascending.

    Args:
        data: where to look.
        byte: 0 to 255.
        start: at least 0.

    Returns:
        int64.
    """
    extension = native_io()
    if extension is not None:
        positions: npt.NDArray[np.int64] = pa.array(
            extension.find_byte(data, byte, start)
        ).to_numpy()
        return positions
    return np.flatnonzero(np.frombuffer(data, np.uint8)[start:] == byte) + start


def longest_string(data: bytes | memoryview | pa.Buffer) -> int | None:
    """Length of the longest of strings that stand one after the other; None if they do not.

    Args:
        data: each string after its own length, in four bytes (little-endian), as Parquet's
            encoding PLAIN has them; without any, the longest has 0 bytes.
    """
    view = memoryview(data)
    extension = native_io()
    if extension is not None:
        found: int = extension.longest_string(view)
        return None if found < 0 else found
    longest = position = 0
    while position + 4 <= len(view):
        length = int.from_bytes(view[position : position + 4], "little")
        longest = max(longest, length)
        position += 4 + length
    return longest if position == len(view) else None
