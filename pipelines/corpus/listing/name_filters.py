r"""Which files `--include` and `--exclude` choose, by their paths below the input.

    *        any characters but `/`
    ?        one character but `/`
    [a-c]    one of these characters; [!a-c] one that is none of them
    **       any characters; `**/` also stands for no folder at all

A pattern without a `/` is compared with the file's name, in whatever folder it lies; one with a
`/`, with all of the path. A `/` at the start ties a name to the top folder, and one at the end
stands for all that is in the folder. `[*]` is a star.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

__all__ = ["NameFilter"]

_PARTS = re.compile(r"\*\*/|\*+|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


class NameFilter:
    """Chooses files by name: all that match a pattern to include, less those to exclude.

    Args:
        include: patterns; none include everything.
        exclude: patterns.

    Attributes:
        unused: patterns that have matched no file so far.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include = [(pattern, _compiled(pattern)) for pattern in include]
        self._exclude = [(pattern, _compiled(pattern)) for pattern in exclude]
        self.unused = dict.fromkeys([*include, *exclude])

    def keeps(self, path: str) -> bool:
        """Whether a file is chosen; its path is that below the fixed part of the input."""
        included = not self._include or self._any(self._include, path)
        # Patterns of both kinds are looked at, to know which of them match nothing.
        return not self._any(self._exclude, path) and included

    def _any(self, patterns: list[tuple[str, re.Pattern[str]]], path: str) -> bool:
        found = [pattern for pattern, compiled in patterns if compiled.fullmatch(path)]
        for pattern in found:
            self.unused.pop(pattern, None)
        return bool(found)


def _compiled(pattern: str) -> re.Pattern[str]:
    whole = f"{pattern}**" if pattern.endswith("/") else pattern
    anywhere = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    parts = map(_translated, _PARTS.findall(whole.removeprefix("/")))
    return re.compile(anywhere + "".join(parts), re.DOTALL)


def _translated(part: str) -> str:
    if part == "**/":
        return "(?:.*/)?"
    if part.startswith("*"):
        return "[^/]*" if part == "*" else ".*"
    if part == "?":
        return "[^/]"
    if len(part) == 1:
        return re.escape(part)
    # Without the group and the end that are put around what one set becomes.
    return f"(?!/){fnmatch.translate(part)[len('(?s:') : -len(')Z') - 1]}"
