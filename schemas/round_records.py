"""Checkpoints of training in merge rounds: the result of each step.

    rounds/initial.json         the state before the first merge, and what it was made of
    rounds/r007-count.json      round 7 has counted pairs and chosen the heavy ones
    rounds/r007-segments.json   round 7 has made its merges

Each is written last of what it names, so that its presence means "complete".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from schemas.round_state import StateFile
from schemas.run_record import InputRecord
from schemas.versions import with_version

__all__ = [
    "MERGES",
    "ROUND_RECORD_VERSION",
    "CountRecord",
    "InitialRecord",
    "RoundSummary",
    "SegmentsRecord",
]

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
count at that moment. A round's file holds all merges up to its end."""


@dataclass(frozen=True, kw_only=True)
class InitialRecord:
    """The state before the first merge.

    Attributes:
        settings: what decides the merges, and how the state is laid out; the same command resumes
            only if its own are equal.
        inputs: every file; empty where the state was made of counts.
        totals: of what was read, for the training record.
        state_files: one a shard, in order.
        seconds: that it took to make.
        ended: when it was done, seconds since 1970.
        version: of this description.
    """

    settings: dict[str, Any]
    inputs: list[InputRecord]
    totals: dict[str, Any]
    state_files: list[StateFile]
    seconds: float
    ended: float
    version: int = ROUND_RECORD_VERSION


@dataclass(frozen=True, kw_only=True)
class CountRecord:
    """The first step of a round: pairs are counted, heavy ones chosen.

    Attributes:
        round: number of the round, from 0.
        settings_digest: sha256 (hex) of the settings in `InitialRecord`.
        merges: how many were made before this round.
        adjacencies: sum of all counts of pairs that may be merged.
        bytes_sent: what workers sent to be added up.
        files: sha256 (hex) by name in the round's folder.
        stop_reason: why no merge follows, as in `MergeList`; None if some may.
        state_files: one a shard, in order: the state that was counted.
        seconds: that the step took.
        ended: when it was done, seconds since 1970.
        version: of this description.
    """

    round: int
    settings_digest: str
    merges: int
    adjacencies: int
    bytes_sent: int
    files: dict[str, str]
    stop_reason: str | None
    state_files: list[StateFile]
    seconds: float
    ended: float
    version: int = ROUND_RECORD_VERSION


@dataclass(frozen=True, kw_only=True)
class SegmentsRecord:
    """The second step of a round: segments are simulated, merges accepted.

    Attributes:
        round: number of the round, from 0.
        settings_digest: as in `CountRecord`.
        merges: how many are made so far, this round's among them.
        last_count: the pair's count at the last merge; None before the first.
        heavy_pairs: how many heavy pairs the segments were cut by.
        segments, segment_bytes: how many distinct ones the driver got, and their coded size.
        bytes_sent: what workers sent to be added up.
        coverage: of the rounds to come, see `bpe.rounds.heavy_set`.
        files: sha256 (hex) by name in the round's folder.
        stop_reason: why training ends with this round; None if it continues.
        seconds: that the step took.
        ended: when it was done, seconds since 1970.
        version: of this description.
    """

    round: int
    settings_digest: str
    merges: int
    last_count: int | None
    heavy_pairs: int
    segments: int
    segment_bytes: int
    bytes_sent: int
    coverage: float
    files: dict[str, str]
    stop_reason: str | None
    seconds: float
    ended: float
    version: int = ROUND_RECORD_VERSION


@dataclass(frozen=True, kw_only=True)
class RoundSummary:
    """One row of the table of rounds in a training record.

    Attributes:
        round: number of the round, from 0.
        merges: made in it.
        vocabulary: tokens after it, without special tokens.
        last_count: the pair's count at its last merge; None if it made none.
        heavy_pairs, segments, segment_bytes: as in `SegmentsRecord`.
        bytes_sent: what workers sent in both steps.
        seconds: that both steps took.
    """

    round: int
    merges: int
    vocabulary: int
    last_count: int | None
    heavy_pairs: int
    segments: int
    segment_bytes: int
    bytes_sent: int
    seconds: float
