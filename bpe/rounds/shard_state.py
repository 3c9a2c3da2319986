"""The tokens of one shard between two rounds.

A corpus is a list of sequences of tokens, documents say, that no merge leaves. Shards hold it in
order; a sequence may be spread over several shards, and a token belongs to the one that holds its
first byte. So a shard can come to hold nothing of a sequence that goes on on both sides of it:

    shard 0          shard 1          shard 2
    [ 5 7 9 | 4 4    4 4 8 4          2 | 6 ]        | ends a sequence
       open_right -> <- open, open -> <- open_left
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import CountTableError
from bpe.rounds.run_coding import parse_segments

__all__ = ["ShardState", "expand_runs", "state_id_type"]


@dataclass(frozen=True)
class ShardState:
    """Sequences of token ids, and how they go on in the neighbouring shards.

    sequences: large_list of uint16 or uint32, without nulls.
    weights: int64, how often each sequence counts (words, whose shards are always closed); None:
        once each.
    open_left: the first sequence goes on from the shard before. open_right: the last one goes on
        in the next. Such a sequence may be empty.
    """

    sequences: pa.LargeListArray
    weights: pa.Int64Array | None = None
    open_left: bool = False
    open_right: bool = False

    def __post_init__(self) -> None:
        if self.open_left or self.open_right:
            if len(self.sequences) == 0:
                raise CountTableError(
                    "a shard without a sequence is open to its neighbours: give it an empty one"
                )
            if self.weights is not None:
                raise CountTableError(
                    "a shard of weighted sequences is open to its neighbours: words end where "
                    "they are counted"
                )
        if self.weights is not None and len(self.weights) != len(self.sequences):
            raise CountTableError(
                f"a shard has {len(self.sequences)} sequences and {len(self.weights)} weights"
            )

    @property
    def token_count(self) -> int:
        """How many tokens the shard holds."""
        offsets = self.sequences.offsets
        return int(offsets[-1].as_py() - offsets[0].as_py())

    @property
    def is_passage(self) -> bool:
        """Whether all of it is part of one sequence that goes on on both sides."""
        return self.open_left and self.open_right and len(self.sequences) == 1


def state_id_type(token_count: int) -> pa.DataType:
    """Arrow type of ids in the state of a training with so many tokens: uint16 or uint32."""
    return pa.uint16() if token_count <= 1 << 16 else pa.uint32()


def expand_runs(coded: bytes) -> npt.NDArray[np.uint32]:
    """Token ids of one coding."""
    tokens, runs, _ = parse_segments(pa.array([coded], pa.large_binary()))
    return np.repeat(tokens, runs)
