"""Modules of `bpe` can be read one by one: none needs itself through the others."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import bpe

ROOT = Path(bpe.__file__).parent


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(root: Path) -> dict[str, set[str]]:
    """Modules below a package that each of them imports, at once or later by `import_module`."""
    paths = {module_name(path, root): path for path in root.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        named: set[str] = set()
        text = path.read_text("utf-8")
        named.update(re.findall(r'import_module\("([\w.]+)"\)', text))
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom):
                named |= {f"{node.module}.{alias.name}" for alias in node.names}
                named.add(str(node.module))
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
        # A module brings the packages around it, but for the outermost: that shows all modules.
        named |= {each.rpartition(".")[0] for each in named}
        around = {root.name, name, name.rpartition(".")[0]}
        graph[name] = {each for each in named if each in paths} - around
    return graph


def test_no_import_circle() -> None:
    order = list(TopologicalSorter(imports_of(ROOT)).static_order())
    assert order.index("bpe.backends.values") < order.index("bpe.backends.protocol")
    assert order.index("bpe.encoding.tokenizer_model") < order.index("bpe.tokenizer")


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "knot"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "left.py").write_text("from knot import right\n")
    (package / "right.py").write_text('importlib.import_module("knot.left")\n')
    with pytest.raises(CycleError):
        list(TopologicalSorter(imports_of(package)).static_order())
