"""The extension `pipelines._io`, which reads and writes files where the backend is native."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from typing import Any

from bpe.backends.choice import get_backend, load_extension, native_core
from bpe.errors import BackendError

__all__ = ["native_io", "native_io_if_there"]

# Of the extension that these sources need, as in pipelines/native/python_module.cc.
IO_INTERFACE = 1


def native_io() -> Any:
    """The extension; None where Python does the work, which gives the same results slowly.

    That is so if the backend in force is `python`, and, with one warning, if the extension is
    missing. Raises `BackendError` if it is missing and `BPE_BACKEND` insists on `native`.
    """
    if get_backend().name != "native":
        return None
    found = _load()
    if not isinstance(found, ImportError):
        return found
    if os.environ.get("BPE_BACKEND") == "native":
        raise BackendError(_message(found)) from found
    _warn(_message(found))
    return None


def native_io_if_there() -> Any:
    """The extension or None, whatever the backend: for what no result depends on."""
    found = _load()
    return None if isinstance(found, ImportError) else found


@lru_cache(maxsize=1)
def _load() -> Any:
    """The extension, or the error that it failed with."""
    try:
        native_core()  # it holds the pages that the extension takes
        return load_extension("pipelines._io", IO_INTERFACE)
    except ImportError as error:
        return error


def _message(error: ImportError) -> str:
    return (
        f"the native reader of rows is not available: {error}; install with a C++17 compiler at "
        "hand (pip install .), or set BPE_BACKEND=python"
    )


@lru_cache(maxsize=1)
def _warn(message: str) -> None:
    # Cached, so that a process warns once however many blocks it reads.
    warnings.warn(f"{message}; Python reads the same slowly", RuntimeWarning, stacklevel=4)
