"""What the commands that run a job share: reading options, input listing, what they print."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from bpe.errors import SettingsError
from pipelines.cli.arguments import UsageError
from pipelines.cli.standard_streams import note
from pipelines.corpus.document_batches import PIECE_ANOMALIES
from pipelines.corpus.listing.input_columns import check_columns
from pipelines.corpus.listing.input_lists import read_input_lists
from pipelines.corpus.listing.input_overlap import refuse_overlap
from pipelines.corpus.listing.inputs import REFUSED_NOTE, InputList, ReadOptions, list_inputs
from pipelines.runners.beam_options import make_storage_options
from pipelines.runners.progress import format_bytes, format_count
from pipelines.runners.runner_setup import make_pipeline_options
from pipelines.storage.wording import counted

__all__ = [
    "accepted_lines",
    "beam_options",
    "limit_lines",
    "list_and_report",
    "note",
    "read_options",
    "resume_hint",
    "seconds_line",
    "special_text_lines",
    "text_line",
    "use_storage_options",
]

_SHOWN_TOKENS = 5
_KILOBYTE = 1000


def read_options(arguments: Namespace) -> ReadOptions:
    """The reading options of a command line.

    Raises:
        SettingsError: options that contradict each other.
    """
    return ReadOptions(
        input_format=arguments.input_format,
        document_separator=arguments.document_separator,
        text_field=arguments.text_field,
        id_field=arguments.id_field,
        range_bytes=arguments.range_bytes,
        max_row_bytes=arguments.max_row_bytes,
        on_bad_record=arguments.on_bad_record,
        on_bad_file=arguments.on_bad_file,
        max_bad_records=arguments.max_bad_records,
        empty=arguments.empty,
        nulls=arguments.nulls,
        include=tuple(arguments.include),
        exclude=tuple(arguments.exclude),
        limit=arguments.limit,
    )


def beam_options(arguments: Namespace) -> PipelineOptions:
    """The Beam options of a command line, which from now on hold for file systems too.

    Raises:
        UsageError: an option that neither this command nor Beam knows.
    """
    try:
        options = make_pipeline_options(arguments.beam_arguments, note, own_options=_own(arguments))
    except SettingsError as error:
        raise UsageError(str(error)) from error
    # Beam does so when a pipeline is made, and by then the input has been listed.
    FileSystems.set_options(options)
    return options


def use_storage_options(arguments: Namespace) -> None:
    """Take the Beam options of a command line for file systems (`--s3_region_name=…`).

    Raises:
        UsageError: an option that is neither this command's nor one of Beam's for storage.
    """
    try:
        options = make_storage_options(arguments.beam_arguments, own_options=_own(arguments))
    except SettingsError as error:
        raise UsageError(str(error)) from error
    FileSystems.set_options(options)


def _own(arguments: Namespace) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in vars(arguments)]


def list_and_report(arguments: Namespace, read: ReadOptions) -> InputList:
    """List the input files and tell the user what was noticed.

    Raises:
        UsageError: no input is named.
        SettingsError: nothing to read; a column is not there; or files of the command's output
            are, or would be, input.
    """
    patterns = [*arguments.input, *read_input_lists(arguments.input_list)]
    if not patterns:
        raise UsageError("name what to read with --input or --input-list")
    inputs = list_inputs(patterns, read)
    if getattr(arguments, "output", None):
        refuse_overlap(inputs, arguments.output, read)
    for sentence in inputs.notes:
        # `plan` shows these files itself.
        if arguments.command == "plan" and sentence.startswith(REFUSED_NOTE):
            continue
        note(f"note: {sentence}")
    check_columns(inputs.files, read)
    return inputs


def resume_hint(arguments: Namespace) -> str:
    """What to type after a job was cut short."""
    words = arguments.command_line.replace(" --overwrite", "")
    return f"to go on, run again: {words}"


def accepted_lines(accepted: Mapping[str, int], listing: Mapping[str, int]) -> list[str]:
    """Lines of a summary about anomalies that were read all the same, and about the listing.

    Args:
        accepted: by name; documents left out as empty have a line of their own.
        listing: `InputList.counts`.
    """
    counts = {**accepted, **listing}
    dropped = counts.pop("dropped_empty", 0)
    shown = ", ".join(_anomaly(name, count) for name, count in counts.items() if count)
    lines = [f"accepted         {shown}"] if shown else []
    return [*lines, f"dropped as empty {format_count(dropped)}"] if dropped else lines


def _anomaly(name: str, count: int) -> str:
    """An anomaly and how often it occurs; of what, unless it is documents or files."""
    if name in PIECE_ANOMALIES:
        return f"{name} {counted(count, 'piece')}"
    if name == "streamed":
        return f"{name} {counted(count, 'range', 'ranges')}"
    return f"{name} {format_count(count)}"


def limit_lines(limit: int | None) -> list[str]:
    """A summary's line about `--limit`, if there is one."""
    return [] if limit is None else [f"limit            first {counted(limit, 'document')} only"]


def special_text_lines(hits: Mapping[str, int], meaning: str) -> list[str]:
    """A summary's line about special tokens that are spelled out in the text; none if none are.

    Args:
        hits: by token, 0 where there is none.
        meaning: what became of them, such as `as ordinary text`.
    """
    found = sorted((-count, token) for token, count in hits.items() if count)
    shown = ", ".join(f"{format_count(-count)} {token!r}" for count, token in found[:_SHOWN_TOKENS])
    more = len(found) - _SHOWN_TOKENS
    others = f" and {format_count(more)} others" if more > 0 else ""
    return [f"special text     {shown}{others} {meaning}"] if found else []


def seconds_line(seconds: float, size: int | None) -> str:
    """A summary's line about time, with bytes per second if `size` bytes of text were read in it.

    Args:
        seconds: that the command took.
        size: None if some of the text, or all, was not read by this command.
    """
    speed = f" ({format_bytes(size / max(seconds, 1e-9))}/s)" if size else ""
    return f"seconds          {seconds:.1f}{speed}"


def text_line(size: int) -> str:
    """A summary's line about bytes of text, in units too where they say something else."""
    exact, rounded = format_count(size), format_bytes(size)
    return f"bytes of text    {exact}{'' if size < _KILOBYTE else f' ({rounded})'}"
