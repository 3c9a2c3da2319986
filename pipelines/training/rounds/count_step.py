"""First step of a round: shards take the last round's merges in and count their pairs.

shard (JSON) ─ CountShard ─► (bucket, tables) ─ CombinePerKey ─► WritePairs ─► r007/pairs-BBBBB
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa

from bpe.backends.choice import get_backend
from bpe.backends.values import StopBefore
from bpe.rounds.boundaries import check_neighbours
from bpe.rounds.bucket_sums import add_pair_tables, rank_bucket
from bpe.rounds.pair_ranking import PAIR_SCHEMA, RankedPairs
from bpe.rounds.shard_state import ShardState
from bpe.rounds.shard_steps import apply_to_shard, count_shard
from pipelines.runners.worker_errors import reported_errors
from pipelines.storage.output_files import join
from pipelines.training.count_tables import from_ipc, to_ipc
from pipelines.training.rounds.round_files import (
    ENDS_OF_COUNT,
    PAIRS,
    bucket_name,
    ends_from_table,
    ends_to_table,
    read_table,
    round_folder,
    write_table,
)
from pipelines.training.rounds.round_results import merges_of, read_fixes, tokens_after
from pipelines.training.rounds.setup import RoundSetup, ShardTask
from pipelines.training.rounds.state_files import STATE_FOLDER, read_state, state_name, write_state
from pipelines.training.rounds.table_sums import AddTables, Sent, SentTable, pack_table
from schemas import BOUNDARY_RECORDS, RANKED_PAIRS

__all__ = ["BucketPairs", "CountPairs", "read_bucket_pairs"]

_METADATA = b"beam_bpe.ranking"


class CountPairs(beam.PTransform):
    """Counts the pairs of all shards in one round.

    Input: `ShardTask` as JSON (bytes). Output: names of the files written, one per bucket.

    Args:
        setup: of the training.
        round_: number of the round; the state that it counts is written on the way, unless it is
            the first one.
        known: number of a round whose state is there already, mostly the one before.
    """

    def __init__(self, setup: RoundSetup, round_: int, known: int) -> None:
        super().__init__()
        self._setup, self._round = setup, round_
        self._count = _CountShard(setup, round_, known)

    def expand(self, tasks: beam.PCollection[bytes]) -> beam.PCollection[str]:
        """Apply to a PCollection of tasks."""
        return (
            tasks
            | "CountShard"
            >> beam.ParDo(self._count).with_output_types(tuple[int, tuple[bytes, bytes]])
            | "SumPairs" >> beam.CombinePerKey(AddTables(add_pair_tables))
            | "WritePairs"
            >> beam.ParDo(_WritePairs(self._setup, self._round)).with_output_types(str)
        )


class _CountShard(beam.DoFn):
    """Brings a shard up to its round, and sends its pairs and ends to the buckets."""

    def __init__(self, setup: RoundSetup, round_: int, known: int) -> None:
        self._setup, self._round, self._known = setup, round_, known

    def process(self, element: bytes) -> Iterator[tuple[int, SentTable]]:
        """Count one shard; every bucket gets its ends."""
        with reported_errors():
            task = ShardTask.from_json(element)
            sent = self._count(task)
        yield from sent

    def _count(self, task: ShardTask) -> list[tuple[int, SentTable]]:
        setup = self._setup
        state = self._bring_up(task)
        tokens = tokens_after(merges_of(setup.folder, self._round - 1), setup.rules.tie_order)
        report = count_shard(
            task.shard,
            state,
            buckets=setup.buckets,
            tokens=tokens,
            rules=setup.rules,
            backend=get_backend(),
        )
        ends = to_ipc(ends_to_table([report.ends], BOUNDARY_RECORDS))
        tables = {bucket: pack_table(table) for bucket, table in report.tables.items()}
        return [(bucket, (tables.get(bucket, b""), ends)) for bucket in range(setup.buckets)]

    def _bring_up(self, task: ShardTask) -> ShardState:
        """The state of this round, written unless it is there."""
        folder = join(self._setup.folder, STATE_FOLDER)
        name = state_name(self._known, task.shard) if self._known else task.initial
        state = read_state(folder, name)
        for round_ in range(self._known, self._round):
            state = self._apply(state, task.shard, round_)
        if self._round > self._known:
            write_state(folder, state_name(self._round, task.shard), state)
        return state

    def _apply(self, state: ShardState, shard: int, round_: int) -> ShardState:
        folder = self._setup.folder
        before = merges_of(folder, round_ - 1).num_rows
        merges = merges_of(folder, round_)
        new = merges.slice(before).combine_chunks()
        return apply_to_shard(
            state,
            _column(new, "left"),
            _column(new, "right"),
            first_id=256 + before,
            fix=read_fixes(folder, round_).get(shard),
            backend=get_backend(),
        )


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class BucketPairs(NamedTuple):
    """What is known of one bucket.

    Attributes:
        ranking: of its pairs, those between shards among them.
        size: bytes that shards sent.
    """

    ranking: RankedPairs
    size: int


class _WritePairs(beam.DoFn):
    """Ranks a bucket's pairs, those between shards among them, and writes the best."""

    def __init__(self, setup: RoundSetup, round_: int) -> None:
        self._setup, self._round = setup, round_

    def process(self, element: tuple[int, Sent]) -> Iterator[str]:
        """Write one bucket and name its file."""
        bucket, sent = element
        with reported_errors():
            self._write(bucket, Sent(*sent))
        yield bucket_name(PAIRS, bucket)

    def _write(self, bucket: int, sent: Sent) -> None:
        setup = self._setup
        pairs = from_ipc(sent.tables[0]) if sent.tables else PAIR_SCHEMA.empty_table()
        ends = from_ipc(sent.ends[0])
        records = ends_from_table(ends)
        check_neighbours(records)
        tokens = tokens_after(merges_of(setup.folder, self._round - 1), setup.rules.tie_order)
        ranked = rank_bucket(
            pairs,
            records,
            bucket=bucket,
            buckets=setup.buckets,
            limit=setup.kept_pairs,
            tokens=tokens,
            rules=setup.rules,
        )
        dropped = ranked.dropped
        known = {
            "dropped": dropped and [dropped.count, dropped.left, dropped.right],
            "total": ranked.total,
            "mergeable": ranked.mergeable,
            "size": sent.size,
        }
        table = ranked.pairs.replace_schema_metadata({_METADATA: json.dumps(known)})
        folder = round_folder(setup.folder, self._round)
        if bucket == 0:
            write_table(folder, ENDS_OF_COUNT, ends, BOUNDARY_RECORDS)
        write_table(folder, bucket_name(PAIRS, bucket), table, RANKED_PAIRS)


def read_bucket_pairs(setup: RoundSetup, round_: int) -> list[BucketPairs]:
    """What each bucket of a round found.

    Raises:
        OutputError: a file is missing or damaged.
    """
    found = []
    for bucket in range(setup.buckets):
        name = bucket_name(PAIRS, bucket)
        table = read_table(round_folder(setup.folder, round_), name, RANKED_PAIRS)
        known = json.loads(table.schema.metadata[_METADATA])
        dropped = known["dropped"] and StopBefore(*known["dropped"])
        pairs = table.replace_schema_metadata(None).cast(PAIR_SCHEMA)
        ranking = RankedPairs(pairs, dropped, known["total"], known["mergeable"])
        found.append(BucketPairs(ranking, known["size"]))
    return found
