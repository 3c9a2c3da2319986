"""Apache Beam's options on a command line: which there are, and those for storage alone."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence

from apache_beam.options.pipeline_options import (
    AzureOptions,
    GoogleCloudOptions,
    HadoopFileSystemOptions,
    PipelineOptions,
    S3Options,
)

from bpe.errors import SettingsError
from pipelines.runners.local_workers import MOST_WORKERS
from pipelines.storage.wording import parse_whole_number

__all__ = ["check_values", "make_storage_options", "refuse_unknown_option"]

_STORAGE = (AzureOptions, GoogleCloudOptions, HadoopFileSystemOptions, S3Options)


def check_values(arguments: Sequence[str]) -> list[str]:
    """Check the values of the options that Beam knows.

    Beam would print its own usage, of several pages, and end the program.

    Args:
        arguments: options as Beam writes them (`--runner=…`, `--direct_num_workers=4`).

    Returns:
        The arguments that Beam does not know.

    Raises:
        SettingsError: a value that cannot be one of its option.
    """
    return _unknown(_parser(PipelineOptions.__subclasses__()), arguments)


def refuse_unknown_option(unknown: Sequence[str], own_options: Sequence[str]) -> None:
    """A mistyped option of ours must not vanish among Beam's.

    Args:
        unknown: what `check_values` gives.
        own_options: of the command, to suggest.

    Raises:
        SettingsError: always.
    """
    _refuse(unknown, own_options, _parser(PipelineOptions.__subclasses__()), "nor one of Beam's")


def make_storage_options(
    arguments: Sequence[str], *, own_options: Sequence[str] = ()
) -> PipelineOptions:
    """Beam's options for a command that runs no pipeline, and needs them for file systems.

    Args:
        arguments: options as Beam writes them (`--s3_region_name=eu-west-1`).
        own_options: of the command, to suggest where one is mistyped.

    Raises:
        SettingsError: an option for something else, or a value that cannot be one of its option.
    """
    parser = _parser(_STORAGE)
    if unknown := _unknown(parser, arguments):
        _refuse(unknown, own_options, parser, "nor one of Beam's for storage")
    return PipelineOptions(list(arguments))


def _parser(groups: Iterable[type[PipelineOptions]]) -> argparse.ArgumentParser:
    """A parser of the options of some groups of Beam's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for group in sorted(groups, key=lambda each: each.__name__):
        try:
            group._add_argparse_args(parser)  # noqa: SLF001 - Beam offers no public list
        except argparse.ArgumentError:
            continue  # two groups that define the same option
    for action in parser._actions:  # noqa: SLF001 - argparse offers no public list
        if action.dest == "direct_num_workers":
            # Beam takes any number, and fails in odd ways on negative ones.
            action.type = _workers
    return parser


def _workers(text: str) -> int:
    try:
        return parse_whole_number(text, 0, MOST_WORKERS)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _unknown(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    try:
        return parser.parse_known_args(list(arguments))[1]
    except argparse.ArgumentError as error:
        raise SettingsError(str(error).removeprefix("argument ")) from None
    except argparse.ArgumentTypeError as error:
        raise SettingsError(str(error)) from None


def _refuse(
    unknown: Sequence[str],
    own_options: Sequence[str],
    parser: argparse.ArgumentParser,
    what: str,
) -> None:
    option = unknown[0].split("=", 1)[0]
    actions = parser._actions  # noqa: SLF001 - argparse offers no public list
    known = [each for action in actions for each in action.option_strings]
    close = difflib.get_close_matches(option, [*own_options, *known], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise SettingsError(f"{unknown[0]}: neither an option of this command {what}{hint}")
