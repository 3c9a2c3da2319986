"""What an input path means: a name where something of that name exists, else a pattern.

A pattern is one of Beam's (`apache_beam.io.filesystem.FileSystem.translate_pattern`): `*` stays
inside a folder, `**` crosses folders, `?` and `[...]` match a character. The folders at its start
that exist are names too: in `r[1]/*.txt`, `r[1]` is the folder of that name, where there is one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache

from apache_beam.io.filesystem import BeamIOError, FileSystem
from apache_beam.io.filesystems import FileSystems

from bpe.errors import SettingsError
from pipelines.storage.own_paths import GLOB, escape, is_local

__all__ = ["InputPattern", "absolute", "read_pattern"]


@dataclass(frozen=True)
class InputPattern:
    """An input path, divided into a name and a pattern.

    Attributes:
        given: as the user wrote it.
        path: the same, absolute.
        folder: a name, ending in a slash; nothing in it is expanded.
        rest: a pattern below it, `**` where the path is a folder; of a file, its name.
        is_file: something that is no folder has this very name.
        wild_name: the part that is a name and holds characters of patterns; "" if none does, or if
            the user did not write it.
    """

    given: str
    path: str
    folder: str
    rest: str
    is_file: bool
    wild_name: str

    @property
    def whole(self) -> str:
        """The pattern from its beginning, in Beam's notation."""
        return escape(self.folder) + (escape(self.rest) if self.is_file else self.rest)

    def matches(self, path: str) -> bool:
        """Whether a file's path is one that the pattern asks for."""
        if self.is_file:
            return path == self.folder + self.rest
        return _matches(self.folder, self.rest, path)

    def may_hold(self, path: str) -> bool:
        """Whether something in the folder `path`, or below it, can match."""
        if self.is_file:
            return False
        wanted = self.rest.split("/")
        depth = path.count("/", len(self.folder)) + 1
        if any("**" in component for component in wanted[:depth]):
            return True
        return depth < len(wanted) and _matches(self.folder, "/".join(wanted[:depth]), path)

    def shows(self, path: str) -> bool:
        """Whether a path that matches has no hidden name that the pattern does not spell out."""
        # `_old*` asks for names with an underscore: its first component is not hidden.
        spelled_out = 0 if GLOB.match(self.rest) and not self.is_file else 1
        components = path.removeprefix(self.folder).split("/")[spelled_out:]
        return not any(component.startswith((".", "_")) for component in components)


def _matches(folder: str, rest: str, path: str) -> bool:
    return path.startswith(folder) and _compiled(rest).match(path, len(folder)) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(FileSystem.translate_pattern(pattern))


def absolute(path: str) -> str:
    """A path without a scheme for local files, and absolute; a slash at its end stays."""
    path = path.removeprefix("file://")
    if not is_local(path):
        return path
    return os.path.abspath(path) + ("/" if path.endswith("/") else "")


def read_pattern(given: str) -> InputPattern:
    """What an input path means now; see the module.

    Args:
        given: a path or pattern, local or an address.

    Raises:
        SettingsError: the path is empty, or its file system cannot be asked.
    """
    path = absolute(given)
    if not given.removeprefix("file://").strip():
        raise SettingsError("--input holds an empty pattern")
    try:
        folder, rest, is_file = _divide(path)
    except (BeamIOError, ValueError) as error:
        raise SettingsError(f"--input: cannot list {given}: {error}") from error
    name = path if is_file else folder.rstrip("/")
    wild_name = name if GLOB.search(given) and GLOB.search(name) else ""
    return InputPattern(given, path, folder, rest, is_file, wild_name)


def _divide(path: str) -> tuple[str, str, bool]:
    """The folder and the rest of an absolute path, and whether a file has this very name."""
    if _is_file(path):
        folder, _, name = path.rpartition("/")
        return f"{folder}/", name, True
    if _is_folder(path):
        return path.rstrip("/") + "/", "**", False
    folder, rest = "", path
    while "/" in rest:
        name, below = rest.split("/", 1)
        if GLOB.search(name) and not _is_folder(folder + name):
            break
        folder, rest = f"{folder}{name}/", below
    if not rest or rest.endswith("/"):
        rest += "**"
    return folder, rest, False


def _is_file(path: str) -> bool:
    """Whether something has this very name that is no folder; a link may lead nowhere."""
    if path.endswith("/"):
        return False
    if is_local(path):
        return os.path.lexists(path) and not os.path.isdir(path)
    system = FileSystems.get_filesystem(path)
    return bool(system.exists(path)) and not (system.has_dirs() and _is_folder(path))


def _is_folder(path: str) -> bool:
    if is_local(path):
        return os.path.isdir(path)
    # An object store has folders only in names. Beam's public functions take the path as a
    # pattern, this one as it stands.
    system = FileSystems.get_filesystem(path)
    try:
        found = system._list(path.rstrip("/") + "/")  # noqa: SLF001
        return next(iter(found), None) is not None
    except BeamIOError:
        return False
