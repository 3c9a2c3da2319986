"""Outputs to check, each encoded once for a test module, and copies to be changed.

A module has a fixture `corpus`, the folder or file to encode, and `ENCODE`, the options of all its
outputs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.cli import command_line

Encoded = Callable[..., Path]


@pytest.fixture(scope="module")
def encoded(
    corpus: Path,
    model_dir: Path,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Encoded:
    """Encodes the corpus, once for each set of options."""
    made: dict[tuple[object, ...], Path] = {}

    def encode(*options: object) -> Path:
        if options not in made:
            made[options] = tmp_path_factory.mktemp("out") / "out"
            command = ("encode", "--input", corpus, "--tokenizer", model_dir)
            arguments = (*command, "--output", made[options], *request.module.ENCODE, *options)
            assert command_line.main([str(each) for each in arguments]) == 0
        return made[options]

    return encode


@pytest.fixture
def copied(encoded: Encoded, tmp_path: Path) -> Encoded:
    """The same, to be changed."""
    return lambda *options: Path(shutil.copytree(encoded(*options), tmp_path / "copy"))
