"""One local Dask cluster for all jobs of a command.

Without the address of a cluster, Beam's runner starts one for each job and leaves it running: its
processes take seconds to come up, and a training in rounds is many jobs.
"""

from __future__ import annotations

from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.runners.worker_errors import hide_reported_errors

__all__ = ["LocalDask"]


class LocalDask:
    """A cluster on this machine, started for the first job on Dask that is given none.

    As many workers as Dask thinks right for the machine, and no dashboard, whose port may be taken.
    Jobs on other runners, and those that are given a cluster, are left alone.
    """

    def __init__(self) -> None:
        self._cluster: Any = None

    def join(self, options: PipelineOptions) -> None:
        """Name the cluster in the options of a job on Dask that names none.

        Args:
            options: with those of Dask, which Beam knows once the runner is imported.
        """
        # Both need the package distributed, which only this runner does.
        from apache_beam.runners.dask.dask_runner import DaskOptions  # noqa: PLC0415
        from distributed import LocalCluster  # noqa: PLC0415

        dask = options.view_as(DaskOptions)
        if dask.address or dask.scheduler_file:
            return
        if self._cluster is None:
            preload = ["pipelines.runners.dask_worker"]
            # Without a dashboard there is still a server, which warns if its usual port is taken.
            any_port = {"dashboard_address": ":0"}
            self._cluster = LocalCluster(
                dashboard_address=None, scheduler_kwargs=any_port, preload=preload
            )
            # Its loggers have handlers of their own.
            hide_reported_errors()
        dask.address = self._cluster.scheduler_address

    def close(self) -> None:
        """End the cluster's processes, if it was started."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
