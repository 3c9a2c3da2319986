"""Disks that fail and elements that run twice: no document lost or repeated, no half file seen."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystems import FileSystems

from pipelines.corpus import table_files
from pipelines.corpus.arrow import read_arrow
from pipelines.encoding import encode_documents, shuffle_buckets

Run = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
Tree = Callable[[Path], dict[str, bytes]]
ROOT = Path(__file__).resolve().parents[3]
TEXTS = [f"{number}: the hand and the {'h' * (number % 50)}" for number in range(600)]
KEEP = ("--on-bad-file", "skip")


def write_corpus(folder: Path, kind: str) -> list[str]:
    """Files of a kind; returns options that name the documents by their numbers."""
    folder.mkdir()
    halves = (0, TEXTS[:300]), (300, TEXTS[300:])
    for name, (first, texts) in zip("ab", halves, strict=True):
        rows = [{"id": str(first + i), "text": text} for i, text in enumerate(texts)]
        if kind == "parquet":
            pq.write_table(
                pa.Table.from_pylist(rows), folder / f"{name}.parquet", row_group_size=50
            )
            continue
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        data = gzip.compress(lines) if kind == "jsonl.gz" else lines
        (folder / f"{name}.{kind}").write_bytes(data)
    return ["--id-field", "id"]


def documents(output: Path) -> Counter[str]:
    """How often each document is in the shards."""
    found: Counter[str] = Counter()
    for path in output.glob("*.arrow"):
        with pa.memory_map(str(path)) as file:
            found.update(pa.ipc.open_file(file).read_all()["document_id"].to_pylist())
    return found


def half_files(output: Path) -> list[str]:
    """Shards with a final name that cannot be read, or that their sidecars do not describe."""
    bad = []
    for path in output.glob("__beam-bpe__/sidecars/*.json"):
        sidecar = json.loads(path.read_bytes())
        shard = output / sidecar["file"]
        if not shard.exists() or shard.stat().st_size != sidecar["file_bytes"]:
            bad.append(path.name)
    for path in output.glob("*.arrow"):
        with pa.memory_map(str(path)) as file:
            pa.ipc.open_file(file).read_all().validate(full=True)
    return bad


class FailingReads:
    """Opens input files through Beam; a read fails, or all from one on do.

    Args:
        corpus: folder of the files.
        at: number of the read, from 1, over all files; 0 for none.
        lasts: whether the reads after it fail as well.
    """

    def __init__(self, corpus: Path, at: int, *, lasts: bool) -> None:
        self.reads = 0
        self._corpus = str(corpus)
        self._at = at
        self._lasts = lasts
        self._open = FileSystems.open
        self._lock = threading.Lock()

    def open(self, path: str, *args: Any, **options: Any) -> Any:
        file = self._open(path, *args, **options)
        return _FailingFile(file, self) if path.startswith(self._corpus) else file

    def count(self) -> None:
        """One read more."""
        with self._lock:
            self.reads += 1
            hit = self.reads == self._at or (self._lasts and self.reads > self._at)
            if self._at and hit:
                raise OSError(5, f"the disk failed at read {self.reads}")


class _FailingFile:
    def __init__(self, file: Any, failing: FailingReads) -> None:
        self._file = file
        self._failing = failing

    def read(self, size: int = -1) -> bytes:
        self._failing.count()
        data: bytes = self._file.read(size)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.fixture
def through_beam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local Parquet files are read through Beam's file system too."""
    for module in (table_files, read_arrow):
        if hasattr(module, "is_local"):
            monkeypatch.setattr(module, "is_local", lambda _: False)


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("through_beam")
@pytest.mark.parametrize("failure", ["once", "for good"])
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
def test_a_read_that_fails_loses_and_repeats_nothing(
    kind: str,
    failure: str,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = tmp_path / "corpus"
    named = write_corpus(corpus, kind)
    command = ["encode", "--input", corpus, *named, "--tokenizer", model_dir]
    command += ["--range-bytes", 4000, "--direct_num_workers", 1]

    def encode(output: Path, at: int, *options: str) -> tuple[Any, int]:
        failing = FailingReads(corpus, at, lasts=failure == "for good")
        with monkeypatch.context() as patched:
            patched.setattr(FileSystems, "open", failing.open)
            done = run(*command, *options, "--output", output)
        return done, failing.reads

    whole, reads = encode(tmp_path / "whole", 0)
    assert whole.code == 0, whole.err
    wanted = tree_bytes(tmp_path / "whole")
    # A disk that stays broken fails at the same places.
    places = {1, 2, reads // 2, reads - 1} if failure == "once" else {2, reads - 1}
    for at in sorted(places):
        output = tmp_path / f"out{at}"
        failed, _ = encode(output, at)
        if kind == "parquet" and at == 1 and failure == "once":
            # Looking for the columns before the job, where an error is left to the job to find.
            assert tree_bytes(output) == wanted
            continue
        assert failed.code == 1, at
        assert "the disk failed" in failed.err
        assert str(corpus) in failed.err
        assert not (output / "__beam-bpe__/manifest.json").exists()
        assert not half_files(output)
        assert max(documents(output).values(), default=1) == 1
        again, _ = encode(output, 0)
        assert again.code == 0, again.err
        assert tree_bytes(output) == wanted
    assert documents(tmp_path / "whole") == Counter(map(str, range(len(TEXTS))))


@pytest.mark.parametrize("kind", ["jsonl.gz", "jsonl"])
def test_a_file_that_cannot_be_read_is_left_out_whole_or_stops_the_run(
    kind: str, model_dir: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus"
    named = write_corpus(corpus, kind)
    failing = FailingReads(corpus / f"b.{kind}", 3 if kind == "jsonl" else 1, lasts=True)
    monkeypatch.setattr(FileSystems, "open", failing.open)
    output = tmp_path / "out"
    done = run(
        *("encode", "--input", corpus, *named, "--tokenizer", model_dir, "--output", output),
        *("--range-bytes", 4000, "--direct_num_workers", 1, *KEEP),
    )
    assert not half_files(output)
    if kind == "jsonl":
        # Units read parts of it, which may be in the output already.
        assert done.code == 1
        assert "cannot leave it out" in done.err
        return
    assert done.code == 0, done.err
    assert documents(output) == Counter(map(str, range(300)))
    assert "bad_file 1" in done.out


STEPS = [
    (encode_documents._EncodeUnit, "none"),
    (shuffle_buckets._SpillUnit, "global"),
    (shuffle_buckets._WriteBucket, "global"),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("way", ["one after the other", "at the same time", "half, then again"])
@pytest.mark.parametrize(("step", "shuffle"), STEPS, ids=["encode", "spill", "bucket"])
def test_an_element_that_runs_twice_leaves_the_same_files(
    step: Any,
    shuffle: str,
    way: str,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = write_corpus(tmp_path / "corpus", "jsonl")
    command = ["encode", "--input", tmp_path / "corpus", *named, "--tokenizer", model_dir]
    command += ["--range-bytes", 4000, "--shard-bytes", 5000, "--shuffle", shuffle]
    assert run(*command, "--output", tmp_path / "once").code == 0
    process = step.process
    runs = itertools.count()

    def twice(self: Any, element: bytes) -> Iterator[bytes]:
        next(runs)
        if way == "at the same time":
            with ThreadPoolExecutor(2) as pool:
                both = list(pool.map(lambda _: list(process(self, element)), range(2)))
            assert both[0] == both[1]
            yield from both[1]
            return
        first = list(
            itertools.islice(process(self, element), 1 if way.startswith("half") else None)
        )
        assert first
        yield from process(self, element)

    monkeypatch.setattr(step, "process", twice)
    done = run(*command, "--output", tmp_path / "twice")
    assert done.code == 0, done.err
    assert next(runs) > 1
    assert tree_bytes(tmp_path / "twice") == tree_bytes(tmp_path / "once")
    assert documents(tmp_path / "twice") == Counter(map(str, range(len(TEXTS))))


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_costs_no_document(
    tiny: Path,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("the package distributed is not installed")
    from distributed import LocalCluster

    command = ["encode", "--input", tiny, "--input-format", "lines", "--tokenizer", model_dir]
    command += ["--range-bytes", "20kB"]
    output, whole = tmp_path / "out", tmp_path / "whole"
    # The workers write, and this process starts them.
    slow_disk = str(ROOT / "tests/pipelines/slow_disk")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([slow_disk, str(ROOT)]))
    monkeypatch.setenv("SECONDS_PER_RENAME", "0.1")
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        address = f"--dask_client_address={cluster.scheduler_address}"
        driver = start(*command, "--output", output, "--runner=DaskRunner", address)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not any(output.glob("__beam-bpe__/sidecars/*.json")):
            time.sleep(0.02)
        assert driver.poll() is None
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        _, err = driver.communicate(timeout=120)
    assert driver.returncode == 0, err
    assert run(*command, "--output", whole).code == 0
    assert documents(output) == documents(whole)
    assert {path.name: path.read_bytes() for path in output.glob("*.arrow*")} == {
        path.name: path.read_bytes() for path in whole.glob("*.arrow*")
    }


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("shuffle", "blocks"), [("none", 24), ("shard", 60), ("global", 8), ("global", 50)]
)
def test_a_disk_that_is_full_is_one_message_and_the_same_command_goes_on(
    shuffle: str, blocks: int, model_dir: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    """No file may grow beyond a limit; Python sees that as it sees a full disk."""
    named = write_corpus(tmp_path / "corpus", "jsonl")
    command = ["encode", "--input", tmp_path / "corpus", *named, "--tokenizer", model_dir]
    command += ["--range-bytes", 40_000, "--shuffle", shuffle, "--direct_num_workers=1"]
    output = tmp_path / "out"
    limit = blocks << 10
    done = subprocess.run(
        [sys.executable, "-m", "pipelines", *map(str, command), "--output", str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        check=False,
    )
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert str(output) in errors[0]
    assert "File too large" in errors[0]
    assert "Traceback" not in done.stderr
    assert not (output / "__beam-bpe__/manifest.json").exists()
    assert not half_files(output)
    again = run(*command, "--output", output)
    assert again.code == 0, again.err
    assert run(*command, "--output", tmp_path / "whole").code == 0
    assert tree_bytes(output) == tree_bytes(tmp_path / "whole")
    assert documents(output) == Counter(map(str, range(len(TEXTS))))
