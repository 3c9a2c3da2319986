"""What workers emit is not lost: no timer empties their buffers, and lost counts are noticed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import data_plane

from pipelines import CountSettings, CountWords, ReadOptions
from pipelines.runners.runner_setup import make_pipeline_options, run_pipeline
from pipelines.training import count_words


class Write(beam.DoFn):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def process(self, element: tuple[int, Iterable[int]]) -> None:
        key, values = element
        (Path(self.folder) / f"{key}-{time.time_ns()}").write_text(str(len(list(values))))


def test_no_timer_empties_a_buffer_that_is_being_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    stream = data_plane.TimeBasedBufferingClosableOutputStream

    def make(*arguments: Any, **options: Any) -> Any:
        made.append(arguments)
        return stream(*arguments, **options)

    monkeypatch.setattr(data_plane, "TimeBasedBufferingClosableOutputStream", make)
    run_pipeline(
        make_pipeline_options(["--direct_num_workers=2"]),
        lambda pipeline: (
            pipeline
            | beam.Create(list(range(64)))
            | beam.Map(lambda value: (value % 4, value)).with_output_types(tuple[int, int])
            | beam.GroupByKey()
            | beam.ParDo(Write(str(tmp_path)))
        ),
    )
    assert not made
    found = sorted((path.name[0], path.read_text()) for path in tmp_path.iterdir())
    assert found == [(key, "16") for key in "0123"]


def test_counting_in_a_pipeline_of_ones_own_runs_without_the_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS", 1000)
    _ = beam.Pipeline() | beam.Create([b""]) | CountWords(CountSettings("gpt2"), ReadOptions())
    assert worker_handlers.DATA_BUFFER_TIME_LIMIT_MS == 0


def test_counts_that_a_runner_loses_are_noticed(
    tmp_path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one two three four five six seven eight nine ten " * 9)
    split = count_words.split_by_bucket

    def lose_one(*arguments: Any) -> Iterator[tuple[int, Any]]:
        pieces = split(*arguments)
        next(pieces)
        return pieces

    monkeypatch.setattr(count_words, "split_by_bucket", lose_one)
    done = run("train", "--input", source, "--vocab-size", 260, "--output", tmp_path / "out")
    assert done.code == 1
    assert "91 pre-tokens were counted, but the tables hold " in done.err
    assert not (tmp_path / "out" / "counts" / "manifest.json").exists()
