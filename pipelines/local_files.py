"""Lists files of this machine by pattern, and what stands where a file should but cannot be read.

Beam's own listing leaves out links that lead nowhere and folders that may not be opened, without a
word. The pattern language is Beam's (`apache_beam.io.filesystem.FileSystem.translate_pattern`).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from functools import lru_cache

from apache_beam.io.filesystem import FileMetadata, FileSystem

__all__ = ["GLOB", "LocalListing", "list_local"]

GLOB = re.compile(r"[*?\[]")
"""The characters that make a path a pattern."""


@dataclass
class LocalListing:
    """What a pattern found.

    Attributes:
        files: regular files, also behind links.
        unreadable: path to what is wrong with it: links that lead nowhere, folders that may not be
            opened, pipes, sockets and devices.
        linked_folders: links to folders, which are not followed.
    """

    files: list[FileMetadata] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    linked_folders: list[str] = field(default_factory=list)


def list_local(pattern: str) -> LocalListing:
    """Everything that an absolute pattern matches, in no particular order.

    Args:
        pattern: `*` stays inside a folder, `**` does not. Folders in which nothing can match are
            not opened.
    """
    glob = GLOB.search(pattern)
    fixed = pattern if glob is None else pattern[: glob.start()]
    root = fixed[: fixed.rfind("/") + 1]
    listing = LocalListing()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            folders += _look_into(folder, pattern, root, listing)
        except (FileNotFoundError, NotADirectoryError):
            continue  # the root is no folder, or this one was removed meanwhile
        except OSError as error:
            listing.unreadable[folder] = f"the folder cannot be opened ({error.strerror})"
    return listing


def _look_into(folder: str, pattern: str, root: str, listing: LocalListing) -> list[str]:
    """Add what a folder holds to the listing; returns the folders in it to be looked into."""
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _is_folder(entry):
                if _matches(pattern, entry.path):
                    _add_file(listing, entry)
            elif _may_hold(pattern, root, entry):
                if entry.is_symlink():
                    listing.linked_folders.append(entry.path)
                else:
                    folders.append(f"{entry.path}/")
    return folders


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that goes in circles, say
        return False


def _add_file(listing: LocalListing, entry: os.DirEntry[str]) -> None:
    try:
        status = entry.stat()
    except OSError as error:
        if entry.is_symlink():
            target = os.readlink(entry.path)
            listing.unreadable[entry.path] = (
                f"the link to {target} cannot be followed ({error.strerror})"
            )
        elif not isinstance(error, FileNotFoundError):  # else it was removed meanwhile
            listing.unreadable[entry.path] = f"the file cannot be seen ({error.strerror})"
        return
    if stat.S_ISREG(status.st_mode):
        metadata = FileMetadata(entry.path, status.st_size, status.st_mtime)
        listing.files.append(metadata)
    else:
        listing.unreadable[entry.path] = "it is a pipe, a socket or a device"


def _may_hold(pattern: str, root: str, entry: os.DirEntry[str]) -> bool:
    """Whether something in a folder, or below it, can match."""
    wanted = pattern[len(root) :].split("/")
    depth = entry.path.count("/", len(root)) + 1
    if any("**" in component for component in wanted[:depth]):
        return True
    if depth >= len(wanted):
        return False
    return _matches(root + "/".join(wanted[:depth]), entry.path)


def _matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).match(path) is not None


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(FileSystem.translate_pattern(pattern))
