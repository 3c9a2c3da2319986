"""What commands say when something is in the way is true, and helps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.shards.shard_files import REPAIR
from pipelines.storage import output_files
from tests.pipelines.conftest import ROOT, Run


@pytest.fixture
def given(small: Path, model_dir: Path, tmp_path: Path) -> list[Any]:
    """Arguments that encode a small text to `out`."""
    return ["encode", "--input", small, "--tokenizer", model_dir, "--output", tmp_path / "out"]


def test_the_advice_about_a_damaged_shard_repairs_it(
    given: list[Any], tmp_path: Path, run: Run
) -> None:
    assert run(*given).code == 0
    output = tmp_path / "out"
    shard = output / "shard-00000-000.arrow"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100] + bytes(50) + whole[-50:])
    # Of equal size, so that the command alone does not notice.
    assert "nothing to do" in run(*given).err
    for told in (run("verify", output), run("export", output, "--to", "npy", "--output", "x")):
        assert told.code == 1
        assert REPAIR in told.err
    shard.unlink()
    assert run(*given).code == 0
    assert shard.read_bytes() == whole
    assert run("verify", output).code == 0


@pytest.mark.parametrize("place", ["out", "out/x", "out/rejects", "out/x/y"])
def test_an_export_into_an_output_of_encode_is_refused(
    place: str, given: list[Any], tmp_path: Path, run: Run
) -> None:
    assert run(*given).code == 0
    output = tmp_path / "out"
    for overwrite in ([], ["--overwrite"]):
        export = ("export", output, "--to", "npy", "--output", tmp_path / place, *overwrite)
        refused = run(*export)
        assert refused.code == 1
        assert f"--output {tmp_path / place}: " in refused.err
        assert "beam-bpe encode; choose a" in refused.err
    assert not list(output.rglob("*.npy"))
    assert run("verify", output).code == 0


@pytest.mark.parametrize("command", ["train", "encode", "export"])
def test_a_finished_output_that_cannot_be_written_is_finished(
    command: str, given: list[Any], small: Path, tmp_path: Path, run: Run, read_only: Any
) -> None:
    train = ["train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "tok"]
    export = ["export", tmp_path / "out", "--to", "npy", "--output", tmp_path / "npy"]
    wanted = {"train": train, "encode": given, "export": export}[command]
    for each in (given, wanted):
        assert run(*each).code == 0
    read_only(str(tmp_path))
    again = run(*wanted)
    assert again.code == 0, again.err
    assert "is finished" in again.err
    refused = run(*wanted, "--overwrite")
    assert refused.code == 1
    assert "cannot be written" in refused.err
    options = {
        "train": ("--vocab-size", 299),
        "encode": ("--empty", "drop"),
        "export": ("--dtype", "uint32"),
    }
    other = run(*wanted, *options[command])
    assert other.code == 1
    assert "cannot be written" in other.err


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a folder one that no file can be made in."""
    create = output_files._create

    def protect(folder: str) -> None:
        def refuse(path: str) -> Any:
            if path.startswith(folder):
                raise PermissionError(13, "Permission denied", path)
            return create(path)

        monkeypatch.setattr(output_files, "_create", refuse)

    return protect


@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_training_says_where_the_rejects_are(scheme: str, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "the cat the cat"}\nnonsense\n')
    output = tmp_path / "out"
    given = ("--input", source, "--vocab-size", 260, "--pretokenizer", scheme)
    done = run("train", *given, "--on-bad-record", "skip", "--output", output)
    assert done.code == 0, done.err
    [rejects] = output.rglob("unit-*.jsonl")
    assert f"rejected         bad_json 1 (see {rejects.parent})\n" in done.out
    if scheme == "gpt2":
        counts = ("--from-counts", output / "counts", "--vocab-size", 259)
        again = run("train", *counts, "--pretokenizer", scheme, "--output", tmp_path / "again")
        assert f"(see {rejects.parent})\n" in again.out


@pytest.mark.parametrize("engine", ["driver", "rounds"])
@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_training_on_nothing_but_rejects_fails(
    scheme: str, engine: str, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": 3}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    output = tmp_path / "out"
    refused = run(
        *("train", "--input", tmp_path / "*.jsonl*", "--vocab-size", 300, "--output", output),
        *("--on-bad-record", "skip", "--on-bad-file", "skip"),
        *("--pretokenizer", scheme, "--engine", engine),
    )
    assert refused.code == 1
    assert "nothing is left to train on: all of the input was set aside" in refused.err
    assert "1 bad row and 1 bad file (bad_file: 1, text_not_string: 1)" in refused.err
    assert not (output / "config.json").exists()
    [folder] = {path.parent for path in output.rglob("unit-*.jsonl")}
    assert f"{folder} lists it" in refused.err


def test_names_with_line_feeds_stay_on_one_line(model_dir: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a\nb\té.txt"
    source.write_text("the")
    output = tmp_path / "out"
    given = ("--input", source, "--tokenizer", model_dir)
    for layout in ([], ["--pack", 4, "--pad-id", 0]):
        done = run("encode", *given, "--output", output, "--overwrite", *layout)
        assert done.code == 0, done.err
        assert "\na\\nb\\té.txt  document 0:0" in f"\n{run('head', output).out}"


def test_the_summary_of_two_stages_says_which_one_it_counts(
    small: Path, tmp_path: Path, run: Run
) -> None:
    given = ("--input", small, "--superbpe-from", 20, "--vocab-size", 300)
    done = run("train", *given, "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert " (second stage)\n" in done.out
    one = run("train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "one")
    assert "(second stage)" not in one.out


@pytest.mark.parametrize("module", ["pipelines", "pipelines.cli"])
def test_both_modules_are_the_command(module: str, model_dir: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "inspect", str(model_dir), "--text", "the"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 tokens: " in done.stdout
    assert not done.stderr
