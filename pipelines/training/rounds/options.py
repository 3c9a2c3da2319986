"""How training in merge rounds is set up: what of it the user may say, and what follows from it.

None of this decides the merges but the sample; `RoundOptions` imports no Beam, so that the command
line can use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bpe.errors import SettingsError

__all__ = [
    "BLOCK_BYTES",
    "DEFAULT_SAMPLE_BYTES",
    "ENGINES",
    "FIRST_BYTES_NAMES",
    "MOST_ROUNDS_PER_JOB",
    "MOST_STATE_SHARDS",
    "RoundOptions",
    "Sample",
    "SegmentBudget",
    "estimate_rounds",
]

ENGINES = ("auto", "driver", "rounds")
"""Where merges are chosen: by one trainer on the driver, or by rounds over the workers."""

BLOCK_BYTES = 64 << 10
"""A file that is one document is sampled in blocks of this length."""

DEFAULT_SAMPLE_BYTES = 1 << 30
"""Without `--sample-bytes`, so much text is read whole, and sampled down to it where there is
more."""

FIRST_BYTES_NAMES = {"feste-200000": 200_000}
"""Samples that have a name because another trainer takes them: so many bytes from the start."""

MOST_ROUNDS_PER_JOB = 32
"""Graphs of longer chains are too deep for Beam, which walks them by recursion."""

MOST_STATE_SHARDS = 1 << 16
"""More files than this cost a round more than their work does; a shard may be of any size."""

_DEFAULT_SHARE = 0.01
# A budget below this saves nothing that anyone would notice.
_DEFAULT_LEAST = 1 << 20
_DEFAULT_CAP = 8 << 20
# Text in a shard: enough shards to share out, each small enough for a worker's memory.
_SHARD_BYTES, _MOST_SHARD_BYTES = 32 << 20, 256 << 20
_FEWEST_SHARDS, _LEAST_SHARD_BYTES = 8, 64 << 10
# A corpus of which a sample is taken still has to be read by many.
_READ_BYTES, _MOST_READERS = 256 << 20, 256


@dataclass(frozen=True)
class Sample:
    """Which part of a corpus raw training takes; `pipelines.training.rounds.sample` applies it.

    Attributes:
        share: of the documents, 0 to 1; 1 for all of them.
        seed: another one gives another sample.
        first_bytes: instead, only so many bytes from the start of the corpus; None for no such
            limit.
    """

    share: float = 1.0
    seed: int = 0
    first_bytes: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out, and no file is cut into blocks."""
        return self.share >= 1 and self.first_bytes is None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for records and for comparison."""
        if self.first_bytes is not None:
            return {"first_bytes": self.first_bytes}
        if self.share >= 1:
            return {"share": 1.0}
        return {"share": self.share, "seed": self.seed, "block_bytes": BLOCK_BYTES}


@dataclass(frozen=True)
class SegmentBudget:
    """What all segments of a round may take, after those of all shards are added up.

    Attributes:
        bytes: a fixed number; None for a share of the state.
        share: of the state's tokens, a byte each; used if `bytes` is None.
        least: the budget is no less, bytes.
    """

    bytes: int | None = None
    share: float = _DEFAULT_SHARE
    least: int = _DEFAULT_LEAST

    def of(self, tokens: int) -> int:
        """The budget for a state of so many tokens, bytes; at least 1."""
        if self.bytes is not None:
            return self.bytes
        return max(1, self.least, int(self.share * tokens))


@dataclass(frozen=True)
class RoundOptions:
    """What the user says about rounds, and about the sample of raw training.

    Attributes:
        engine: one of `ENGINES`.
        state_shards: how many shards the state has, roughly; None to go by its size.
        budget: of segments.
        shard_cap: most bytes of segments from one shard; None to go by the budget.
        rounds_per_job: how many rounds one pipeline holds.
        sample_bytes: `all`, a number of bytes, the name of a sample (`FIRST_BYTES_NAMES`), or None
            for all of a corpus up to `DEFAULT_SAMPLE_BYTES` and a sample of that size beyond.
        sample_seed: of the sample.

    Raises:
        SettingsError: a number below 1, or beyond `MOST_STATE_SHARDS` or `MOST_ROUNDS_PER_JOB`.
    """

    engine: str = "auto"
    state_shards: int | None = None
    budget: SegmentBudget = SegmentBudget()
    shard_cap: int | None = None
    rounds_per_job: int = 1
    sample_bytes: int | str | None = None
    sample_seed: int = 0

    def __post_init__(self) -> None:
        if self.state_shards is not None and not 1 <= self.state_shards <= MOST_STATE_SHARDS:
            raise SettingsError(
                f"--state-shards {self.state_shards}: give 1 to {MOST_STATE_SHARDS}"
            )
        if not 1 <= self.rounds_per_job <= MOST_ROUNDS_PER_JOB:
            raise SettingsError(
                f"--rounds-per-job {self.rounds_per_job}: give 1 to {MOST_ROUNDS_PER_JOB}"
            )

    def sample_of(self, text_bytes: int) -> Sample:
        """The sample to take of a corpus of so much text (an estimate where it is compressed)."""
        wanted = self.sample_bytes
        if isinstance(wanted, str):
            return Sample(first_bytes=FIRST_BYTES_NAMES.get(wanted), seed=self.sample_seed)
        if wanted is None:
            wanted = DEFAULT_SAMPLE_BYTES
        return Sample(min(1.0, wanted / max(1, text_bytes)), self.sample_seed)

    def shards_of(self, text_bytes: int, sample: Sample) -> int:
        """How many shards, roughly, a corpus of so much text becomes."""
        if self.state_shards is not None:
            return self.state_shards
        kept = int(text_bytes * sample.share)
        size = min(_MOST_SHARD_BYTES, max(_SHARD_BYTES, kept // 1024))
        readers = min(_MOST_READERS, text_bytes // _READ_BYTES)
        fewest = max(1, min(_FEWEST_SHARDS, kept // _LEAST_SHARD_BYTES))
        return max(math.ceil(kept / size), readers, fewest)

    def cap_of(self, budget: int) -> int:
        """Most bytes of segments from one shard, given the budget for all."""
        return self.shard_cap if self.shard_cap is not None else min(_DEFAULT_CAP, budget)


def estimate_rounds(budget: int, tokens: int, merges: int) -> int:
    """How many rounds a training will take, roughly.

    Fitted to measurements on English, Chinese and DNA of 20 to 200 MB; real numbers are between
    half of it and twice as many.

    Args:
        budget: bytes of segments a round.
        tokens: of the state, at the start.
        merges: to make.
    """
    share = min(0.2, max(1e-6, budget / max(1, tokens)))
    depth = max(1.0, math.log2(merges + 256) - 5) / 10
    return max(1, math.ceil(2.95 * math.exp(-0.305 * math.log(share)) * depth))
