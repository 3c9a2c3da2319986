"""Lists files of this machine by pattern, and what stands where a file should but cannot be read.

Beam's own listing leaves out links that lead nowhere and folders that may not be opened, without a
word, and expands the names of folders.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from apache_beam.io.filesystem import FileMetadata

from pipelines.storage.input_patterns import InputPattern

__all__ = ["LocalListing", "list_local"]


@dataclass
class LocalListing:
    """What a pattern found.

    Attributes:
        files: regular files, also after links.
        unreadable: path to what is wrong with it: links that lead nowhere, folders that may not be
            opened, pipes, sockets and devices.
        linked_folders: links to folders, which are not followed.
    """

    files: list[FileMetadata] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    linked_folders: list[str] = field(default_factory=list)


def list_local(pattern: InputPattern) -> LocalListing:
    """Everything that a local pattern matches, in no particular order.

    Folders in which nothing can match are not opened.
    """
    listing = LocalListing()
    folders = [pattern.folder]
    while folders:
        folder = folders.pop()
        try:
            folders += _look_into(folder, pattern, listing)
        except (FileNotFoundError, NotADirectoryError):
            continue  # the first is no folder, or this one was removed meanwhile
        except OSError as error:
            listing.unreadable[folder] = f"the folder cannot be opened ({error.strerror})"
    return listing


def _look_into(folder: str, pattern: InputPattern, listing: LocalListing) -> list[str]:
    """Add what a folder holds to the listing; returns the folders in it to be looked into."""
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _is_folder(entry):
                if pattern.matches(entry.path):
                    _add_file(listing, entry)
            elif pattern.may_hold(entry.path):
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
