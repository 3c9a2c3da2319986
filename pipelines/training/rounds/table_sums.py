"""Adds what shards send, per hash bucket, natively: the CombineFn of both steps of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa

from pipelines.runners.worker_errors import reported_errors
from pipelines.training.count_tables import from_ipc, to_ipc

__all__ = ["AddTables", "Sent", "SentTable", "pack_table"]

SentTable = tuple[bytes, bytes]
"""What one shard sends to one bucket: a table and its ends, Arrow IPC streams; empty for none."""

# Tables are added whenever they have grown to so much, compressed.
_TABLE_BYTES = 32 << 20
_COMPRESSION = "zstd"


class Sent(NamedTuple):
    """What a bucket got: tables, ends of shards, and how many bytes of tables were sent."""

    tables: list[bytes]
    ends: list[bytes]
    size: int


def pack_table(table: pa.Table) -> bytes:
    """A table as it travels."""
    return to_ipc(table, compression=_COMPRESSION)


class AddTables(beam.CombineFn):
    """Adds tables row by row and collects the ends of shards.

    Input: `SentTable`. Output: `Sent` with one table at most, and one of ends.

    Args:
        add: adds tables of the kind that is sent.

    Raises:
        CountTableError: a sum that does not fit into int64.
    """

    def __init__(self, add: Callable[[Iterable[pa.Table]], pa.Table]) -> None:
        super().__init__()
        self._add = add

    def create_accumulator(self) -> Sent:
        """Nothing yet."""
        return Sent([], [], 0)

    def add_input(self, accumulator: Sent, element: SentTable) -> Sent:
        """Keep what came; add up once enough of it lies here."""
        table, ends = element
        tables = [*accumulator.tables, table] if table else accumulator.tables
        grown = Sent(
            tables,
            [*accumulator.ends, ends] if ends else accumulator.ends,
            accumulator.size + len(table),
        )
        if sum(map(len, tables)) > 2 * max(_TABLE_BYTES, len(tables[0]) if tables else 0):
            return self.compact(grown)
        return grown

    def merge_accumulators(self, accumulators: Iterable[Sent]) -> Sent:
        """All that came to any of them."""
        each = list(accumulators)
        return self.compact(
            Sent(
                [table for one in each for table in one.tables],
                [ends for one in each for ends in one.ends],
                sum(one.size for one in each),
            )
        )

    def compact(self, accumulator: Sent) -> Sent:
        """At most one table, and one of ends."""
        tables, ends, size = accumulator
        with reported_errors():
            if len(tables) > 1:
                tables = [pack_table(self._add(from_ipc(table) for table in tables))]
            if len(ends) > 1:
                ends = [to_ipc(pa.concat_tables([from_ipc(each) for each in ends]))]
        return Sent(tables, ends, size)

    def extract_output(self, accumulator: Sent) -> Sent:
        """What came, added."""
        return self.compact(accumulator)
