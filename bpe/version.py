"""Version of the installed distribution."""

from __future__ import annotations

from importlib import metadata

__all__ = ["__version__"]

try:
    __version__ = metadata.version("beam-bpe")
except metadata.PackageNotFoundError:
    # A source tree on the path that was never installed.
    __version__ = "0+unknown"
