"""Paths as names: what is local, how a name is written in a pattern, and the paths of our files.

A folder that we write into or read back may come from anywhere. The name of a file in it must not
lead out of the folder: `own_path` follows no symbolic link below it. The folder itself may be one.
"""

from __future__ import annotations

import os
import re
import stat

from bpe.errors import OutputError

__all__ = ["GLOB", "escape", "is_local", "own_path", "refuse_link"]

GLOB = re.compile(r"[*?\[]")
"""The characters that make a path a pattern."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_local(path: str) -> bool:
    """Whether a path is on this machine's own file system."""
    return _SCHEME.match(path) is None


def escape(name: str) -> str:
    """The pattern, in Beam's notation, that matches this name alone."""
    return GLOB.sub(r"[\g<0>]", name)


def own_path(directory: str, *names: str) -> str:
    """`directory/name/…` of a local folder: the path of one of our files in it, or of a sub-folder.

    Args:
        directory: as given; may be a symbolic link.
        names: below it; each may hold slashes.

    Raises:
        OutputError: a name leads out of the folder, is a symbolic link, or is neither a file nor a
            folder.
    """
    path = directory
    for name in "/".join(names).split("/"):
        if name == ".." or "\0" in name:
            raise OutputError(f"{directory}: the name {'/'.join(names)!r} leads out of this folder")
        path = os.path.join(path, name)
        if name:
            refuse_link(path)
    return path


def refuse_link(path: str) -> None:
    """Check that a path is a file or a folder, or nothing yet.

    Raises:
        OutputError: it is a symbolic link, or a pipe, socket or device.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return  # What is done with the path next says more.
    if stat.S_ISLNK(mode):
        raise OutputError(
            f"{path}: is a symbolic link; beam-bpe follows no links inside a folder of its own "
            "files; replace the link by what it leads to (cp -RL copies a folder that way), or "
            "remove it"
        )
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a pipe, a socket or a device; remove it")
