"""Keeps a job from reading its own output, now or when the same command runs again."""

from __future__ import annotations

import os

from bpe.errors import SettingsError
from pipelines.corpus.listing.inputs import InputList
from pipelines.corpus.listing.name_filters import NameFilter
from pipelines.corpus.read_options import ReadOptions
from pipelines.storage.input_patterns import InputPattern, absolute
from pipelines.storage.own_paths import is_local

__all__ = ["refuse_overlap"]

# One file of each kind that a command writes, wherever in its output.
_WRITTEN = ("shard-00000-000.arrow", "run.json", "merges.txt", "512/merges.txt")
_REMEDY = "choose another --output, or a narrower --input"


def refuse_overlap(inputs: InputList, output: str, read: ReadOptions | None = None) -> None:
    """Check that no input file lies in the output, and that no output file would be input.

    Args:
        inputs: of the command.
        output: the output folder; it need not exist.
        read: which files `--include` and `--exclude` choose; None for all.

    Raises:
        SettingsError: one does; names it (or the pattern), the output, and the remedy.
    """
    folder = _real(output) + "/"
    for file in inputs.files:
        if _real(file.path).startswith(folder):
            raise SettingsError(f"--output {output}: the input {file.path} lies in it; {_REMEDY}")
    folder = absolute(output).rstrip("/") + "/"
    names = NameFilter(read.include, read.exclude) if read else NameFilter((), ())
    for pattern in inputs.patterns:
        if any(_would_read(pattern, names, folder + name) for name in _WRITTEN):
            raise SettingsError(
                f"--output {output}: --input {pattern.given} takes its files as input when the "
                f"command runs again; {_REMEDY}"
            )


def _real(path: str) -> str:
    path = absolute(path).rstrip("/")
    return os.path.realpath(path) if is_local(path) else path


def _would_read(pattern: InputPattern, names: NameFilter, path: str) -> bool:
    """Whether a pattern of the input names a path, which need not exist."""
    below = path.removeprefix(pattern.folder)
    return pattern.matches(path) and pattern.shows(path) and names.keeps(below)
