"""Which of the listed files are not read: those whose name or content is of another format."""

from __future__ import annotations

from collections.abc import Mapping

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.listing.file_formats import classify
from pipelines.corpus.listing.input_heads import Listed, look_at_heads
from pipelines.corpus.read_options import ReadOptions

__all__ = ["REFUSED", "describe_refusals", "find_formats", "group_refusals"]

REFUSED = "refused"
"""Stands for the format of a file that is not read."""

# Of each reason, and of the reasons, so many are named in a message.
_SHOWN_FILES, _SHOWN_REASONS = 3, 8


def find_formats(
    sizes: Mapping[str, int], options: ReadOptions
) -> tuple[list[Listed], dict[str, str]]:
    """Format and compression of each file, and why some are not read.

    Args:
        sizes: of each file in bytes, by path.
        options: `input_format` and `on_bad_file`.

    Returns:
        The files in the order of their paths; and of those that are refused, path to reason.

    Raises:
        SettingsError, BadFileError: names, or contents, are refused, and bad files are not to be
            skipped; one message counts all of them.
    """
    listed: list[Listed] = []
    refusals: dict[str, str] = {}
    for path in sorted(sizes):
        try:
            listed.append((path, sizes[path], *classify(path, options.input_format)))
        except SettingsError as error:
            refusals[path] = str(error).removeprefix(f"{path}: ")
            listed.append((path, sizes[path], REFUSED, "none"))
    by_name = len(refusals)
    if options.input_format == "auto":
        refusals |= look_at_heads([each for each in listed if each[2] != REFUSED])
    if refusals and options.on_bad_file == "fail":
        kind = SettingsError if by_name == len(refusals) else BadFileError
        raise kind(
            f"{describe_refusals(refusals, len(listed))}; choose files with --include and "
            "--exclude, or let train and encode skip and list them with --on-bad-file=skip"
        )
    return [
        (*each[:2], REFUSED, "none") if each[0] in refusals else each for each in listed
    ], refusals


def group_refusals(refusals: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Each reason with the paths of its files; what refuses most files comes first."""
    reasons: dict[str, list[str]] = {}
    for path, refusal in refusals.items():
        reasons.setdefault(refusal, []).append(path)
    return sorted(reasons.items(), key=lambda group: -len(group[1]))


def describe_refusals(refusals: Mapping[str, str], total: int) -> str:
    """Which files are not read and why, those of one reason together; "" if all are read.

    Args:
        refusals: path to reason.
        total: how many files there are in all.
    """
    if len(refusals) == 1:
        [(path, refusal)] = refusals.items()
        return f"{path}: {refusal}"
    groups = group_refusals(refusals)
    shown = [
        f"{len(paths)} such as {', '.join(paths[:_SHOWN_FILES])} ({refusal})"
        for refusal, paths in groups[:_SHOWN_REASONS]
    ]
    rest = sum(len(paths) for _, paths in groups[_SHOWN_REASONS:])
    shown += [f"{rest} for other reasons"] if rest else []
    return f"{len(refusals)} of {total} files cannot be read: {'; '.join(shown)}" if shown else ""
