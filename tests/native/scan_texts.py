"""Texts that scans are compared on: what the schemes look at, in every neighbourhood."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from bpe.pretokenizing.schemes import get_scheme

SCHEMES = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace", "superbpe")

_CHARACTERS = [
    *"aAzZsStTdDmMlLvVeErR'''''    \t\n\r\n09 5.,!/-_\x00\x7f\x1c",
    # long s, letters with and without case, marks, numbers, white space, symbols, unassigned
    *"\u017fé\u00c9中文\u3002\uff0c\u3000\u00a0\u0301\u0300ʰªǅ٣½😀\U00016ea0𝐀한ا\u2028\x85",
    *"々\U0002a6d6\uff01\uff10\u1680\u200b\ue000",
    *(
        "  ",
        "    ",
        "\r\n",
        "'s",
        "'LL",
        "'re",
        "//",
        "!\r/\n",
        "12345",
        "foo",
        "Bar",
        "。中",
        "中A",
        "aB",
        "世a",
    ),
]
_INVALID = [b"\xff", b"\x80", b"\xe4\xb8", b"\xed\xa0\x80", b"\xf0\x9f", b"\xc0\xaf", b"\xc3"]
_INVALID += [b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"]
PIECES = [character.encode() for character in _CHARACTERS] + _INVALID
_REPEATS = (2, 3, 5, 10, 30, 60, 64, 65, 70, 130)


def random_text(rng: random.Random) -> bytes:
    """A text of few kinds of pieces, some of them in long runs, up to a few KB."""
    kinds = [rng.choice(PIECES) for _ in range(rng.choice([2, 3, 4, 6, 60]))]
    parts = [b"x" * rng.randrange(64)]
    for _ in range(rng.choice([1, 2, 3, 5, 10, 40, 80, 200])):
        piece = rng.choice(kinds)
        if rng.random() < 0.08:
            piece *= rng.choice(_REPEATS)
        if rng.random() < 0.2:
            piece = b"abcdefghijklmnopqrst"[: rng.randrange(20)]
        parts.append(piece)
    return b"".join(parts)


def reference_ends(data: bytes, scheme: str) -> npt.NDArray[np.uint64]:
    """Ends of the pre-tokens by the specification."""
    return np.cumsum([len(piece) for piece in get_scheme(scheme).split(data)], dtype=np.uint64)
