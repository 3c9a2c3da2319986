"""Looks at the beginnings of input files that nobody declared to be of a format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pipelines.corpus.listing.content_kinds import HEAD_BYTES, find_kind, find_pointer
from pipelines.corpus.listing.file_formats import TABLE_FORMATS, is_declared
from pipelines.storage.output_files import open_bytes

__all__ = ["Listed", "look_at_heads"]

Listed = tuple[str, int, str, str]
"""Path, size, format and compression of a file."""

# Reading a few bytes is mostly waiting. A task is long enough for its own cost not to count.
_THREADS = 16
_FILES_PER_TASK = 64


def look_at_heads(files: Sequence[Listed]) -> dict[str, str]:
    """Read the head of each file, once, and find those that are plainly no text.

    Tables and compressed files are looked at for pointers only, since their readers say what is
    wrong with them.

    Args:
        files: any number; those without a byte are passed over.

    Returns:
        Path to what is wrong with the file, as the rest of a sentence. A file that cannot be read
        is not among them: its reader says why.
    """
    tasks = [
        files[start : start + _FILES_PER_TASK] for start in range(0, len(files), _FILES_PER_TASK)
    ]
    if len(tasks) < 2:
        return dict(itertools.chain.from_iterable(map(_look, tasks)))
    with ThreadPoolExecutor(_THREADS) as threads:
        return dict(itertools.chain.from_iterable(threads.map(lambda task: [*_look(task)], tasks)))


def _look(files: Sequence[Listed]) -> Iterator[tuple[str, str]]:
    for path, size, format_, compression in files:
        head = _read_head(path) if size else b""
        if format_ in TABLE_FORMATS or compression != "none":
            kind = find_pointer(head)
        else:
            kind = find_kind(head, size, is_declared=is_declared(path))
        if kind is not None:
            yield path, kind.refusal


def _read_head(path: str) -> bytes:
    try:
        with open_bytes(path) as file:
            head: bytes = file.read(HEAD_BYTES)
            return head
    except (OSError, ValueError):
        return b""
