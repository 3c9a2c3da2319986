"""Checkpoints of training in merge rounds: the merges so far, and where the state lies."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["MERGES", "ROUND_RECORD_VERSION", "RoundRecord", "StateFile"]

ROUND_RECORD_VERSION = 1

MERGES: pa.Schema = with_version(
    pa.schema(
        [
            pa.field("left", pa.uint32(), nullable=False),
            pa.field("right", pa.uint32(), nullable=False),
            pa.field("count", pa.int64(), nullable=False),
        ]
    ),
    "merges",
    1,
)
"""Merges in the order made: row i makes token 256 + i of two earlier ones; `count` is the pair's
count at that moment."""


@dataclass(frozen=True, kw_only=True)
class StateFile:
    """One shard's tokens: name in the state folder, size in bytes, and sha256 (hex)."""

    shard: int
    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """What a step of a round left behind; JSON, written after everything that it names.

    Attributes:
        round: number of the round, from 0.
        step: `count` or `segments`.
        merges: how many are made so far.
        merges_sha256: hash (hex) of the file that holds them (`MERGES`).
        last_count: the pair's count at the last merge; None before the first.
        bytes_sent: what workers sent to the driver in this step.
        seconds: what the step took.
        settings_digest: the same command resumes only if its own is equal.
        state_files: one a shard.
        version: of this description.
    """

    round: int
    step: str
    merges: int
    merges_sha256: str
    last_count: int | None
    bytes_sent: int
    seconds: float
    settings_digest: str
    state_files: list[StateFile]
    version: int = ROUND_RECORD_VERSION
