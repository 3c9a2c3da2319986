"""Choose and start a Beam runner, and notice when one of its workers dies.

Without `--runner` a job runs in this process: Beam's `FnApiRunner` with one thread per core
(`multi_threading`), where native code works outside the interpreter lock. Every other Beam option
is handed on as it is.

    --runner=DirectRunner     the same as none (Beam's own switch of that name would first try to
                              download Prism, and then ignore the direct_* options)
    --direct_running_mode=multi_processing --direct_num_workers=8
                              eight worker processes on this machine
    --runner=PrismRunner      Beam's portable reference runner; the binary is the one named by
                              --prism_location or the variable BEAM_BPE_PRISM, else `prism` on PATH,
                              else Beam downloads it
    --runner=DaskRunner       a Dask cluster (--dask_client_address, else a local one)
    --runner=FlinkRunner, PortableRunner, DataflowRunner, SparkRunner
                              as Beam documents them
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from bpe.errors import BpeError, SettingsError
from pipelines.worker_errors import own_error

__all__ = ["PRISM_VARIABLE", "end_process", "make_pipeline_options", "run_pipeline"]

PRISM_VARIABLE = "BEAM_BPE_PRISM"
_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"
# Runners whose own service may take options that the Python SDK does not list.
_PORTABLE_RUNNERS = frozenset(
    {"flinkrunner", "portablerunner", "sparkrunner", "dataflowrunner", "kafkastreamsrunner"}
)


def make_pipeline_options(
    arguments: Sequence[str],
    notice: Callable[[str], None] = lambda _: None,
    *,
    own_options: Sequence[str] = (),
) -> PipelineOptions:
    """Pipeline options from the command line's Beam part, with the defaults of this module.

    Args:
        arguments: options as Beam writes them (`--runner=…`, `--direct_num_workers=4`).
        notice: told, in one sentence each, what was changed on the user's behalf.
        own_options: options of the command, to suggest where one is mistyped.

    Returns:
        Options that name a runner by a path that Beam can import.

    Raises:
        SettingsError: an option that Beam does not know, for a runner that takes no others; a
            runner that cannot run these jobs.
    """
    chooser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    chooser.add_argument("--runner", default="")
    chosen, rest = chooser.parse_known_args(list(arguments))
    name = chosen.runner.rsplit(".", 1)[-1].lower()
    if name not in _PORTABLE_RUNNERS:
        _refuse_unknown_options(rest, own_options)
    if name in ("", "fnapirunner", "directrunner", "switchingdirectrunner"):
        if name in ("directrunner", "switchingdirectrunner"):
            notice(f"--runner={chosen.runner} runs in this process, as without --runner")
        return PipelineOptions(["--runner=FnApiRunner", *_in_process(rest)])
    if name == "bundlebaseddirectrunner":
        raise SettingsError(
            "--runner=BundleBasedDirectRunner: this legacy runner does not run these jobs as "
            "other runners do; leave --runner out to run in this process"
        )
    if name == "prismrunner":
        return PipelineOptions(["--runner=PrismRunner", *_with_prism_binary(rest)])
    runner = _DASK_RUNNER if name == "daskrunner" else chosen.runner
    if name == "daskrunner":
        _require_dask()
    return PipelineOptions([f"--runner={runner}", *rest])


def _in_process(rest: list[str]) -> list[str]:
    """Run on as many threads as there are cores unless the user said otherwise."""
    given = {argument.split("=", 1)[0] for argument in rest}
    added = []
    if "--direct_running_mode" not in given:
        added.append("--direct_running_mode=multi_threading")
    if "--direct_num_workers" not in given:
        added.append(f"--direct_num_workers={os.cpu_count() or 1}")
    return [*added, *rest]


def _with_prism_binary(rest: list[str]) -> list[str]:
    if any(argument.split("=", 1)[0] == "--prism_location" for argument in rest):
        return rest
    location = os.environ.get(PRISM_VARIABLE) or shutil.which("prism")
    return [f"--prism_location={location}", *rest] if location else rest


def _require_dask() -> None:
    try:
        import dask.distributed  # noqa: F401, PLC0415 - only this runner needs it
    except ImportError as error:
        raise SettingsError(
            f"--runner=DaskRunner needs the package distributed ({error}); "
            "install it with: pip install 'beam-bpe[dask]'"
        ) from error


def _refuse_unknown_options(rest: list[str], own_options: Sequence[str]) -> None:
    """A mistyped option of ours must not vanish among Beam's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for group in sorted(PipelineOptions.__subclasses__(), key=lambda each: each.__name__):
        try:
            group._add_argparse_args(parser)  # noqa: SLF001 - Beam offers no public list
        except argparse.ArgumentError:
            continue  # two groups that define the same option
    try:
        _, unknown = parser.parse_known_args(rest)
    except (argparse.ArgumentError, argparse.ArgumentTypeError):
        return  # a bad value of a Beam option: Beam's own message says more
    if not unknown:
        return
    option = unknown[0].split("=", 1)[0]
    known = [each for action in parser._actions for each in action.option_strings]  # noqa: SLF001
    close = difflib.get_close_matches(option, [*own_options, *known], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise SettingsError(f"{unknown[0]}: neither an option of this command nor one of Beam's{hint}")


def run_pipeline(
    options: PipelineOptions,
    build: Callable[[beam.Pipeline], Any],
    *,
    lost_worker: Callable[[str], None] | None = None,
) -> None:
    """Build a pipeline, run it, and wait until it is done.

    Args:
        options: from `make_pipeline_options`.
        build: applies the transforms to the pipeline that it is given.
        lost_worker: called, on another thread, with a sentence about a worker process that died
            (Beam's `multi_processing` mode then waits for ever); it should end this process. By
            default the sentence goes to stderr and the process ends with exit code 1.

    Raises:
        BpeError: what a worker reported (`pipelines.worker_errors`), as it was raised there.
    """
    with _watch_workers(lost_worker or end_process):
        try:
            pipeline = beam.Pipeline(options=options)
            build(pipeline)
            result = pipeline.run()
            result.wait_until_finish()
        except BpeError:
            raise
        except Exception as error:
            own = own_error(error)
            if own is None:
                raise
            raise own from None


@contextmanager
def _watch_workers(lost_worker: Callable[[str], None]) -> Iterator[None]:
    """See worker processes of `multi_processing` die.

    Beam waits for each in a thread of its own, which raises when the process ends badly; nothing
    in Beam looks at that thread, but Python tells `threading.excepthook`.
    """
    before = threading.excepthook

    def on_thread_error(details: threading.ExceptHookArgs) -> None:
        text = str(details.exc_value)
        if text.startswith("Worker subprocess exited"):
            lost_worker(f"a worker process died ({text.lower()})")
        else:
            before(details)

    threading.excepthook = on_thread_error
    try:
        yield
    finally:
        threading.excepthook = before


def end_process(sentence: str) -> None:
    """Print an error and end this process at once, whatever its threads wait for."""
    sys.stderr.write(f"error: {sentence}\n")
    sys.stderr.flush()
    os._exit(1)


def runner_name(options: PipelineOptions) -> str:
    """A short name of the runner for summaries and manifests."""
    runner = str(options.view_as(StandardOptions).runner)
    return runner.rsplit(".", 1)[-1]
