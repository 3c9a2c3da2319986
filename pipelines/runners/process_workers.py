"""Worker processes of `--direct_running_mode=multi_processing` that always hear that they may end.

Beam closes the control connection of a worker only if the worker has opened it. One that is still
starting when the job ends (a short job, an early error) then connects, waits for work for ever,
and Beam waits for it.
"""

from __future__ import annotations

from typing import Any

from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    BeamFnControlServicer,
    SubprocessSdkWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import SubprocessSDKEnvironment

__all__ = ["process_environment"]


class _EndingWorkerHandler(SubprocessSdkWorkerHandler):
    """Beam's handler of a worker process, which leaves word for workers that connect late."""

    def close(self) -> None:
        """End the worker, and wait for it."""
        connection: Any = self.control_conn
        connection.push(BeamFnControlServicer._DONE_MARKER)  # noqa: SLF001 - Beam's own end mark
        super().close()


def process_environment(command: str) -> SubprocessSDKEnvironment:
    """Environment of workers that are processes of this machine.

    Args:
        command: shell line that starts one.
    """
    register: Any = WorkerHandler.register_environment
    register(python_urns.SUBPROCESS_SDK, bytes)(_EndingWorkerHandler)
    return SubprocessSDKEnvironment.from_command_string(command)
