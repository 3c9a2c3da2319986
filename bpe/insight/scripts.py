"""Scripts that are written without spaces between words, where figures by word say nothing."""

from __future__ import annotations

import re

__all__ = ["count_unspaced"]

# First and last code point; the same as in bpe/native/count/token_tally.cc.
_RANGES = (
    "0E00-0EFF 0F00-0FFF 1000-109F 1780-17FF 1950-19DF 1A20-1AAF 2E80-2FDF 3005-3007 3021-3029 "
    "3038-303B 3040-30FF 3100-312F 31A0-31BF 31F0-31FF 3400-4DBF 4E00-9FFF A9E0-A9FF AA60-AA7F "
    "F900-FAFF FF66-FF9D 1AFF0-1B16F 20000-3FFFF"
)
_UNSPACED = re.compile(
    "["
    + "".join(
        f"{chr(int(first, 16))}-{chr(int(last, 16))}"
        for first, last in (part.split("-") for part in _RANGES.split())
    )
    + "]"
)


def count_unspaced(text: str) -> int:
    """How many characters of a text are of Han, kana, Thai, Lao, Khmer, Myanmar or Tibetan."""
    return len(_UNSPACED.findall(text))
