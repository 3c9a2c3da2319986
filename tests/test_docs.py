"""The documentation builds without a warning, and its reference has every public name."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import bpe
import pipelines
import schemas

ROOT = Path(__file__).resolve().parents[1]
RECORD_NAMES = {"CountManifest", "Manifest", "RunRecord", "ShardSidecar", "UnitRecord"}
MISSING = [
    name for name in ("mkdocs", "mkdocstrings_handlers") if importlib.util.find_spec(name) is None
]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed (extra docs): {', '.join(MISSING)}")
def test_the_documentation_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for package in (bpe, pipelines, schemas):
        page = (tmp_path / "site" / "api" / f"{package.__name__}.html").read_text(encoding="utf8")
        found = set(re.findall(rf'<h\d id="{package.__name__}\.([\w.]+)"', page))
        documented = {name for name in package.__all__ if not name.startswith("__")}
        assert documented <= found


def test_every_guide_is_in_the_menu_and_on_the_first_page() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf8")
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf8")
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").as_posix()
        assert f": {name}\n" in menu, f"mkdocs.yml lacks {name}"
        assert name == "index.md" or f"]({name})" in start, f"docs/index.md lacks {name}"


def test_the_guides_name_every_column_and_field() -> None:
    named: set[str] = set()
    for guide in ("file-formats.md", "layouts-and-exports.md"):
        named.update(re.findall(r"`([\w.]+)`", (ROOT / "docs" / guide).read_text(encoding="utf8")))
    for schema in (
        schemas.token_shard_schema(pa.uint16()),
        schemas.packed_shard_schema(pa.uint16(), 8),
    ):
        assert set(schema.names) <= named
    assert {field.name for field in dataclasses.fields(schemas.Manifest)} <= named
    assert named.issuperset(RECORD_NAMES)


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0] == bpe.__version__
