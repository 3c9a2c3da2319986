"""`EncodeToBatches` in somebody else's pipeline on a Dask cluster of processes."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bpe.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 150
TEXTS = [f"{number}: the hand and {'the ' * (number % 7)}\u00e9" for number in range(300)]
# A Dask runner's results are files or nothing. A file is named by the task that writes it and its
# number there: Dask may run a task again, whose worker was lost, and then the same files are made.
PROGRAM = """
import hashlib, json, os, sys
import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.dask.dask_runner import DaskRunner
from distributed import LocalCluster, get_worker
from pipelines import EncodeToBatches


class Keep(beam.DoFn):
    def __init__(self, folder):
        self._folder = folder

    def start_bundle(self):
        self._count = 0

    def process(self, batch):
        self._count += 1
        task = hashlib.sha256(str(get_worker().get_current_task()).encode()).hexdigest()[:16]
        with open(os.path.join(self._folder, f"{task}-{self._count}"), "w") as file:
            json.dump([os.getpid(), batch.to_pylist()], file)


if __name__ == "__main__":
    model, folder = sys.argv[1:]
    rows = [{"id": str(place), "text": text} for place, text in enumerate(json.load(sys.stdin))]
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 50]) for at in range(0, len(rows), 50)]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = f"--dask_client_address={cluster.scheduler_address}"
        options = PipelineOptions([address, "--dask_npartitions=4"])
        for kind, given in (("rows", rows), ("batches", batches)):
            keep = beam.ParDo(Keep(os.path.join(folder, kind)))
            with beam.Pipeline(runner=DaskRunner(), options=options) as pipeline:
                pipeline | beam.Create(given) | EncodeToBatches(model) | keep
    print(os.getpid())
"""


@pytest.mark.slow
def test_every_row_comes_out_once_with_its_ids(model_dir: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("the package distributed is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    batches = {"rows": len(TEXTS), "batches": len(TEXTS) // 50}
    for kind in batches:
        (tmp_path / kind).mkdir()
    # A cluster within this process has been seen to hang at its end, so it gets one of its own.
    with subprocess.Popen(
        [sys.executable, str(program), str(model_dir), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(json.dumps(TEXTS), timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, err
    tokenizer = Tokenizer.load(model_dir)
    for kind, count in batches.items():
        found = [json.loads(path.read_bytes()) for path in (tmp_path / kind).iterdir()]
        rows = [row for _, batch in found for row in batch]
        assert Counter(row["document_id"] for row in rows) == Counter(map(str, range(len(TEXTS))))
        for row in rows:
            assert row["input_ids"] == tokenizer.encode(TEXTS[int(row["document_id"])]).tolist()
        # The work was done elsewhere; without the ends of bundles, a row is a batch of its own.
        assert int(out.split()[-1]) not in {pid for pid, _ in found}
        assert len(found) == count
