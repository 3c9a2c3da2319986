"""Numbers and values as people write them and read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bpe.errors import SettingsError

__all__ = [
    "LARGEST_NUMBER",
    "LONGEST_NUMBER",
    "counted",
    "describe_differences",
    "parse_whole_number",
    "shown_value",
]

LARGEST_NUMBER = 2**63 - 1
"""Numbers and sizes go into 64-bit integers."""

LONGEST_NUMBER = 40
"""Longer numbers are refused unread: Python refuses to convert thousands of digits."""

_NUMBER = re.compile(r"-?\d+", re.ASCII)
_SHOWN = 60
_LONGEST_SETTING = 200


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Args:
        number: not negative.
        one: the noun after 1.
        many: the noun after other numbers; `one` with an "s" by default.

    >>> [counted(each, "shard") for each in (0, 1, 1115394)]
    ['0 shards', '1 shard', '1,115,394 shards']
    >>> counted(2, "list of rejects", "lists of rejects")
    '2 lists of rejects'
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def parse_whole_number(text: str, least: int = 1, most: int = LARGEST_NUMBER) -> int:
    """A whole number from `least` to `most`.

    Raises:
        SettingsError: the text is none.
    """
    number = int(text) if _NUMBER.fullmatch(text) and len(text) <= LONGEST_NUMBER else None
    if number is None or not least <= number <= most:
        raise SettingsError(f"{shown_value(text)} is not a whole number from {least} to {most}")
    return number


def shown_value(text: str) -> str:
    """A value for a message, shortened if it is very long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One phrase per setting that differs, old value first: 'vocab_size: was 512, now 1024'."""
    phrases = []
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if before != now:
            phrases.append(f"{name}: was {_setting(before)}, now {_setting(now)}")
    return phrases


def _setting(value: Any) -> str:
    if value is None:
        return "not given"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SETTING else text[:_LONGEST_SETTING] + "…"
