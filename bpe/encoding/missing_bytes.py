"""Bytes that a vocabulary has no ids for.

Only bytes that no valid UTF-8 holds may be missing. A text with one cannot be encoded, and is
refused before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import InputError, VocabularyError

__all__ = ["NEVER_IN_UTF8", "MissingBytes", "encodable_bytes", "find_missing_bytes"]

NEVER_IN_UTF8 = bytes([0xC0, 0xC1, *range(0xF5, 0x100)])
"""Bytes that no valid UTF-8 holds."""

_WINDOW_BYTES = 1 << 16


def find_missing_bytes(tokens: Iterable[bytes]) -> bytes:
    """Bytes that are no token of their own, ascending."""
    present = {token for token in tokens if len(token) == 1}
    return bytes(value for value in range(256) if bytes([value]) not in present)


class MissingBytes:
    """Finds bytes without ids in texts; false if there are none to find."""

    def __init__(self, values: bytes) -> None:
        self.values = values
        self._is_missing = np.zeros(256, np.bool_)
        self._is_missing[list(values)] = True

    def __bool__(self) -> bool:
        return bool(self.values)

    def is_in(self, data: bytes) -> bool:
        """Whether a text holds such a byte."""
        return len(data.translate(None, self.values)) < len(data)

    def check(self, data: bytes | memoryview, place: str, start: int = 0) -> None:
        """Raise `InputError` for the first such byte; start: where in `place` the data begins."""
        if not self.values or not len(data):
            return
        found = next(self._find(np.frombuffer(data, np.uint8)), None)
        if found is not None:
            raise InputError(f"{place} holds {self.describe(data[found], start + found)}")

    def check_array(self, texts: pa.LargeBinaryArray) -> None:
        """Raise `InputError` for the first such byte of a column."""
        for row, offset in self.find_rows(texts)[:1]:
            data = texts[row].as_py()
            raise InputError(f"texts[{row}] holds {self.describe(data[offset], offset)}")

    def find_rows(self, texts: pa.LargeBinaryArray) -> list[tuple[int, int]]:
        """(row, offset of its first such byte) of each text that has one."""
        if not self.values or len(texts) == 0:
            return []
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
        begin, end = int(offsets[0]), int(offsets[-1])
        if begin == end:
            return []
        rows: dict[int, int] = {}
        for position in self._find(np.frombuffer(texts.buffers()[2], np.uint8)[begin:end]):
            row = int(np.searchsorted(offsets, begin + position, side="right")) - 1
            rows.setdefault(row, begin + position - int(offsets[row]))
        return list(rows.items())

    def describe(self, value: int, offset: int) -> str:
        """Say which byte it is, where, and what to do."""
        return (
            f"0x{value:02x} at byte {offset}, which no valid UTF-8 holds, and for which this "
            "vocabulary has no id; correct the text, or use a vocabulary with all 256 bytes"
        )

    def _find(self, data: npt.NDArray[np.uint8]) -> Iterator[int]:
        for start in range(0, len(data), _WINDOW_BYTES):
            window = data[start : start + _WINDOW_BYTES]
            if window.max() >= NEVER_IN_UTF8[0]:
                for index in np.flatnonzero(self._is_missing[window]).tolist():
                    yield start + index


def encodable_bytes(tokens: Mapping[int, bytes]) -> MissingBytes:
    """Bytes that an encoder refuses; `VocabularyError` if a byte of valid UTF-8 is among them."""
    missing = find_missing_bytes(tokens.values())
    needed = missing.translate(None, NEVER_IN_UTF8)
    if needed:
        raise VocabularyError(
            f"byte {needed[:1]!r} has no id: a vocabulary needs every single byte"
        )
    return MissingBytes(missing)
