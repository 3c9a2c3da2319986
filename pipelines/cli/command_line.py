"""The command `beam-bpe`: parse, run one command, turn errors into one message and an exit code.

    beam-bpe train  --input 'corpus/*.jsonl' --vocab-size 32768 --output tokenizers/books/v1
    beam-bpe encode --input 'corpus/*.jsonl' --tokenizer tokenizers/books/v1 --output tokens/

`pipelines.runners.exit_codes` says what its exit codes mean. The traceback of a fault is printed if
the environment has BEAM_BPE_TRACEBACK=1.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import warnings
from collections.abc import Sequence

from bpe.errors import BpeError
from pipelines.cli.arguments import (
    BEAM_COMMANDS,
    PRINTING_COMMANDS,
    STORAGE_COMMANDS,
    UsageError,
    make_parser,
)
from pipelines.cli.quick_imports import import_command
from pipelines.cli.standard_streams import ReaderGoneError, standard_streams
from pipelines.runners.exit_codes import DONE, ERROR, INTERRUPTED, USAGE
from pipelines.runners.worker_errors import describe_fault, hide_reported_errors, show_traceback
from pipelines.storage.escape_control import one_line
from pipelines.storage.system_limits import describe_limit

__all__ = ["main", "run"]


def run(argv: Sequence[str]) -> int:
    """Run one command.

    Args:
        argv: the command line without the program's name.

    Returns:
        The exit code.

    Raises:
        BpeError: the command failed.
        UsageError: the command line cannot be parsed, or its options contradict each other.
        SystemExit: argparse ends the program for --help and --version.
    """
    parser = make_parser()
    arguments, rest = parser.parse_known_args(list(argv))
    if rest and arguments.command not in BEAM_COMMANDS | STORAGE_COMMANDS:
        raise UsageError(f"{arguments.command}: unknown argument {rest[0]}")
    arguments.beam_arguments = rest
    arguments.command_line = "beam-bpe " + shlex.join(argv)
    return int(import_command(arguments.command).run(arguments))


def _show_warning(message: Warning | str, *_: object) -> None:
    sys.stderr.write(f"warning: {message}\n")


def _set_up_logging() -> None:
    """Keep what libraries say to what a user of the command needs."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    hide_reported_errors()
    # The closing summary of `train` says it too.
    logging.getLogger("bpe.training").setLevel(logging.ERROR)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; returns one of `exit_codes.EXIT_CODES`."""
    words = sys.argv[1:] if argv is None else argv
    try:
        with standard_streams(product=not PRINTING_COMMANDS.isdisjoint(words[:1])):
            return _main(words)
    except ReaderGoneError:
        return DONE
    except OSError as error:
        if sys.stderr is not None:
            sys.stderr.write(f"error: {one_line(str(error))}\n")
        return ERROR


def _main(argv: Sequence[str]) -> int:
    _set_up_logging()
    try:
        return run(argv)
    except BpeError as error:
        sys.stderr.write(f"error: {one_line(describe_limit(error) or str(error))}\n")
        return ERROR
    except UsageError as error:
        command = next((f"{word} " for word in argv[:1] if not word.startswith("-")), "")
        sys.stderr.write(f"beam-bpe: {one_line(str(error))}; see beam-bpe {command}--help\n")
        return USAGE
    except ReaderGoneError:
        raise
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command again goes on where this one stopped\n")
        sys.stderr.flush()
        # Beam's worker threads do not end by themselves.
        os._exit(INTERRUPTED)
    except OSError as error:
        show_traceback(error)
        sys.stderr.write(f"error: {one_line(describe_limit(error) or str(error))}\n")
        return ERROR
    except Exception as error:  # noqa: BLE001 - whatever it is, the user sees one line
        show_traceback(error)
        sys.stderr.write(f"error: {describe_fault(error)}\n")
        return ERROR
