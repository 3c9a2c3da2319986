"""The state of a training in merge rounds: what one shard's file of tokens holds."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from schemas.versions import with_version

__all__ = ["ROUND_STATE_VERSION", "StateFile", "round_state_schema"]

ROUND_STATE_VERSION = 1


def round_state_schema(id_type: pa.DataType, *, weighted: bool) -> pa.Schema:
    """The schema of a shard's tokens; one row is a sequence, and no merge crosses its ends.

    - `tokens`: ids 0..255 for the bytes, in the byte order of the tie order; 256 + i for merge i.
    - `weight` (words only): how often the sequence occurs.

    Args:
        id_type: uint16, or uint32 once an id passes 65535.
        weighted: whether the sequences are words with counts.
    """
    fields = [
        pa.field("tokens", pa.large_list(pa.field("item", id_type, nullable=False)), nullable=False)
    ]
    if weighted:
        fields.append(pa.field("weight", pa.int64(), nullable=False))
    return with_version(pa.schema(fields), "round_state", 1)


@dataclass(frozen=True, kw_only=True)
class StateFile:
    """One shard's file; as JSON beside it, and in the record of the step that made it.

    Shards are numbered by their place in that record, which is the order of the corpus.

    Attributes:
        file: name in the state folder.
        sequences, tokens: how many it holds.
        open_left, open_right: whether its first sequence continues that of the shard before, and
            its last one continues in the next.
        weighted: whether each sequence has a weight.
        bytes: size of the file.
        sha256: hash (hex) of the file.
        version: of this description.
    """

    file: str
    sequences: int
    tokens: int
    open_left: bool
    open_right: bool
    weighted: bool
    bytes: int
    sha256: str
    version: int = ROUND_STATE_VERSION
