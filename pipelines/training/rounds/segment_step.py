"""Second step of a round: shards send the parts of tokens that heavy pairs hold together.

shard (JSON) ─ CutShard ─► (bucket, tables) ─ CombinePerKey ─► WriteSegments
                                                 ─► r007/segments-BBBBB, r007/ends-segments
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import apache_beam as beam

from bpe.backends.choice import get_backend
from bpe.rounds.boundaries import check_neighbours
from bpe.rounds.bucket_sums import BucketSegments, add_segment_tables, limit_segments
from bpe.rounds.shard_steps import SEGMENT_SCHEMA, cut_shard
from pipelines.runners.worker_errors import reported_errors
from pipelines.storage.output_files import join
from pipelines.training.count_tables import from_ipc, to_ipc
from pipelines.training.rounds.round_files import (
    ENDS_OF_SEGMENTS,
    SEGMENTS_FILE,
    bucket_name,
    ends_from_table,
    ends_to_table,
    read_table,
    round_folder,
    write_table,
)
from pipelines.training.rounds.round_results import read_heavy
from pipelines.training.rounds.setup import RoundSetup, ShardTask
from pipelines.training.rounds.state_files import STATE_FOLDER, read_state, state_name
from pipelines.training.rounds.table_sums import AddTables, Sent, SentTable, pack_table
from schemas import BOUNDARY_RECORDS, SEGMENTS

__all__ = ["SendSegments", "read_segments"]

# The key under which the ends of all shards meet.
_ENDS = -1
_METADATA = b"beam_bpe.segments"


class SendSegments(beam.PTransform):
    """Cuts the tokens of all shards by a round's heavy pairs, and sums equal parts up.

    Input: `ShardTask` as JSON (bytes). Output: names of the files written.

    Args:
        setup: of the training.
        round_: number of the round; its state and its heavy pairs are there.
    """

    def __init__(self, setup: RoundSetup, round_: int) -> None:
        super().__init__()
        self._setup, self._round = setup, round_

    def expand(self, tasks: beam.PCollection[bytes]) -> beam.PCollection[str]:
        """Apply to a PCollection of tasks."""
        cut, write = _CutShard(self._setup, self._round), _WriteSegments(self._setup, self._round)
        return (
            tasks
            | "CutShard" >> beam.ParDo(cut).with_output_types(tuple[int, tuple[bytes, bytes]])
            | "SumSegments" >> beam.CombinePerKey(AddTables(add_segment_tables))
            | "WriteSegments" >> beam.ParDo(write).with_output_types(str)
        )


class _CutShard(beam.DoFn):
    """Cuts one shard, and sends its segments and ends."""

    def __init__(self, setup: RoundSetup, round_: int) -> None:
        self._setup, self._round = setup, round_

    def process(self, element: bytes) -> Iterator[tuple[int, SentTable]]:
        """Cut one shard."""
        with reported_errors():
            sent = self._cut(ShardTask.from_json(element))
        yield from sent

    def _cut(self, task: ShardTask) -> list[tuple[int, SentTable]]:
        setup = self._setup
        name = state_name(self._round, task.shard) if self._round else task.initial
        state = read_state(join(setup.folder, STATE_FOLDER), name)
        heavy = read_heavy(setup.folder, self._round)
        report = cut_shard(
            task.shard,
            state,
            heavy,
            buckets=setup.buckets,
            cap_bytes=setup.shard_cap,
            backend=get_backend(),
        )
        ends = to_ipc(ends_to_table([report.ends], BOUNDARY_RECORDS))
        tables = [(each, (pack_table(table), b"")) for each, table in report.tables.items()]
        return [*tables, (_ENDS, (b"", ends))]


class _WriteSegments(beam.DoFn):
    """Writes a bucket's segments, or the ends of all shards."""

    def __init__(self, setup: RoundSetup, round_: int) -> None:
        self._setup, self._round = setup, round_
        self._folder = round_folder(setup.folder, round_)

    def process(self, element: tuple[int, Sent]) -> Iterator[str]:
        """Write one file and name it."""
        key, sent = element
        with reported_errors():
            name = self._write(key, Sent(*sent))
        yield name

    def _write(self, key: int, sent: Sent) -> str:
        if key == _ENDS:
            ends = from_ipc(sent.ends[0])
            check_neighbours(ends_from_table(ends))
            write_table(self._folder, ENDS_OF_SEGMENTS, ends, BOUNDARY_RECORDS)
            return ENDS_OF_SEGMENTS
        name = bucket_name(SEGMENTS_FILE, key)
        kept = limit_segments(
            from_ipc(sent.tables[0]),
            read_heavy(self._setup.folder, self._round),
            self._setup.budget // self._setup.buckets,
            get_backend(),
        )
        known = {"size": kept.size, "received": kept.received, "bytes_sent": sent.size}
        table = kept.table.replace_schema_metadata({_METADATA: json.dumps(known)})
        write_table(self._folder, name, table, SEGMENTS)
        return name


def read_segments(folder: str, round_: int, names: list[str]) -> tuple[list[BucketSegments], int]:
    """The segments of all buckets of a round, and how many bytes shards sent.

    Args:
        folder: of the rounds.
        round_: number of the round.
        names: of the files.

    Raises:
        OutputError: a file is missing or damaged.
    """
    found, size = [], 0
    for name in names:
        table = read_table(round_folder(folder, round_), name, SEGMENTS)
        known = json.loads(table.schema.metadata[_METADATA])
        plain = table.replace_schema_metadata(None).cast(SEGMENT_SCHEMA)
        found.append(BucketSegments(plain, known["size"], known["received"]))
        size += known["bytes_sent"]
    return found, size
