r"""Run coding: token ids as bytes, equal parts of tokens as equal bytes.

A run of equal tokens is written as the number 2 * token + (run > 1), followed by the number run if
it is above 1. Numbers are unsigned LEB128: seven bits a byte, lowest first, the high bit set on all
bytes but the last. A run is as long as it can be, so that each sequence has one coding.

    >>> encode_runs([97, 97, 97, 300])
    b'\xc3\x01\x03\xd8\x04'
    >>> decode_runs(b'\xc3\x01\x03\xd8\x04')
    [97, 97, 97, 300]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import CountTableError

__all__ = [
    "Run",
    "decode_runs",
    "decode_segments",
    "encode_runs",
    "encode_segments",
    "join_runs",
    "parse_segments",
    "read_runs",
    "write_runs",
]

Run = tuple[int, int]
"""A token and how often it stands in a row, at least once."""


def encode_runs(ids: Iterable[int]) -> bytes:
    """Coding of a sequence of token ids."""
    return write_runs((token, sum(1 for _ in group)) for token, group in groupby(ids))


def decode_runs(coded: bytes) -> list[int]:
    """Token ids of a coding."""
    return [token for token, run in read_runs(coded) for _ in range(run)]


def write_runs(runs: Iterable[Run]) -> bytes:
    """Coding of runs, in which neighbours have different tokens."""
    coded = bytearray()
    for token, run in runs:
        _append_number(coded, 2 * token + (run > 1))
        if run > 1:
            _append_number(coded, run)
    return bytes(coded)


def read_runs(coded: bytes) -> list[Run]:
    """Runs of a coding; `CountTableError` if it ends within a number or a run."""
    numbers = _read_numbers(coded)
    runs: list[Run] = []
    for number in numbers:
        run = next(numbers, None) if number & 1 else 1
        if run is None:
            raise _damaged(coded)
        runs.append((number >> 1, run))
    return runs


def join_runs(parts: Iterable[Iterable[Run]]) -> Iterator[Run]:
    """Runs of sequences written one after another: runs that meet become one."""
    token, total = -1, 0
    for part in parts:
        for following, run in part:
            if following == token:
                total += run
                continue
            if total:
                yield token, total
            token, total = following, run
    if total:
        yield token, total


def decode_segments(coded: pa.LargeBinaryArray) -> pa.LargeListArray:
    """Token ids of many codings, as a large_list of uint32: one list for each."""
    tokens, runs, rows = parse_segments(coded)
    lengths = np.zeros(len(coded) + 1, np.int64)
    np.add.at(lengths, rows + 1, runs)
    return pa.LargeListArray.from_arrays(
        pa.array(np.cumsum(lengths)), pa.array(np.repeat(tokens, runs))
    )


def encode_segments(sequences: pa.LargeListArray) -> pa.LargeBinaryArray:
    """Codings of many sequences of token ids (uint16 or uint32, no nulls): one for each."""
    offsets = sequences.offsets.to_numpy()
    tokens = sequences.values.to_numpy()[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    is_start = np.ones(len(tokens), np.bool_)
    is_start[1:] = tokens[1:] != tokens[:-1]
    is_start[offsets[:-1][offsets[:-1] < len(tokens)]] = True
    starts = np.flatnonzero(is_start)
    runs = np.diff(np.append(starts, len(tokens)))
    is_long = runs > 1
    # A long run is two numbers, any other one; each run's first number stands at its place.
    places = np.arange(len(runs)) + np.cumsum(is_long) - is_long
    numbers = np.empty(len(runs) + int(is_long.sum()), np.uint64)
    numbers[places] = 2 * tokens[starts].astype(np.uint64) + is_long
    numbers[places[is_long] + 1] = runs[is_long]
    data, ends = _write_numbers(numbers)
    first_runs = np.searchsorted(starts, offsets)
    borders = np.append(places, len(numbers))[first_runs]
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(sequences),
        [None, pa.py_buffer(np.append(np.int64(0), ends)[borders]), pa.py_buffer(data)],
    )


def _write_numbers(
    numbers: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of numbers, one after another, and where each ends."""
    sizes = np.ones(len(numbers), np.int64)
    rest = numbers >> np.uint64(7)
    while rest.any():
        sizes += rest > 0
        rest = rest >> np.uint64(7)
    ends = np.cumsum(sizes)
    data = np.empty(int(sizes.sum()), np.uint8)
    for place in range(int(sizes.max(initial=0))):
        here = sizes > place
        low = (numbers[here] >> np.uint64(7 * place)) & np.uint64(0x7F)
        more = (sizes[here] > place + 1) * np.uint64(0x80)
        data[ends[here] - sizes[here] + place] = low | more
    return data, ends


def parse_segments(
    coded: pa.LargeBinaryArray,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Runs of many codings: tokens, how often each stands in a row, and which coding it is of."""
    numbers, rows = _parse_numbers(coded)
    # After an even number comes a token, in any case. After an odd one comes a run length if the
    # odd one was a token: in a part of odd numbers the two take turns.
    goes_on = np.zeros(len(numbers), np.bool_)
    goes_on[1:] = (numbers[:-1] & 1).astype(np.bool_) & (rows[1:] == rows[:-1])
    places = np.arange(len(numbers))
    is_run = (places - np.maximum.accumulate(np.where(goes_on, 0, places))) % 2 == 1
    firsts = np.flatnonzero(~is_run)
    has_run = (numbers[firsts] & 1).astype(np.bool_)
    if not np.array_equal(firsts[has_run] + 1, np.flatnonzero(is_run)):
        raise _damaged(coded[int(rows[firsts[has_run][-1]])].as_py())
    runs = np.ones(len(firsts), np.int64)
    runs[has_run] = numbers[is_run].astype(np.int64)
    return (numbers[firsts] >> 1).astype(np.uint32), runs, rows[firsts]


def _parse_numbers(
    coded: pa.LargeBinaryArray,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Numbers of all codings, and which coding each is of."""
    if len(coded) == 0 or coded.buffers()[2] is None:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    offsets = np.frombuffer(coded.buffers()[1], np.int64)[coded.offset :][: len(coded) + 1]
    data = np.frombuffer(coded.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    is_end = data < 0x80
    starts = np.flatnonzero(np.concatenate(([True], is_end[:-1])))[: len(data)]
    row_ends = offsets[1:][offsets[1:] > 0] - 1
    if not is_end[row_ends].all():
        raise _damaged(coded[int(np.flatnonzero(~is_end[row_ends])[0])].as_py())
    number: npt.NDArray[np.int64] = np.cumsum(is_end) - is_end
    shifts = 7 * (np.arange(len(data)) - starts[number])
    parts = (data & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    numbers = np.add.reduceat(parts, starts) if len(data) else np.zeros(0, np.uint64)
    return numbers, np.searchsorted(offsets, starts, side="right") - 1


def _append_number(coded: bytearray, number: int) -> None:
    while number > 0x7F:
        coded.append(number & 0x7F | 0x80)
        number >>= 7
    coded.append(number)


def _read_numbers(coded: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in coded:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number, shift = 0, 0
    if shift:
        raise _damaged(coded)


def _damaged(coded: bytes) -> CountTableError:
    return CountTableError(
        f"the run-coded tokens {coded[:20]!r} ({len(coded)} bytes) end within a run: the file or "
        "message that held them is damaged; run the step that made it again"
    )
