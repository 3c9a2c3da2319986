"""The worker process of `--direct_running_mode=multi_processing`: Beam's own, less talkative.

Started as `python -m pipelines.runners.worker_process` by `pipelines.runners.runner_setup`, which
has the shell ignore Ctrl-C for it: the driver handles that, and ends its workers by ending. Beam
hands it its addresses in environment variables.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

import grpc  # type: ignore[import-untyped]

from bpe.backends.process_memory import bound_free_memory
from pipelines.runners.parent_watchdog import end_with_driver
from pipelines.runners.worker_errors import set_up_worker_logging

__all__ = ["main"]


def main() -> None:
    """Serve the runner until it closes the connection."""
    end_with_driver()
    bound_free_memory()
    set_up_worker_logging()
    _end_with_connection()
    # Beam logs while it is imported, and would set up logging by itself.
    from apache_beam.runners.worker import sdk_worker_main  # noqa: PLC0415

    try:
        sdk_worker_main.main(sys.argv)
    except grpc.RpcError:
        os._exit(1)
    # Without the interpreter's own end: a thread of Beam's that is inside native code at that
    # moment would abort the process, and the driver would take that for a worker that died.
    logging.shutdown()
    os._exit(0)


def _end_with_connection() -> None:
    """When the connection to the driver breaks, end at once instead of after the current unit.

    The driver has died or given up, and the next run may start on the same output.
    """
    before = threading.excepthook

    def on_thread_error(details: threading.ExceptHookArgs) -> None:
        if isinstance(details.exc_value, grpc.RpcError):
            os._exit(1)
        before(details)

    threading.excepthook = on_thread_error


if __name__ == "__main__":
    main()
