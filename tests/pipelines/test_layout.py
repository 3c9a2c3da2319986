"""The folders of `pipelines` in one order: what stands higher may import what stands lower."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEVELS = {
    "storage": 0,
    "runners": 1,
    "corpus": 2,
    "shards": 3,
    "training": 4,
    "encoding": 4,
    "verify": 5,
    "exports": 5,
    "cli": 6,
}
MODULES = sorted(path for folder in LEVELS for path in (ROOT / "pipelines" / folder).rglob("*.py"))


def imported_folders(path: Path) -> Iterator[tuple[str, int]]:
    """Folders of `pipelines` that a module imports from, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "pipelines":
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            first, _, rest = node.module.partition(".")
            if first == "pipelines":
                yield rest.partition(".")[0], node.lineno
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from ((name[1], node.lineno) for name in names if name[0] == "pipelines")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(ROOT / "pipelines").parts[0]
    for folder, line in imported_folders(path):
        if folder != own:
            assert LEVELS[folder] < LEVELS[own], f"line {line} imports from {folder}"


def test_the_library_imports_no_pipelines_and_no_beam() -> None:
    for path in sorted((ROOT / "bpe").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            roots = {name.partition(".")[0] for name in names}
            assert not roots & {"apache_beam", "pipelines", "schemas"}, path


def test_the_tree_is_as_contributing_says() -> None:
    top = ROOT / "pipelines"
    entries = {path.relative_to(top).parts[0] for path in top.rglob("*.py")}
    assert entries == {*LEVELS, "__init__.py", "__main__.py"}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert [folder for folder in LEVELS if folder not in text] == []
