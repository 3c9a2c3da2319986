"""What a command leaves in its output folder before it works, as a JSON file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

__all__ = ["RUN_VERSION", "InputRecord", "RunRecord"]

RUN_VERSION = 1


class InputRecord(TypedDict):
    """One input file: its path, and size and modification time as its file system tells them."""

    path: str
    identity: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Whose an output folder is.

    Attributes:
        command: `train` or `encode`.
        settings: what decides the output besides the input.
        inputs: every file; empty for a training on counts.
        version: of this description.
    """

    command: str
    settings: dict[str, Any]
    inputs: list[InputRecord]
    version: int = RUN_VERSION
