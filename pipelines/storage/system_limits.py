"""Errors that come from a limit of this process, not from its input: `ulimit -v`, `-n` and `-u`."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator

from bpe.errors import LimitError

__all__ = ["describe_limit", "refuse_limit"]

_FILES = {errno.EMFILE, errno.ENFILE}
# What a library's error says that kept neither type nor number.
_MEMORY_WORDS = ("std::bad_alloc", "Cannot allocate memory", "failed to map segment", "malloc of")
_FILES_WORDS = ("Too many open files",)
_THREAD_WORDS = ("can't start new thread",)
# Extension modules of others lose the MemoryError, and Python says this of them.
_LOST_WORDS = ("error return without exception set", "without setting an exception")


def describe_limit(error: BaseException) -> str | None:
    """What to raise, if an error or one of its causes comes from a limit that is set; else None.

    Memory that runs out without a limit on it is no such error: a damaged file may ask for any
    size.
    """
    for each in _causes(error):
        said = str(each)
        number = each.errno if isinstance(each, OSError) else None
        if number in _FILES or any(words in said for words in _FILES_WORDS):
            return _files()
        if any(words in said for words in _THREAD_WORDS):
            return _of("a thread cannot be started", [*_MEMORY, _PROCESSES])
        is_memory = isinstance(each, MemoryError) or number == errno.ENOMEM
        is_memory |= isinstance(each, SystemError) and any(words in said for words in _LOST_WORDS)
        if is_memory or any(words in said for words in _MEMORY_WORDS):
            return _of("out of memory", _MEMORY)
    return None


def refuse_limit(error: BaseException) -> None:
    """Check that an error is one of the input: whether rows are skipped must not hang on a limit.

    Raises:
        LimitError: it comes from a limit.
    """
    limit = describe_limit(error)
    if limit is not None:
        raise LimitError(limit) from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


# Limit, option of ulimit, bytes of its unit, what is limited.
_MEMORY = [
    (resource.RLIMIT_AS, "-v", 1024, "address space"),
    (resource.RLIMIT_DATA, "-d", 1024, "data"),
]
_PROCESSES = (resource.RLIMIT_NPROC, "-u", 1, "processes and threads")


def _of(what: str, limits: list[tuple[int, str, int, str]]) -> str | None:
    found = []
    for limit, option, unit, name in limits:
        value = resource.getrlimit(limit)[0]
        if value != resource.RLIM_INFINITY:
            found.append(f"{name} is limited to {value // unit:,}{' KiB' * (unit > 1)} ({option})")
    if not found:
        return None
    return (
        f"{what}: {' and '.join(found)}; raise the limit with ulimit, or run fewer workers at a "
        "time (--direct_num_workers=1)"
    )


def _files() -> str:
    value = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        f"too many open files: they are limited to {value:,} (-n); raise the limit with ulimit, or "
        "run fewer workers at a time (--direct_num_workers=1)"
    )
