"""Record of a run: a JSON file that a command writes into its output folder before it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

__all__ = ["RUN_VERSION", "InputRecord", "RunRecord"]

RUN_VERSION = 1


class InputRecord(TypedDict):
    """An input file: its path, and its size and modification time in its file system."""

    path: str
    identity: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The run that an output folder belongs to.

    Attributes:
        command: `train` or `encode`.
        settings: options that decide the output, besides the input.
        inputs: every file; empty if training starts from counts.
        version: of this description.
    """

    command: str
    settings: dict[str, Any]
    inputs: list[InputRecord]
    version: int = RUN_VERSION
