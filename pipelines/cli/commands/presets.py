"""`beam-bpe presets`: the presets of `train`, and the options that each stands for."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace

from pipelines.training.presets import PRESETS

__all__ = ["run"]

_INDENT = " " * 19
_WIDTH = 100


def run(arguments: Namespace) -> int:
    """Run the command, which has no options."""
    del arguments
    sys.stdout.write("\n".join(_describe(name) for name in PRESETS))
    return 0


def _describe(name: str) -> str:
    preset = PRESETS[name]
    lines = [f"{name}: {preset.of}"]
    for option, value in preset.settings():
        lines += _wrapped(f"  {option:<16} {value}")
    if preset.differs:
        lines += _wrapped(f"  {'differs':<16} {preset.differs}")
    return "\n".join([*lines, ""])


def _wrapped(line: str) -> list[str]:
    # A pattern is to be copied as it is.
    if "regex:" in line:
        return [line]
    return textwrap.wrap(line, _WIDTH, subsequent_indent=_INDENT, drop_whitespace=True)
