"""What the commands that run a job share: reading options, input listing, what they print."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import metadata

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bpe.errors import SettingsError
from pipelines.arguments import UsageError
from pipelines.inputs import InputList, ReadOptions, list_inputs
from pipelines.plan import Unit
from pipelines.progress import format_bytes
from pipelines.runner_setup import make_pipeline_options

__all__ = [
    "beam_options",
    "code_version",
    "create_units",
    "list_and_report",
    "note",
    "read_options",
    "resume_hint",
    "speed",
]


def note(sentence: str) -> None:
    """Tell the user something that is not the result, on stderr."""
    sys.stderr.write(f"{sentence}\n")


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
    )


def beam_options(arguments: Namespace) -> PipelineOptions:
    """The Beam options of a command line.

    Raises:
        UsageError: an option that neither this command nor Beam knows.
    """
    try:
        return make_pipeline_options(
            arguments.beam_arguments,
            note,
            own_options=[f"--{name.replace('_', '-')}" for name in vars(arguments)],
        )
    except SettingsError as error:
        raise UsageError(str(error)) from error


def list_and_report(arguments: Namespace, read: ReadOptions) -> InputList:
    """List the input files and tell the user what was noticed."""
    inputs = list_inputs(arguments.input, read)
    for sentence in inputs.notes:
        note(f"note: {sentence}")
    return inputs


def create_units(units: list[Unit]) -> beam.PTransform:
    """The first step of a job: its units as JSON, spread over the workers."""
    # Create reshuffles by default; without that all units would run on one worker.
    return "Units" >> beam.Create([unit.to_json().encode() for unit in units])


def resume_hint(arguments: Namespace) -> str:
    """What to type after a job was cut short."""
    words = arguments.command_line.replace(" --overwrite", "")
    return f"to go on, run again: {words}"


def speed(size: int, seconds: float) -> str:
    """Bytes per second for a summary."""
    return f"{format_bytes(size / max(seconds, 1e-9))}/s"


def code_version() -> str:
    """Version of the installed distribution, for manifests."""
    try:
        return metadata.version("beam-bpe")
    except metadata.PackageNotFoundError:
        return "not installed"
