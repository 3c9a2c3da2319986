"""Choose and start a Beam runner, and notice when one of its workers dies.

Without `--runner` a job runs in this process: Beam's `FnApiRunner` with one thread per core
(`multi_threading`), where native code works outside the interpreter lock. Every other Beam option
is handed on as it is.

    --runner=DirectRunner     the same as none (Beam's own switch of that name would first try to
                              download Prism, and then ignore the direct_* options)
    --direct_running_mode=multi_processing --direct_num_workers=8
                              eight worker processes on this machine
    --runner=PrismRunner      Beam's portable reference runner; the binary is the one named by
                              --prism_location or the variable BEAM_BPE_PRISM, else `prism` on PATH
    --runner=DaskRunner       a Dask cluster (--dask_client_address, else a local one, which
                              all jobs of a command share)
    --runner=FlinkRunner, PortableRunner, DataflowRunner, SparkRunner
                              as Beam documents them
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import apache_beam as beam
import grpc  # type: ignore[import-untyped]
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from bpe.errors import BpeError, SettingsError
from pipelines.runners.beam_flush_patch import send_without_timer
from pipelines.runners.beam_options import check_values, refuse_unknown_option
from pipelines.runners.dask_cluster import LocalDask
from pipelines.runners.exit_codes import ERROR
from pipelines.runners.local_workers import limit_workers
from pipelines.runners.parent_watchdog import DRIVER_VARIABLE
from pipelines.runners.process_workers import process_environment
from pipelines.runners.worker_errors import TRACEBACK_VARIABLE, own_error, show_traceback

__all__ = [
    "PRISM_VARIABLE",
    "end_process",
    "make_pipeline_options",
    "run_pipeline",
    "worker_command",
]

PRISM_VARIABLE = "BEAM_BPE_PRISM"
_LONGEST_FAULT = 600
# Prism, of a worker that it had, and of one that it waited for in vain.
_LOST_WORKER = re.compile(r"SDK worker disconnected|prism worker\[.*control connection")
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
            value that cannot be one of its option; a runner that cannot run these jobs.
    """
    chooser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    chooser.add_argument("--runner", default="")
    chosen, rest = chooser.parse_known_args(list(arguments))
    name = chosen.runner.rsplit(".", 1)[-1].lower()
    if name == "daskrunner":
        _load_dask()
    unknown = check_values(rest)
    if unknown and name not in _PORTABLE_RUNNERS:
        refuse_unknown_option(unknown, own_options)
    if name in ("", "fnapirunner", "directrunner", "switchingdirectrunner"):
        if name in ("directrunner", "switchingdirectrunner"):
            notice(f"--runner={chosen.runner} runs in this process, as without --runner")
        return PipelineOptions(["--runner=FnApiRunner", *_quiet(_in_process(rest))])
    if name == "bundlebaseddirectrunner":
        raise SettingsError(
            "--runner=BundleBasedDirectRunner: this legacy runner does not run these jobs as "
            "other runners do; leave --runner out to run in this process"
        )
    if name == "prismrunner":
        return PipelineOptions(["--runner=PrismRunner", *_quiet(_with_prism_binary(rest))])
    if name == "daskrunner":
        return PipelineOptions([f"--runner={_DASK_RUNNER}", *_quiet(_with_partitions(rest))])
    return PipelineOptions([f"--runner={chosen.runner}", *rest])


def _with_default(arguments: list[str], option: str, value: object) -> list[str]:
    """Put an option in front unless the user gave it."""
    given = any(argument.split("=", 1)[0] == option for argument in arguments)
    return arguments if given else [f"{option}={value}", *arguments]


def _in_process(rest: list[str]) -> list[str]:
    """Run on as many threads as there are cores unless the user said otherwise."""
    rest = _with_default(rest, "--direct_running_mode", "multi_threading")
    return _with_default(rest, "--direct_num_workers", os.cpu_count() or 1)


def _with_prism_binary(rest: list[str]) -> list[str]:
    rest = _with_default(rest, "--prism_log_level", "warn")
    if any(argument.split("=", 1)[0] == "--prism_location" for argument in rest):
        return rest
    location = os.environ.get(PRISM_VARIABLE) or shutil.which("prism")
    if not location:
        raise SettingsError(
            "--runner=PrismRunner: there is no program prism on PATH; install it with: go install "
            f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{beam.__version__} (which puts it into "
            f"~/go/bin), or name it with --prism_location or {PRISM_VARIABLE}"
        )
    return _with_default(rest, "--prism_location", location)


def _with_partitions(rest: list[str]) -> list[str]:
    """Beam puts 128 elements into one partition: all units of a small job on one worker."""
    if any(argument.startswith("--dask_partition_size") for argument in rest):
        return rest
    return _with_default(rest, "--dask_npartitions", 4 * (os.cpu_count() or 1))


def _quiet(rest: list[str]) -> list[str]:
    """Local workers write to the same terminal; their INFO lines say nothing to a user."""
    return _with_default(rest, "--default_sdk_harness_log_level", "WARNING")


def _load_dask() -> None:
    """Import the runner, with which Beam gets to know its options."""
    try:
        importlib.import_module("dask.distributed")
        importlib.import_module(_DASK_RUNNER.rsplit(".", 1)[0])
    except ImportError as error:
        raise SettingsError(
            f"--runner=DaskRunner needs the package distributed ({error}); "
            "install it with: pip install dask distributed"
        ) from error


def run_pipeline(
    options: PipelineOptions,
    build: Callable[[beam.Pipeline], Any],
    *,
    lost_worker: Callable[[str], None] | None = None,
    dask: LocalDask | None = None,
) -> Any:
    """Build a pipeline, run it, and wait until it is done; returns Beam's result.

    Args:
        options: from `make_pipeline_options`.
        build: applies the transforms to the pipeline that it is given.
        lost_worker: called, on another thread, with a sentence about a worker process that died
            (Beam's `multi_processing` mode then waits for ever); it should end this process. By
            default the sentence goes to stderr and the process ends with exit code 1.
        dask: what jobs on Dask share that are not given a cluster; by default each starts its own.

    Raises:
        BpeError: what a worker reported (`pipelines.runners.worker_errors`), as it was raised
            there; or the runner has lost a worker.
        SettingsError: the runner that was asked for cannot be had or started.
    """
    send_without_timer()
    # Running a pipeline changes its options, and a command may run several with the same.
    options = copy.deepcopy(options)
    with _watch_workers(lost_worker or end_process):
        try:
            with _runner_errors(options):
                if dask is not None and runner_name(options) == "DaskRunner":
                    dask.join(options)
                pipeline = beam.Pipeline(runner=_make_runner(options), options=options)
            build(pipeline)
            limit_workers(pipeline)
            with _runner_errors(options):
                result = pipeline.run()
            _wait(result)
        except BpeError:
            raise
        except Exception as error:
            own = own_error(error) or _lost_worker_error(error)
            if own is None:
                raise
            raise own from None
        return result


def _wait(result: Any) -> None:
    """Wait until a job is done."""
    try:
        result.wait_until_finish()
    finally:
        # On Dask; a client that stays connected keeps the job's results on the cluster.
        client = getattr(result, "client", None)
        if client is not None:
            client.close()


def _lost_worker_error(error: Exception) -> BpeError | None:
    """What to say if a runner gave up because of a worker that died; None for other errors."""
    if not _LOST_WORKER.search(str(error)):
        return None
    show_traceback(error)
    said = str(error).strip().splitlines()[-1][:_LONGEST_FAULT]
    return BpeError(
        f"a worker process died, or never started ({said}); the same command again goes on where "
        "this one stopped"
    )


@contextmanager
def _runner_errors(options: PipelineOptions) -> Iterator[None]:
    """Say in one line why a runner that the user asked for cannot be had or started."""
    try:
        yield
    except Exception as error:
        # In this process a runner starts nothing: what fails there is no matter of options.
        if own_error(error) is not None or runner_name(options) == "FnApiRunner":
            raise
        show_traceback(error)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = " ".join(lines if len(str(error)) <= _LONGEST_FAULT else lines[-1:])
        raise SettingsError(
            f"--runner={runner_name(options)}: {said[:_LONGEST_FAULT] or type(error).__name__}; "
            "check the runner's options and what has to be installed or running for it "
            f"({TRACEBACK_VARIABLE}=1 prints the traceback)"
        ) from error


def _make_runner(options: PipelineOptions) -> Any:
    """A runner where Beam's own would start workers that print too much; else None (Beam's)."""
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing":
        return None
    # Beam's mode of that name is this environment with its own worker command.
    direct.direct_running_mode = "in_memory"
    python = f"{shlex.quote(sys.executable)} -m pipelines.runners.worker_process"
    command = worker_command(python, os.getpid())
    return FnApiRunner(default_environment=process_environment(command))


def worker_command(python: str, driver: int) -> str:
    """Shell line that starts a worker process: deaf to Ctrl-C, and knowing its driver.

    Args:
        python: the command proper, quoted for the shell.
        driver: process id of the driver.
    """
    return f"trap '' INT; export {DRIVER_VARIABLE}={driver}; exec {python}"


@contextmanager
def _watch_workers(lost_worker: Callable[[str], None]) -> Iterator[None]:
    """See worker processes of `multi_processing` die.

    Beam waits for each in a thread of its own, which raises when the process ends badly; nothing
    in Beam looks at that thread, but Python tells `threading.excepthook`. Workers that end because
    this process was interrupted are no news.
    """
    before = threading.excepthook
    interrupted = threading.Event()

    def on_thread_error(details: threading.ExceptHookArgs) -> None:
        text = str(details.exc_value)
        if interrupted.is_set():
            return
        if text.startswith("Worker subprocess exited"):
            lost_worker(f"a worker process died ({text.lower()})")
        # Threads that listened to the dead worker fail as well; nobody needs their tracebacks.
        elif not isinstance(details.exc_value, grpc.RpcError):
            before(details)

    threading.excepthook = on_thread_error
    try:
        with _noted_interrupt(interrupted):
            yield
    finally:
        threading.excepthook = before


@contextmanager
def _noted_interrupt(interrupted: threading.Event) -> Iterator[None]:
    """Set `interrupted` at Ctrl-C, before the KeyboardInterrupt that comes of it is raised."""
    is_main = threading.current_thread() is threading.main_thread()
    # Only the main thread may set handlers; one that somebody else has set stays.
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_process(sentence: str) -> None:
    """Print an error and end this process at once, whatever its threads wait for."""
    sys.stderr.write(f"error: {sentence}\n")
    sys.stderr.flush()
    os._exit(ERROR)


def runner_name(options: PipelineOptions) -> str:
    """A short name of the runner for summaries and manifests."""
    runner = str(options.view_as(StandardOptions).runner)
    return runner.rsplit(".", 1)[-1]
