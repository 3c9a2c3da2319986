"""The files of one round, as Arrow tables; and names of all that lies in OUTPUT/rounds.

r007/pairs-BBBBB.arrow     the best pairs of a hash bucket (`schemas.RANKED_PAIRS`)
r007/ends-count.arrow      the ends of all shards when they counted (`BOUNDARY_RECORDS`)
r007/heavy.arrow           the heavy pairs that segments are cut by
r007/segments-BBBBB.arrow  segments of a hash bucket (`SEGMENTS`)
r007/ends-segments.arrow   the ends of all shards when they cut segments
r007/merges.arrow          all merges so far (`MERGES`)
r007/fixes.arrow           what the ends of shards become (`BOUNDARY_FIXES`)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

import pyarrow as pa

from bpe.errors import OutputError
from bpe.rounds.boundaries import BoundaryRecord, ShardFix
from pipelines.storage.output_files import exists, join, read_bytes, write_atomically
from schemas.versions import check_version

__all__ = [
    "ENDS_OF_COUNT",
    "ENDS_OF_SEGMENTS",
    "FIXES",
    "HEAVY",
    "INHERITED",
    "MERGES_FILE",
    "PAIRS",
    "ROUND_FILE",
    "SEGMENTS_FILE",
    "bucket_name",
    "ends_from_table",
    "ends_to_table",
    "read_table",
    "round_folder",
    "rows_of",
    "write_table",
]

INHERITED = "inherited.arrow"
HEAVY, MERGES_FILE, FIXES = "heavy.arrow", "merges.arrow", "fixes.arrow"
ENDS_OF_COUNT, ENDS_OF_SEGMENTS = "ends-count.arrow", "ends-segments.arrow"
PAIRS, SEGMENTS_FILE = "pairs", "segments"
ROUND_FILE = re.compile(
    r"(heavy|merges|fixes|ends-count|ends-segments|(pairs|segments)-\d{5})\.arrow"
)
"""Names of files in a round's folder."""

_REMEDY = "start again with --overwrite"
_Row = TypeVar("_Row", BoundaryRecord, ShardFix)


def round_folder(folder: str, round_: int) -> str:
    """Folder of one round, below that of all rounds."""
    return join(folder, f"r{round_:03d}")


def bucket_name(kind: str, bucket: int) -> str:
    """Name of a bucket's file; kind: `PAIRS` or `SEGMENTS_FILE`."""
    return f"{kind}-{bucket:05d}.arrow"


def write_table(folder: str, name: str, table: pa.Table, schema: pa.Schema) -> str:
    """Write a table as an Arrow IPC file, at once or not at all.

    Args:
        folder: where.
        name: of the file.
        table: columns of `schema`; metadata of its own is kept beside the schema's.
        schema: with name and version.

    Returns:
        sha256 (hex) of the file.

    Raises:
        OutputError: it cannot be written.
    """
    metadata = {**(table.schema.metadata or {}), **schema.metadata}
    table = table.cast(pa.schema(list(schema))).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data = bytes(sink.getvalue())
    write_atomically(folder, name, data)
    return hashlib.sha256(data).hexdigest()


def read_table(folder: str, name: str, schema: pa.Schema, *, sha256: str | None = None) -> pa.Table:
    """Read a table that `write_table` wrote.

    Args:
        folder: where.
        name: of the file.
        schema: that it must have.
        sha256: that it must have (hex); None not to check.

    Raises:
        OutputError: it is missing, damaged, or another one; names the file and the way out.
    """
    path = join(folder, name)
    if not exists(path):
        raise OutputError(f"{path}: is missing; {_REMEDY}")
    data = read_bytes(path)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise OutputError(f"{path}: is not what was written; {_REMEDY}")
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        check_version(table.schema, schema)
    except (pa.ArrowInvalid, ValueError) as error:
        raise OutputError(f"{path}: is damaged: {error}; {_REMEDY}") from error
    return table


def ends_to_table(ends: Iterable[BoundaryRecord | ShardFix], schema: pa.Schema) -> pa.Table:
    """Ends of shards, or their fixes, as a table; one row a shard."""
    rows: list[dict[str, Any]] = [asdict(each) for each in ends]
    return pa.Table.from_pylist(rows, schema=schema)


def ends_from_table(table: pa.Table) -> list[BoundaryRecord]:
    """Ends of shards by number."""
    return sorted(rows_of(table, BoundaryRecord), key=lambda each: each.shard)


def rows_of(table: pa.Table, kind: type[_Row]) -> Sequence[_Row]:
    """The rows of a table as instances of a class that has its columns for fields."""
    names = [field.name for field in fields(kind)]
    return [kind(**row) for row in table.select(names).to_pylist()]
