"""The state of a shard as a file: written whole under a name that its round and number decide.

    rounds/state/r007-shard-00003.arrow        Arrow IPC file of `schemas.round_state`
    rounds/state/r007-shard-00003.arrow.json   its length and hash, written after it

A step that runs twice leaves the same files. What is read is compared with its hash first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from bpe.errors import OutputError
from bpe.rounds.shard_state import ShardState
from pipelines.storage.output_files import (
    HashingFile,
    delete_files,
    delete_temporary,
    exists,
    join,
    list_files,
    open_for_reading,
    publish,
    temporary_path,
    write_atomically,
)
from pipelines.storage.records import read_record
from schemas.round_state import ROUND_STATE_VERSION, StateFile, round_state_schema
from schemas.versions import check_version

__all__ = [
    "STATE_FOLDER",
    "delete_state",
    "has_state",
    "read_sidecar",
    "read_state",
    "state_name",
    "write_state",
]

STATE_FOLDER = "state"
"""Sub-folder of OUTPUT/rounds."""

_SUFFIX = ".arrow"
_MAKE_AGAIN = (
    "remove this file and run the same command again, which makes the state again from the input "
    "and the merges so far; or start again with --overwrite"
)


def state_name(round_: int, shard: int) -> str:
    """Name of a shard's file in the state folder."""
    return f"r{round_:03d}-shard-{shard:05d}{_SUFFIX}"


def write_state(folder: str, name: str, state: ShardState) -> StateFile:
    """Write a shard's state, and its sidecar after it.

    Args:
        folder: the state folder.
        name: of the file.
        state: what to write.

    Raises:
        OutputError: a file cannot be written; names it and the cause.
    """
    tokens = state.sequences
    columns: dict[str, pa.Array] = {"tokens": tokens}
    if state.weights is not None:
        columns["weight"] = state.weights
    schema = round_state_schema(tokens.type.value_type, weighted=state.weights is not None)
    batch = pa.RecordBatch.from_arrays(
        [column.cast(schema.field(name).type) for name, column in columns.items()], schema=schema
    )
    size, sha256 = _write_batch(folder, name, batch)
    described = StateFile(
        file=name,
        sequences=len(tokens),
        tokens=_token_count(tokens),
        open_left=state.open_left,
        open_right=state.open_right,
        weighted=state.weights is not None,
        bytes=size,
        sha256=sha256,
    )
    write_atomically(folder, f"{name}.json", msgspec.json.encode(described))
    return described


def _token_count(tokens: pa.LargeListArray) -> int:
    return tokens.offsets[-1].as_py() - tokens.offsets[0].as_py() if len(tokens) else 0


def _write_batch(folder: str, name: str, batch: pa.RecordBatch) -> tuple[int, str]:
    final, temporary = join(folder, name), ""
    try:
        temporary = temporary_path(folder, name)
        file = HashingFile(temporary)
        with pa.ipc.new_file(pa.PythonFile(file, "w"), batch.schema) as writer:
            writer.write_batch(batch)
        file.close()
    except Exception as error:
        # On a full disk this is what makes room again.
        delete_temporary(temporary)
        raise OutputError(
            f"{final}: cannot be written: {error}; make room, and run the same command again to "
            "go on"
        ) from error
    publish(temporary, final)
    return file.size, file.sha256()


def read_sidecar(folder: str, name: str) -> StateFile:
    """What the sidecar of a state file says.

    Raises:
        OutputError: it is missing or damaged; names the file and the way out.
    """
    path = join(folder, f"{name}.json")
    if not exists(path):
        raise OutputError(f"{path}: is missing; {_MAKE_AGAIN}")
    return read_record(
        path,
        StateFile,
        version=ROUND_STATE_VERSION,
        remedy=_MAKE_AGAIN,
        expected={"file": name},
    )


def read_state(folder: str, name: str) -> ShardState:
    """Read a shard's state, compared with its sidecar byte for byte.

    Raises:
        OutputError: it is missing, cannot be read, or is not what was written; names the file and
            the way out.
    """
    described = read_sidecar(folder, name)
    path = join(folder, name)
    if not exists(path):
        raise OutputError(f"{path}: is missing; {_MAKE_AGAIN}")
    try:
        with open_for_reading(path) as file:
            data = file.read_buffer()
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error}; {_MAKE_AGAIN}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != described.sha256:
        raise OutputError(
            f"{path}: is not what was written: sha256 {found[:16]}…, and its sidecar says "
            f"{described.sha256[:16]}…; {_MAKE_AGAIN}"
        )
    table = pa.ipc.open_file(data).read_all()
    tokens = table["tokens"]
    try:
        id_type = tokens.type.value_type
        check_version(table.schema, round_state_schema(id_type, weighted=described.weighted))
    except (AttributeError, ValueError) as error:
        raise OutputError(f"{path}: is of another program version: {error}") from error
    return ShardState(
        sequences=_one_chunk(tokens),
        weights=_one_chunk(table["weight"]) if described.weighted else None,
        open_left=described.open_left,
        open_right=described.open_right,
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def has_state(folder: str, files: Iterable[StateFile]) -> bool:
    """Whether all of these files and their sidecars are there, with the right sizes."""
    sizes = list_files(folder)
    return all(
        sizes.get(each.file) == each.bytes and f"{each.file}.json" in sizes for each in files
    )


def delete_state(folder: str, kept: Iterable[str] = ()) -> None:
    """Delete all state files and sidecars but for those of the names that are kept."""
    names = set(kept)
    stale = [
        name
        for name in list_files(folder)
        if name.removesuffix(".json").endswith(_SUFFIX) and name.removesuffix(".json") not in names
    ]
    # The sidecar goes first: without it nobody takes the file for whole.
    delete_files(folder, sorted(stale, key=lambda name: not name.endswith(".json")))
