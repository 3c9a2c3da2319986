"""Small tables of pairs and segments, written as dictionaries."""

from __future__ import annotations

import pyarrow as pa

from bpe.backends.values import MergeRules
from bpe.rounds.pair_ranking import PAIR_SCHEMA
from bpe.rounds.round_driver import base_tokens
from bpe.rounds.run_coding import decode_runs
from bpe.rounds.shard_steps import SEGMENT_SCHEMA

RULES = MergeRules(100, "id", 1)
TOKENS = base_tokens("id")


def pair_table(rows: dict[tuple[int, int], int]) -> pa.Table:
    columns = [[a for a, _ in rows], [b for _, b in rows], list(rows.values())]
    return pa.table(columns, schema=PAIR_SCHEMA)


def segment_table(rows: dict[bytes, int]) -> pa.Table:
    return pa.table([list(rows), list(rows.values())], schema=SEGMENT_SCHEMA)


def as_dict(pairs: pa.Table) -> dict[tuple[int, int], int]:
    return {(row["left"], row["right"]): row["count"] for row in pairs.to_pylist()}


def as_segments(table: pa.Table) -> dict[tuple[int, ...], int]:
    rows = zip(table["segment"].to_pylist(), table["weight"].to_pylist(), strict=True)
    return {tuple(decode_runs(coded)): weight for coded, weight in rows}
