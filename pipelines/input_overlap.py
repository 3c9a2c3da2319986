"""Keeps a job from reading its own output, now or when the same command runs again."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from apache_beam.io.filesystems import FileSystems

from bpe.errors import SettingsError
from pipelines.inputs import InputFile, is_local

__all__ = ["refuse_overlap"]

# One file of each kind that a command writes, wherever in its output.
_WRITTEN = ("shard-00000-000.arrow", "run.json", "merges.txt", "tokenizer/merges.txt")
_REMEDY = "choose another --output, or a narrower --input"
_GLOB = re.compile(r"[*?\[]")


def refuse_overlap(patterns: Sequence[str], files: Sequence[InputFile], output: str) -> None:
    """Check that no input file lies in the output, and that no output file would be input.

    Args:
        patterns: as given on the command line.
        files: what they name now.
        output: the output folder; it need not exist.

    Raises:
        SettingsError: one does; names it (or the pattern), the output, and the remedy.
    """
    folder = _real(output) + "/"
    for file in files:
        if _real(file.path).startswith(folder):
            raise SettingsError(f"--output {output}: the input {file.path} lies in it; {_REMEDY}")
    folder = _absolute(output) + "/"
    for pattern in patterns:
        if any(_would_read(pattern, folder + name) for name in _WRITTEN):
            raise SettingsError(
                f"--output {output}: --input {pattern} takes its files as input when the command "
                f"runs again; {_REMEDY}"
            )


def _absolute(path: str) -> str:
    path = path.removeprefix("file://")
    return os.path.abspath(path) if is_local(path) else path.rstrip("/")


def _real(path: str) -> str:
    path = _absolute(path)
    return os.path.realpath(path) if is_local(path) else path


def _would_read(pattern: str, path: str) -> bool:
    """Whether a pattern of `pipelines.inputs.list_inputs` names a path, which need not exist."""
    glob = _absolute(pattern)
    special = None if os.path.isdir(glob) else _GLOB.search(glob)
    fixed = glob + "/" if special is None else glob[: glob.rfind("/", 0, special.start()) + 1]
    rest = glob[len(fixed) :] or "**"
    if not path.startswith(fixed):
        return False
    # Hidden names are left out, but for a first one that the pattern spells out.
    spelled_out = 0 if _GLOB.match(rest) else 1
    names = path[len(fixed) :].split("/")[spelled_out:]
    if any(name.startswith((".", "_")) for name in names):
        return False
    whole = fixed.replace("[", "[[]") + rest
    translated = FileSystems.get_filesystem(fixed).translate_pattern(whole)
    return re.match(translated, path) is not None
