"""The backend in force, and the native core that one of them uses.

The environment variable `BPE_BACKEND` chooses: `auto` (default) takes `native` and falls back to
`python` with one warning; `native` and `python` insist.
"""

from __future__ import annotations

import importlib
import os
import warnings
from functools import lru_cache
from typing import Any

from bpe.backends.protocol import Backend
from bpe.errors import BackendError, SettingsError

__all__ = [
    "BACKEND_NAMES",
    "get_backend",
    "load_extension",
    "native_core",
    "native_core_if_there",
]

# Of the native core that these sources need, as in bpe/native/python/python_module.cc.
NATIVE_INTERFACE = 12

BACKEND_NAMES = ("auto", "native", "python")


def get_backend(name: str | None = None) -> Backend:
    """Backend of a name in `BACKEND_NAMES`; by default what `BPE_BACKEND` says, else `auto`.

    Raises:
        SettingsError: the name is unknown.
        BackendError: `native` is asked for and missing.
    """
    wanted = name or os.environ.get("BPE_BACKEND") or "auto"
    if wanted not in BACKEND_NAMES:
        source = "backend" if name else "environment variable BPE_BACKEND"
        raise SettingsError(f"{source} is {wanted!r}: use one of {', '.join(BACKEND_NAMES)}")
    if wanted == "python":
        return _python_backend()
    if wanted == "native":
        return _native_backend()
    return _best_backend()


@lru_cache(maxsize=1)
def _python_backend() -> Backend:
    # Imported when asked for: a process needs one of the two.
    backend: Backend = importlib.import_module("bpe.reference.portable_backend").PythonBackend()
    return backend


def native_core() -> Any:
    """The extension module, if it fits these sources: an old one would fail in the middle of work.

    Raises ImportError: it was not built, or from other sources.
    """
    return load_extension("bpe._native", NATIVE_INTERFACE)


def load_extension(name: str, interface: int) -> Any:
    """Import an extension module whose INTERFACE must be this one.

    Raises ImportError: it was not built, or from other sources.
    """
    module = importlib.import_module(name)
    found = getattr(module, "INTERFACE", None)
    if found != interface:
        raise ImportError(
            f"{module.__file__} was compiled from other sources (its interface is {found}, and "
            f"{interface} is needed)"
        )
    return module


@lru_cache(maxsize=1)
def native_core_if_there() -> Any:
    """The same, or None where there is none: for what no result depends on."""
    try:
        return native_core()
    except ImportError:
        return None


@lru_cache(maxsize=1)
def _native_backend() -> Backend:
    try:
        native_core()
        module = importlib.import_module("bpe.backends.native_backend")
    except ImportError as error:
        raise BackendError(
            f"backend 'native' is not available: {error}; install with a C++17 compiler at hand "
            "(pip install .), or set BPE_BACKEND=python"
        ) from error
    backend: Backend = module.NativeBackend()
    return backend


@lru_cache(maxsize=1)
def _best_backend() -> Backend:
    # Cached, so that a process warns once however often it asks.
    try:
        return _native_backend()
    except BackendError as error:
        warnings.warn(
            f"{error}; using the python backend, which gives the same results slowly",
            RuntimeWarning,
            stacklevel=3,
        )
        return _python_backend()
