"""The examples in the docstrings are true."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("schemes", "reference_training", "counting", "training", "symbols")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"bpe.{name}")
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(module, optionflags=options)
    assert result.attempted > 0
    assert result.failed == 0
