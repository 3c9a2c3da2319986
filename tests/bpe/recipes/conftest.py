"""What tests of recipes share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny(data_dir: Path) -> Path:
    return data_dir / "tiny_shakespeare.txt"
