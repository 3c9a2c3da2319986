"""Names of files and the like as messages show them."""

from __future__ import annotations

__all__ = ["one_line"]


def one_line(text: str) -> str:
    r"""A text with line feeds, control characters and the like as escapes.

    >>> one_line("in\nput.txt")
    'in\\nput.txt'
    """
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
