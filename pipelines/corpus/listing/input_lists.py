"""Reads files that list inputs, one path or pattern a line."""

from __future__ import annotations

import os
from collections.abc import Sequence

from apache_beam.io.filesystem import BeamIOError

from bpe.errors import SettingsError
from pipelines.corpus.text.read_text import BOM
from pipelines.storage.output_files import read_bytes

__all__ = ["read_input_lists"]


def read_input_lists(paths: Sequence[str]) -> list[str]:
    r"""The paths and patterns that some files list, in their order.

    A line is taken as it stands, spaces included; lines end at `\n` or `\r\n`, and empty ones are
    passed over. There are no comments, since a file's name may begin with any character. A relative
    path is relative to the working directory, as on the command line. A name that holds a line feed
    or ends in a carriage return cannot be listed: `--input` takes it.

    Args:
        paths: of the lists, on any file system that Beam knows.

    Raises:
        SettingsError: a list cannot be read, or lists nothing.
    """
    return [pattern for path in paths for pattern in _read(path)]


def _read(path: str) -> list[str]:
    try:
        content = read_bytes(path)
    except (OSError, ValueError, BeamIOError) as error:
        raise SettingsError(f"--input-list {path}: cannot be read: {error}") from error
    lines = content.removeprefix(BOM).split(b"\n")
    patterns = [os.fsdecode(line.removesuffix(b"\r")) for line in lines]
    patterns = [pattern for pattern in patterns if pattern.strip()]
    if not patterns:
        raise SettingsError(f"--input-list {path}: lists nothing; write a path or pattern a line")
    if any("\0" in pattern for pattern in patterns):
        raise SettingsError(f"--input-list {path}: is no text; write a path or pattern a line")
    return patterns
