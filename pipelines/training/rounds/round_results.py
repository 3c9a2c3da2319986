"""What rounds that are done left for the next ones, read with its hash checked."""

from __future__ import annotations

import pyarrow as pa

from bpe.rounds.boundaries import ShardFix
from bpe.rounds.heavy_set import HeavySet
from bpe.rounds.round_driver import base_tokens, extend_tokens
from pipelines.storage.output_files import exists, join
from pipelines.training.rounds.checkpoints import read_count_record, read_segments_record
from pipelines.training.rounds.round_files import (
    FIXES,
    HEAVY,
    INHERITED,
    MERGES_FILE,
    read_table,
    round_folder,
    rows_of,
)
from schemas import BOUNDARY_FIXES, MERGES, RANKED_PAIRS

__all__ = ["merges_of", "read_fixes", "read_heavy", "tokens_after"]


def merges_of(folder: str, round_: int) -> pa.Table:
    """All merges up to the end of a round; those it began with before round 0 (`round_` -1).

    Raises:
        OutputError: the file is missing or damaged.
    """
    if round_ >= 0:
        sha256 = _made_by(folder, round_, MERGES_FILE)
        return read_table(round_folder(folder, round_), MERGES_FILE, MERGES, sha256=sha256)
    if not exists(join(folder, INHERITED)):
        return MERGES.empty_table()
    return read_table(folder, INHERITED, MERGES)


def read_fixes(folder: str, round_: int) -> dict[int, ShardFix]:
    """What the ends of shards became by the merges of a round, by shard.

    Raises:
        OutputError: the file is missing or damaged.
    """
    sha256 = _made_by(folder, round_, FIXES)
    table = read_table(round_folder(folder, round_), FIXES, BOUNDARY_FIXES, sha256=sha256)
    return {each.shard: each for each in rows_of(table, ShardFix)}


def _made_by(folder: str, round_: int, name: str) -> str | None:
    record = read_segments_record(folder, round_)
    return record.files.get(name) if record else None


def read_heavy(folder: str, round_: int) -> HeavySet:
    """The heavy pairs of a round.

    Raises:
        OutputError: the file is missing or damaged.
    """
    record = read_count_record(folder, round_)
    sha256 = record.files.get(HEAVY) if record else None
    table = read_table(round_folder(folder, round_), HEAVY, RANKED_PAIRS, sha256=sha256)
    return HeavySet.from_table(table)


def tokens_after(merges: pa.Table, tie_order: str) -> list[bytes]:
    """Bytes of every id after some merges."""
    tokens = base_tokens(tie_order)
    extend_tokens(tokens, merges["left"], merges["right"])
    return tokens
