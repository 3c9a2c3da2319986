"""Looks into dictionary pages of Parquet files, of which pyarrow shows nothing by themselves.

The format: https://github.com/apache/parquet-format (Thrift's compact protocol for the header).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.corpus.text_checks import longest_string

__all__ = ["DictionaryPage", "find_dictionary"]

# Headers of dictionary pages have no more than 40 bytes.
_HEADER_BYTES = 256
_DICTIONARY_PAGE = 2
_PLAIN = (0, 2)  # the latter by the name PLAIN_DICTIONARY
_I32, _STRUCT = 5, 12
# Fields of a page header, and of the header of a dictionary page inside it.
_TYPE, _UNPACKED_SIZE, _PACKED_SIZE, _DICTIONARY_HEADER = 1, 2, 3, 7
_ENCODING = 2
_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "ZSTD": "zstd", "BROTLI": "brotli", "LZ4": "lz4_raw"}


@dataclass(frozen=True)
class DictionaryPage:
    """The values of a column chunk of strings that are stored once each.

    Attributes:
        size: of all values, bytes.
    """

    size: int
    _native: Any
    _start: int
    _packed_size: int
    _codec: str

    def longest(self) -> int | None:
        """Bytes of the longest value; None where the page is damaged, or packed in another way.

        Raises:
            OSError: the file cannot be read.
        """
        page = self._native.read_at(self._packed_size, self._start)
        if self._codec != "UNCOMPRESSED":
            if self._codec not in _CODECS:
                return None
            try:
                page = pa.Codec(_CODECS[self._codec]).decompress(page, self.size)
            except (OSError, pa.ArrowException):
                return None
        return longest_string(page)


def find_dictionary(native: Any, chunk: Any) -> DictionaryPage | None:
    """The dictionary page of a column chunk.

    Args:
        native: the open file, with `read_at`.
        chunk: metadata of the column chunk, which has a dictionary page.

    Returns:
        None where there is none, or one of a kind that is not known here.

    Raises:
        OSError: the file cannot be read.
    """
    start = int(chunk.dictionary_page_offset or chunk.data_page_offset)
    try:
        fields, header_size = _page_header(native.read_at(_HEADER_BYTES, start))
        packed_size, size = fields[_PACKED_SIZE], fields[_UNPACKED_SIZE]
    except (IndexError, KeyError):
        return None
    is_known = fields.get(_TYPE) == _DICTIONARY_PAGE and fields.get(_DICTIONARY_HEADER) in _PLAIN
    if not is_known or packed_size < 0 or size < 0:
        return None
    return DictionaryPage(size, native, start + header_size, packed_size, chunk.compression)


def _page_header(data: bytes) -> tuple[dict[int, int], int]:
    """Numbers of a page header by field (of the inner header its encoding), and its size.

    Raises:
        IndexError, KeyError: it is none that a dictionary page has.
    """
    fields: dict[int, int] = {}
    position = field = 0
    while data[position]:
        field += data[position] >> 4 or _refuse()
        kind = data[position] & 15
        position += 1
        if kind == _I32:
            fields[field], position = _integer(data, position)
        elif kind == _STRUCT and field == _DICTIONARY_HEADER:
            inner, position = _dictionary_header(data, position)
            fields[field] = inner[_ENCODING]
        else:
            _refuse()
    return fields, position + 1


def _dictionary_header(data: bytes, position: int) -> tuple[dict[int, int], int]:
    """Numbers of the inner header by field, and the position after it."""
    fields: dict[int, int] = {}
    field = 0
    while data[position]:
        field += data[position] >> 4 or _refuse()
        kind = data[position] & 15
        position += 1
        if kind == _I32:
            fields[field], position = _integer(data, position)
        elif kind not in (1, 2):  # true or false: whether it is sorted
            _refuse()
    return fields, position + 1


def _integer(data: bytes, position: int) -> tuple[int, int]:
    """A number in seven bits a byte, the sign in its lowest bit; and the position after it."""
    value = shift = 0
    while data[position] & 0x80:
        value |= (data[position] & 0x7F) << shift
        shift += 7
        position += 1
    value |= data[position] << shift
    return value >> 1 ^ -(value & 1), position + 1


def _refuse() -> int:
    raise KeyError
