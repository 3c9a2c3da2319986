"""What a process holds beyond what it uses: freed memory that allocators keep for the next request.

They keep it for good reasons, and without a bound: in a process whose threads take and free arrays
of tens of megabytes, holes in heaps come to hundreds of megabytes and grow for hours. So a process
that does such work sets its allocators once, and gives back what is free when a part of the work
is done. Nothing here changes a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from bpe.backends.choice import native_core_if_there

__all__ = ["bound_free_memory", "give_back_memory", "join_large", "large_buffer"]

# Smaller blocks are found again by any allocator.
_LEAST_POOLED = 1 << 20


@lru_cache(1)
def bound_free_memory() -> None:
    """Have this process return large blocks to the system as soon as they are free.

    Arrow then takes its memory from the C library, whose blocks of 8 MiB and more are mapped and
    unmapped one by one (glibc; with another C library, or without the native core, what is free
    goes back with `give_back_memory` alone). For a program that owns its process: it holds for all
    threads, and for what other libraries allocate.
    """
    native = native_core_if_there()
    if native is not None and native.map_large_blocks():
        pa.set_memory_pool(pa.system_memory_pool())


def give_back_memory(*, keep_bytes: int = 0) -> None:
    """Give the system what is free: of Arrow's pool, of the native core, and inside glibc's heaps.

    Takes milliseconds; what is in use is not touched, so that any thread may do it at any time.

    Args:
        keep_bytes: of the native core's large blocks, so much may stay for the next request: new
            memory has to be cleared by the system, which takes longer than to fill it.
    """
    pa.default_memory_pool().release_unused()
    native = native_core_if_there()
    if native is not None:
        native.give_back_memory(keep_bytes)


def large_buffer(size: int) -> memoryview:
    """Writable memory of any content, which others use again when nothing refers to it any more.

    Args:
        size: bytes.
    """
    native = native_core_if_there()
    is_small = size < _LEAST_POOLED or native is None
    return memoryview(bytearray(size) if is_small else native.PooledBytes(size))


def join_large(pieces: Sequence[bytes | memoryview]) -> memoryview:
    """The bytes of all pieces, one after the other, in a `large_buffer`."""
    joined = large_buffer(sum(map(len, pieces)))
    filled = 0
    for piece in pieces:
        joined[filled : filled + len(piece)] = piece
        filled += len(piece)
    return joined
