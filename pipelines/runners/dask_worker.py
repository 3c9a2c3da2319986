"""What the worker processes of the command's own Dask cluster do first; Dask calls `dask_setup`."""

from __future__ import annotations

from pipelines.runners.worker_errors import set_up_worker_logging

__all__ = ["dask_setup"]


def dask_setup(worker: object) -> None:
    """Keep the process quiet about what the driver reports."""
    del worker
    set_up_worker_logging()
