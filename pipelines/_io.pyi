"""What serves reading and writing files (native/python_module.cc); `storage.native_io` loads it.

Columns, errors and Python's lock are as in `bpe._native`, whose page pool it shares.
"""

from bpe._native import ArrowColumn, Column

INTERFACE: int
"""Changes with the names and arguments below: what was compiled from other sources is refused."""

def start_writing(file: int, start: int, size: int) -> None:
    """Have the system begin to write a range of a file to the disk; no wait and no error.

    file: descriptor. Does nothing where the system has no such call.
    """

def scan_json_rows(
    data: bytes | memoryview,
    starts: ArrowColumn,
    ends: ArrowColumn,
    *,
    text_path: list[str],
    id_path: list[str],
) -> tuple[Column, ...] | None:
    """Texts (large_binary) and ids (large_string, if wanted) of rows of JSON.

    starts, ends: int64; row i is data[starts[i]:ends[i]]. text_path, id_path:
    names on the way to a field; an empty one of the id: none is wanted. None if any row
    is not beyond doubt.
    """

def count_text_features(texts: ArrowColumn, whole: bytes) -> list[int]:
    """How many texts are empty, of white space alone, not UTF-8; have a NUL, CR alone, CR LF.

    texts: as `BinaryColumn`. whole: a byte for each, 0 unless it is a whole document; only those
    count as empty or as white space.
    """

def find_byte(data: bytes | memoryview, byte: int, start: int) -> Column:
    """Positions (int64) of a byte from `start` on, ascending."""

def longest_string(data: bytes | memoryview) -> int:
    """Length of the longest of strings, each after its length in four bytes; -1: damaged."""
