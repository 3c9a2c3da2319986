"""Imports a command's modules without what only slows a short run down."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType

__all__ = ["import_command"]


def import_command(name: str) -> ModuleType:
    """Import the module of a command, for a process that runs this command and nothing else.

    Beam's modules are many objects that live as long as the process: looking through them for
    garbage again and again takes a tenth of the time of the import, so that waits for its end, and
    leaves them out from then on.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with _without("pandas"):
            import pyarrow as pa  # noqa: PLC0415 - takes as long as all else that starts here

            # It looks for pandas once.
            pa.array([0])
            module = importlib.import_module(f"pipelines.cli.commands.{name.replace('-', '_')}")
        gc.freeze()
    finally:
        if collects:
            gc.enable()
    return module


class _Missing(MetaPathFinder):
    """Says of a module that it is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Refuse the module's name, and leave all others to the finders that follow."""
        del path, target
        if fullname == self._name:
            raise ModuleNotFoundError(f"{fullname} is not loaded here", name=fullname)


@contextmanager
def _without(name: str) -> Iterator[None]:
    """Let an optional module seem to be missing, unless it is loaded already.

    Beam and pyarrow import pandas wherever it is installed, for columns of a kind that no command
    reads or writes. Neither has a switch for that, and Beam does so while it is imported. Without
    this, `encode` of a small file takes a third more processor time (2.0 s in place of 1.5 s).
    Only the command does this, for its own process; the library leaves `sys.meta_path` alone.
    """
    finder = _Missing(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
