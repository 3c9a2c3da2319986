"""`beam-bpe decode`: token ids on standard input back into bytes."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import InputError
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands.load_tokenizer import load_given_tokenizer
from pipelines.cli.standard_streams import standard_input
from pipelines.storage.wording import shown_value

__all__ = ["run"]

_BLANKS = (b" ", b"\n", b"\t", b"\r", b"\v", b"\f")
_NUMBERS = re.compile(rb"[0-9\s]*")
_ID = re.compile(rb"0*[0-9]{1,19}")
_ZERO, _LINE_FEED = ord("0"), ord("\n")
_LONGEST_NUMBER = 1 << 16  # with leading zeros


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.text_arguments` for the options."""
    tokenizer = load_given_tokenizer(arguments)
    between = b"\n" if arguments.lines else b""
    if tokenizer.reencodes:
        parts = _cut(standard_input(), _BLANKS, _LONGEST_NUMBER)
    else:
        # Another library decodes a document as a whole.
        parts = _cut(standard_input(), (b"\n",), arguments.max_row_bytes)
    number = 1
    for part in parts:
        texts = _decode(tokenizer, part, number)
        sys.stdout.buffer.write(between.join(texts))
        sys.stdout.flush()
        number += len(texts) - 1
    return 0


def _cut(blocks: Iterable[bytes], ends: tuple[bytes, ...], limit: int) -> Iterator[bytes]:
    """Yield the text in parts that end with one of `ends`; only the last part need not."""
    kept = bytearray()
    number = 1
    for block in blocks:
        cut = max(block.rfind(end) for end in ends) + 1
        if cut:
            part = bytes(kept) + block[:cut]
            number += part.count(b"\n")
            kept = bytearray(block[cut:])
            yield part
        else:
            kept += block
        if len(kept) > limit:
            if ends is _BLANKS:
                raise InputError(f"line {number}: {_shown(bytes(kept))} is longer than any id")
            raise InputError(
                f"--max-row-bytes={limit} is too small for line {number}: this tokenizer decodes "
                "whole lines only; raise the limit"
            )
    if kept:
        yield bytes(kept)


def _decode(tokenizer: Tokenizer, part: bytes, number: int) -> list[bytes]:
    """Decode ids, apart for each line that the part has some of, of which `number` is the first.

    Raises:
        InputError: something is no id; names the line and the value.
    """
    if not _NUMBERS.fullmatch(part):
        raise _first_bad(tokenizer, part, number)
    lists = _id_lists(part)
    try:
        texts: list[bytes] = tokenizer.decode_batch(lists).to_pylist()
    except InputError:
        raise _first_bad(tokenizer, part, number) from None
    return texts


def _id_lists(part: bytes) -> pa.LargeListArray:
    """The ids of each line of a text of digits and white space."""
    codes = np.frombuffer(part, np.uint8)
    is_digit = codes >= _ZERO
    begins = is_digit.copy()
    begins[1:] &= ~is_digit[:-1]
    counts = np.cumsum(begins)
    ends: npt.NDArray[np.int64] = np.concatenate(
        ([0], counts[codes == _LINE_FEED], counts[-1:])
    ).astype(np.int64)
    # Without a digit, NumPy finds a 0; what is too large becomes the largest number, and no id.
    ids = np.fromstring(part, np.int64, sep=" ") if counts[-1] else np.zeros(0, np.int64)
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(ids))


def _first_bad(tokenizer: Tokenizer, part: bytes, number: int) -> InputError:
    """The error for the first value that is no id."""
    known = tokenizer.model.all_tokens
    line, value = next(
        (line, value)
        for line, text in enumerate(part.split(b"\n"), number)
        for value in text.split()
        if not _ID.fullmatch(value) or int(value.lstrip(b"0") or b"0") not in known
    )
    return InputError(f"line {line}: {_shown(value)} is {tokenizer.model.no_such_id()}")


def _shown(value: bytes) -> str:
    return shown_value(value.decode("utf-8", "backslashreplace"))
