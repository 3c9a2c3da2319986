"""A job on worker processes ends even if one of them connects after its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

# One of the two workers (Beam numbers them) connects when the other one's error has ended the job.
SCRIPT = """
import sys
import apache_beam as beam
from pipelines.runners import runner_setup

plain = runner_setup.worker_command
late = f"case $WORKER_ID in *{sys.argv[1]}) sleep 6;; esac; "
runner_setup.worker_command = lambda *arguments: late + plain(*arguments)
options = runner_setup.make_pipeline_options(
    ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
)

def fail(value):
    raise ValueError("on purpose")

runner_setup.run_pipeline(
    options, lambda pipeline: pipeline | beam.Create([1]) | beam.Map(fail)
)
"""


@pytest.mark.slow
def test_a_worker_that_connects_after_an_error_is_ended() -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", SCRIPT, late], stderr=subprocess.PIPE, text=True)
        for late in ("[02468]", "[13579]")
    ]
    for job in running:
        _, said = job.communicate(timeout=300)
        assert job.returncode == 1
        assert "on purpose" in said
