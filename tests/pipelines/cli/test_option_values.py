"""Values of options: what cannot be is refused when the command line is read, in one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DirectOptions

from bpe.errors import SettingsError
from pipelines.cli.command_line import run as run_command
from pipelines.exports.export_run import refuse_inside
from pipelines.runners.local_workers import limit_workers
from pipelines.runners.runner_setup import make_pipeline_options, run_pipeline
from pipelines.training.rounds.options import RoundOptions

Run = Callable[..., Any]
HUGE = "99999999999999999999999"
TRAIN = ("train", "--vocab-size", "300", "--input", "x", "--output", "y")
ENCODE = ("encode", "--tokenizer", "t", "--input", "x", "--output", "y")
EXPORT = ("export", "x", "--to", "litdata", "--output", "y")
SIZES = "--range-bytes", "--max-row-bytes"
OPTIONS = [
    *[
        (TRAIN, option, HUGE)
        for option in (
            *("--vocab-size", "--min-frequency", "--max-token-bytes", "--superbpe-from"),
            *("--sample-bytes", "--sample-seed", "--driver-memory", "--state-shards"),
            *("--rounds-per-job", "--segment-budget", "--shard-segment-cap"),
            *("--max-bad-records", "--direct_num_workers", *SIZES),
        )
    ],
    *[
        (ENCODE, option, HUGE)
        for option in (
            *("--max-row-tokens", "--pack", "--seed", "--shard-bytes", "--max-bad-records"),
            *("--direct_num_workers", *SIZES),
        )
    ],
    *[(EXPORT, option, HUGE) for option in ("--block-size", "--tokens-per-file")],
    *[(EXPORT, "--val-fraction", value) for value in ("nan", "inf", "1", "0", "1e-999")],
    *[(("head", "x"), "--rows", value) for value in (HUGE, "0", "-1", "1.0", "²", "")],
    *[(("plan", "--input", "x"), "--sample-rows", value) for value in (HUGE, "0", "-1")],
    *[(("inspect", "x"), "--count", value) for value in (HUGE, "0", "-1")],
    *[(("inspect", "x"), "--id", value) for value in (HUGE, "x", "-1")],
    *[
        (TRAIN, option, "0")
        for option in (
            *("--vocab-size", "--min-frequency", "--max-token-bytes", "--superbpe-from"),
            *("--sample-bytes", "--driver-memory", "--state-shards", "--rounds-per-job"),
        )
    ],
    *[(TRAIN, "--segment-budget", value) for value in ("nan%", "inf%", "101%")],
    (TRAIN, "--state-shards", "65537"),
    (TRAIN, "--rounds-per-job", "33"),
    (TRAIN, "--max-bad-records", "-1"),
    (TRAIN, "--driver-memory", "9" * 500 + ".5"),
    (TRAIN, "--vocab-size", "9" * 5000),
    *[(ENCODE, "--pack", value) for value in ("0", "-1", "many", "1.5", "", HUGE)],
    *[
        (ENCODE, "--split", value)
        for value in ("train", "a=x", "a=nan", "a=2", "a=0", "../a=1", "=1", "a b=1")
    ],
    (ENCODE, "--max-row-tokens", "0"),
    *[(TRAIN, "--direct_num_workers", value) for value in ("-3", "-1", "1025", "abc")],
    *[(ENCODE, "--direct_num_workers", value) for value in ("-3", "-1", "1025", "abc")],
    (ENCODE, "--direct_running_mode", "foo"),
    (TRAIN, "--direct_running_mode", ""),
]


@pytest.mark.parametrize(("command", "option", "value"), OPTIONS)
def test_values_that_cannot_be_are_named_before_work(
    command: tuple[str, ...], option: str, value: str, run: Run
) -> None:
    refused = run(*command, option, value)
    assert refused.code == 2
    assert refused.out == ""
    (line,) = refused.err.splitlines()
    assert option in line
    assert repr(value[:60])[:-1] in line
    assert line.endswith(f"; see beam-bpe {command[0]} --help")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a=0.5,b=0.4", "--split: 'a=0.5,b=0.4': the shares add up to 0.9, not to 1"),
        ("a=0.5,A=0.5", "--split: 'a=0.5,A=0.5': the names a, a are not all different"),
        ("", "--split: ''"),
        ("a=2", "--split: 'a=2': a=2: a share is more than 0 and at most 1"),
    ],
)
def test_splits_that_cannot_be_are_named(value: str, expected: str, run: Run) -> None:
    refused = run(*ENCODE, "--split", value)
    assert refused.code == 2
    assert f"beam-bpe: encode: {expected}" in refused.err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("encode", "--tokenizer", "", "--input", "x", "--output", "y"), "--tokenizer"),
        (("encode", "--tokenizer", "t", "--input", "", "--output", "y"), "--input"),
        (("encode", "--tokenizer", "t", "--input-list", "", "--output", "y"), "--input-list"),
        (("encode", "--tokenizer", "t", "--input", "x", "--output", ""), "--output"),
        ((*TRAIN, "--golden", ""), "--golden"),
        ((*TRAIN, "--from-counts", ""), "--from-counts"),
        ((*TRAIN, "--output", "file://"), "--output"),
        (("verify", ""), "DIR"),
        (("head", " "), "DIR"),
        (("export", "", "--to", "hf", "--output", "y"), "DIR"),
        (("inspect", ""), "TOKENIZER"),
    ],
)
def test_empty_paths_are_named(command: tuple[str, ...], option: str, run: Run) -> None:
    refused = run(*command)
    assert refused.code == 2
    assert f"{option}: " in refused.err
    assert "is empty; give a path" in refused.err
    assert refused.err.count("\n") == 1


def test_the_largest_values_do_their_work(tmp_path: Path, model_dir: Path, run: Run) -> None:
    """What is allowed overflows nowhere."""
    (tmp_path / "a.txt").write_text("low lower lowest\n" * 9)
    given, most = ("--input", tmp_path / "a.txt"), 2**63 - 1
    train = ("train", *given, "--vocab-size", 2**21, "--max-token-bytes", most)
    sizes = ("--range-bytes", most, "--driver-memory", most)
    assert run(*train, *sizes, "--output", tmp_path / "tok").code == 0
    rare = ("train", *given, "--vocab-size", 300, "--min-frequency", most)
    assert run(*rare, "--output", tmp_path / "none").code == 0
    tokens = ("--max-row-tokens", 2**31 - 1, "--shard-bytes", most, "--seed", -(2**63))
    encode = ("encode", *given, "--tokenizer", model_dir, *tokens, "--split", "a=.5,b=.5")
    assert run(*encode, "--range-bytes", most, "--output", tmp_path / "out").code == 0
    for command in (
        ("head", tmp_path / "out", "--rows", most),
        ("inspect", model_dir, "--count", most),
        ("plan", *given, "--sample-rows", most),
    ):
        assert run(*command).code == 0


@pytest.mark.parametrize(("elements", "asked", "started"), [(300, 250, 250), (20, 250, 20)])
def test_no_more_workers_start_than_there_is_work(elements: int, asked: int, started: int) -> None:
    options = make_pipeline_options([f"--direct_num_workers={asked}"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | "Units" >> beam.Create(range(elements)) | beam.Map(str)
    limit_workers(pipeline)
    assert pipeline.options.view_as(DirectOptions).direct_num_workers == started


def test_few_workers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps after a grouping have work for some even if one unit is read; 0 is every core."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    for asked, started in ((1, 1), (3, 3), (8, 8), (9, 8), (0, 8)):
        options = make_pipeline_options([f"--direct_num_workers={asked}"])
        pipeline = beam.Pipeline(options=options)
        _ = pipeline | beam.Create(["unit"])
        limit_workers(pipeline)
        assert pipeline.options.view_as(DirectOptions).direct_num_workers == started


def test_a_pipeline_leaves_the_options_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A global shuffle runs two with the same options, and both want the processes asked for."""
    given = ["--direct_running_mode=multi_processing", "--direct_num_workers=9"]
    options = make_pipeline_options(given)
    monkeypatch.setattr(beam.Pipeline, "run", lambda _: Mock())
    run_pipeline(options, lambda pipeline: pipeline | beam.Create([1]) | beam.Map(str))
    direct = options.view_as(DirectOptions)
    assert (direct.direct_running_mode, direct.direct_num_workers) == ("multi_processing", 9)


def test_from_counts_knows_other_folders(
    tmp_path: Path, model_dir: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("low lower lowest\n" * 9)
    assert run("train", "--input", "a.txt", "--vocab-size", 300, "--output", "tok").code == 0
    encode = ("encode", "--input", "a.txt", "--tokenizer", model_dir, "--output", "enc")
    assert run(*encode).code == 0
    for path, expected in {
        "enc": "enc: is an output of beam-bpe encode; give OUTPUT/counts of a beam-bpe train",
        "tok": "tok: is a tokenizer; give tok/counts\n",
        ".": "./manifest.json: is missing",
        "nothing": "nothing/manifest.json: is missing",
    }.items():
        refused = run("train", "--from-counts", path, "--vocab-size", 300, "--output", "new")
        assert refused.code == 1
        assert expected in refused.err
        assert "--overwrite" not in refused.err


def test_a_driver_that_is_too_small_for_rounds_too_is_noted(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.txt").write_text("low lower lowest\n" * 9)
    train = ("train", "--input", tmp_path / "a.txt", "--vocab-size", 259)
    done = run(*train, "--driver-memory", 1, "--output", tmp_path / "tok")
    assert done.code == 0
    assert "warning: also in rounds the driver takes about" in done.err
    assert "more than --driver-memory 1 byte" in done.err


def test_an_export_within_the_folder_is_refused(tmp_path: Path, model_dir: Path, run: Run) -> None:
    """Also of a folder without run.json, which its shards do not need."""
    (tmp_path / "a.txt").write_text("low")
    given = ("--input", tmp_path / "a.txt", "--tokenizer", model_dir)
    output = tmp_path / "enc"
    assert run("encode", *given, "--output", output).code == 0
    for _ in range(2):
        refused = run("export", output, "--to", "npy", "--output", output / "in")
        assert refused.code == 1
        assert "choose a folder outside" in refused.err
        assert not (output / "in").exists()
        (output / "__beam-bpe__/run.json").unlink(missing_ok=True)
    refuse_inside(str(tmp_path / "beside"))
    shutil.rmtree(output)


def test_messages_show_line_feeds_of_names_as_escapes(tmp_path: Path, run: Run) -> None:
    name = tmp_path / "a\n\x1b[31mb"
    refused = run("verify", name)
    assert refused.code == 1
    assert r"a\n\x1b[31mb" in refused.err
    assert refused.err.count("\n") == 1
    (tmp_path / "c\nd.txt").write_text("x")
    (tmp_path / "_c\nd.txt").write_text("x")
    noted = run("plan", "--input", tmp_path)
    assert r"_c\nd.txt" in noted.err


def test_a_file_beside_the_tokenizer_is_not_said_to_be_missing(model_dir: Path, run: Run) -> None:
    refused = run("inspect", model_dir / "merges.txt")
    assert refused.code == 1
    assert "merges.txt without its vocabulary; give the folder with vocab.json" in refused.err


@pytest.mark.parametrize(
    "options", [{"state_shards": 0}, {"state_shards": 65537}, {"rounds_per_job": 33}]
)
def test_the_library_refuses_what_the_command_does(options: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="give 1 to"):
        RoundOptions(**options)  # type: ignore[arg-type]


def test_usage_errors_are_raised_to_callers() -> None:
    with pytest.raises(Exception, match="head: --rows: '0' is not a whole number from 1 to"):
        run_command(["head", "x", "--rows", "0"])


def test_a_misspelt_option_is_named_before_the_one_that_is_missing(run: Run) -> None:
    refused = run("encode", "--input", "a.txt", "--tokeniser", "t", "--output", "o")
    assert refused.code == 2
    assert refused.err == (
        "beam-bpe: --tokeniser: unknown option; did you mean --tokenizer?; "
        "see beam-bpe encode --help\n"
    )
