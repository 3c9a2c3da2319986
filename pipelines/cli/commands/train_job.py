"""What the steps of `beam-bpe train` share."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions

from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Plan
from pipelines.corpus.settings import reading_settings
from pipelines.runners.dask_cluster import LocalDask
from pipelines.runners.runner_setup import end_process, make_pipeline_options, run_pipeline
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import REJECTS_FOLDER
from pipelines.training.rounds.options import RoundOptions
from pipelines.training.train_bpe import TrainSettings

__all__ = ["COUNTS_FOLDER", "FIRST_STAGE", "SECOND_COUNTS", "TrainJob", "reading_settings_of"]

COUNTS_FOLDER = "counts"
"""Sub-folder of the output for the count table."""

SECOND_COUNTS = "counts-superbpe"
"""The same for the second stage of SuperBPE."""

FIRST_STAGE = "first-stage"
"""Sub-folder of the output for the tokenizer of the first stage of SuperBPE."""

_JOB_NAME = "beam-bpe-train"


@dataclass(frozen=True)
class TrainJob:
    """One command.

    Attributes:
        arguments: as they were parsed.
        read: how the input is read.
        settings: what decides the merges, besides the input.
        rounds: engine, sample, and how rounds are set up.
        plan: the input; None for a training on counts.
        listing: `InputList.counts`.
        base: tokenizer that is gone on from; None for a training from bytes.
        dask: shared by all jobs; to be closed after them.
    """

    arguments: Namespace
    read: ReadOptions
    settings: TrainSettings
    rounds: RoundOptions
    plan: Plan | None
    listing: Mapping[str, int]
    base: Tokenizer | None = None
    dask: LocalDask = field(default_factory=LocalDask)

    @property
    def output(self) -> str:
        """Folder of the command."""
        return str(self.arguments.output)

    @property
    def rejects_folder(self) -> str:
        """Where the lists of rows and files lie that were set aside."""
        if self.is_raw:
            return join(self.output, REJECTS_FOLDER)
        if self.arguments.from_counts:
            return join(str(self.arguments.from_counts), REJECTS_FOLDER)
        counts = COUNTS_FOLDER if self.settings.superbpe_from is None else SECOND_COUNTS
        return join(self.output, counts, REJECTS_FOLDER)

    @property
    def is_raw(self) -> bool:
        """Whether merges cross anything but document ends."""
        return self.settings.pretokenizer == "none"

    @property
    def memory(self) -> int:
        """Bytes that training may take on this machine."""
        if self.arguments.driver_memory is not None:
            return int(self.arguments.driver_memory)
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2

    def run_job(self, name: str, build: Callable[[beam.Pipeline], Any]) -> None:
        """Run the pipeline that `build` makes, under the job's name and this one."""
        # Made anew for each: running a pipeline changes its options.
        options = make_pipeline_options(self.arguments.beam_arguments)
        cloud = options.view_as(GoogleCloudOptions)
        cloud.job_name = f"{cloud.job_name or _JOB_NAME}-{name}"
        run_pipeline(
            options,
            build,
            lost_worker=lambda what: end_process(f"{what}; {job.resume_hint(self.arguments)}"),
            dask=self.dask,
        )


def reading_settings_of(read: ReadOptions) -> dict[str, Any]:
    """Reading options that can change the counts; where files are cut cannot."""
    settings = reading_settings(read)
    del settings["range_bytes"]
    return settings
