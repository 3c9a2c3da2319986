"""Numbers of things as people write them."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    Args:
        number: not negative.
        one: the noun behind 1.
        many: the noun behind other numbers; `one` with an "s" by default.

    >>> [counted(each, "shard") for each in (0, 1, 1115394)]
    ['0 shards', '1 shard', '1,115,394 shards']
    >>> counted(2, "list of rejects", "lists of rejects")
    '2 lists of rejects'
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
