"""Fixtures of the tests of rounds: small texts and the options that make several rounds of them."""

from __future__ import annotations

from pathlib import Path

import pytest

FEW_ROUNDS = ("--engine", "rounds", "--state-shards", 3, "--segment-budget", "500B")
"""Several rounds over several shards for a text of some kilobytes."""


@pytest.fixture
def short(tiny: Path, tmp_path: Path) -> Path:
    """The first 6,000 bytes of a small English text, with some runs of one byte added."""
    return write_short(tiny, tmp_path)


def write_short(tiny: Path, folder: Path) -> Path:
    """Write that text into a folder."""
    path = folder / "short.txt"
    path.write_bytes(tiny.read_bytes()[:6000] + b"-" * 500 + b"\n" + b"=" * 301)
    return path
