"""What all steps of one training in rounds share."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bpe.backends.values import MergeRules

__all__ = ["RoundSetup", "ShardTask"]


@dataclass(frozen=True)
class RoundSetup:
    """What workers and driver know besides the files.

    Attributes:
        folder: of the rounds, OUTPUT/rounds.
        rules: how merges are chosen; `max_merges` is that of the whole training.
        shards: how many there are.
        buckets: how many hash buckets sums are spread over.
        kept_pairs: how many pairs each bucket keeps for the driver, at most.
        budget: bytes of segments in all, after adding.
        shard_cap: bytes of segments from one shard.
        settings_digest: for the records.
    """

    folder: str
    rules: MergeRules
    shards: int
    buckets: int
    kept_pairs: int
    budget: int
    shard_cap: int
    settings_digest: str


@dataclass(frozen=True)
class ShardTask:
    """What one worker does in a step: one shard.

    Attributes:
        shard: its number.
        initial: name of its file before the first merge.
    """

    shard: int
    initial: str

    def to_json(self) -> bytes:
        """The task as the element of a pipeline."""
        return json.dumps([self.shard, self.initial]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> ShardTask:
        """The task that `to_json` wrote."""
        shard, initial = json.loads(data)
        return cls(shard, initial)
