"""Beam's options for file systems hold before anything is listed, read or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

from bpe.errors import BpeError
from pipelines.cli import command_line
from pipelines.cli.arguments import UsageError

REGION = "--s3_region_name=eu-west-1"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened: the region that was set, and what was looked for."""
    found: list[str] = []
    set_options = FileSystems.set_options
    match = FileSystems.match
    exists = FileSystems.exists

    def note_options(options: PipelineOptions) -> None:
        found.append(str(options.view_as(S3Options).s3_region_name))
        set_options(options)

    def note_match(patterns: list[str], limits: Any = None) -> Any:
        found.extend(patterns)
        return match(patterns, limits)

    def note_exists(path: str) -> bool:
        found.append(path)
        return bool(exists(path))

    monkeypatch.setattr(FileSystems, "set_options", note_options)
    monkeypatch.setattr(FileSystems, "match", note_match)
    monkeypatch.setattr(FileSystems, "exists", note_exists)
    return found


def commands(path: str, model_dir: Path, output: Path) -> dict[str, list[str]]:
    return {
        "plan": ["plan", "--input", path],
        "train": ["train", "--input", path, "--vocab-size", "300", "--output", str(output)],
        "encode": ["encode", "--input", path, "--tokenizer", str(model_dir), "--output", "none"],
        "encode to": [
            *["encode", "--input", __file__, "--input-format=text", "--output", path],
            *["--tokenizer", str(model_dir)],
        ],
        "verify": ["verify", path],
        "head": ["head", path],
        "export": ["export", path, "--to", "npy", "--output", str(output)],
    }


@pytest.mark.parametrize("command", commands("", Path(), Path()))
def test_options_are_set_before_storage_is_asked(
    command: str, model_dir: Path, tmp_path: Path, seen: list[str]
) -> None:
    arguments = commands("nothing://bucket/a", model_dir, tmp_path / "out")[command]
    with pytest.raises(BpeError, match="nothing://"):
        command_line.run([*arguments, REGION])
    assert seen[0] == "eu-west-1"


@pytest.mark.parametrize("command", ["plan", "verify", "head", "export"])
def test_other_options_are_refused(command: str, model_dir: Path, tmp_path: Path) -> None:
    arguments = commands("nothing://bucket/a", model_dir, tmp_path / "out")[command]
    with pytest.raises(UsageError, match="--rgion"):
        command_line.run([*arguments, "--rgion=x"])


@pytest.mark.parametrize("command", ["encode to", "verify", "head", "export"])
def test_a_file_system_that_is_not_there_is_no_fault(
    command: str, model_dir: Path, tmp_path: Path
) -> None:
    arguments = commands("nothing://bucket/a", model_dir, tmp_path / "out")[command]
    with pytest.raises(BpeError, match=r"nothing here knows nothing://.*install|cannot"):
        command_line.run(arguments)
