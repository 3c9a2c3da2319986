"""Sums of count tables, checked for overflow."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.values import MAX_COUNT
from bpe.errors import CountTableError

__all__ = ["add_tables"]


def add_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Add tables word by word.

    Args:
        tables: at least one, all with the same columns.

    Returns:
        One table sorted by word: counts added, the smallest `first` kept; the schema and metadata
        of the first table.

    Raises:
        CountTableError: a sum that does not fit into int64; the text names a word.
    """
    schema = tables[0].schema
    table = pa.concat_tables([each.cast(schema) for each in tables])
    kinds = [("count", "sum")] + ([("first", "min")] if "first" in schema.names else [])
    _check_sums(table)
    grouped = table.group_by("word", use_threads=False).aggregate(kinds)
    columns = {"word": grouped["word"], "count": grouped["count_sum"]}
    if "first" in schema.names:
        columns["first"] = grouped["first_min"]
    added = pa.table([columns[name] for name in schema.names], schema=schema)
    return added.take(pc.sort_indices(added["word"])).combine_chunks()


def _check_sums(table: pa.Table) -> None:
    """Arrow's sum of int64 wraps without a word, so look before adding."""
    if table.num_rows == 0:
        return
    largest = pc.max(table["count"]).as_py()
    # No sum can be larger than this; real corpora never get further.
    if largest * table.num_rows <= MAX_COUNT:
        return
    low = pc.bit_wise_and(table["count"], 0xFFFFFFFF)
    high = pc.shift_right(table["count"], 32)
    halves = pa.table({"word": table["word"], "low": low, "high": high})
    sums = halves.group_by("word").aggregate([("low", "sum"), ("high", "sum")])
    carried = pc.add(sums["high_sum"], pc.shift_right(sums["low_sum"], 32))
    over = sums.filter(pc.greater(carried, 0x7FFFFFFF))
    if over.num_rows:
        word = over["word"][0].as_py()
        raise CountTableError(
            f"the count of pre-token {word!r} exceeds {MAX_COUNT}; train on a part of the corpus"
        )
