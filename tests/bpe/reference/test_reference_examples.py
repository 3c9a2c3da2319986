"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import bpe

ROOT = Path(bpe.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text()
)


def test_the_specification_has_an_example() -> None:
    assert {"bpe.reference.naive", "bpe.training", "bpe.tokenizer"} <= set(MODULES)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(module, optionflags=options)
    assert result.attempted > 0
    assert result.failed == 0
