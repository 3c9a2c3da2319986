"""The files of token shards: a list of them, one that is being written, the facts of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import OutputError
from pipelines.shards.token_rows import TokenRows
from pipelines.storage.output_files import (
    HashingFile,
    delete_temporary,
    join,
    list_files,
    make_folder_of,
    publish,
    temporary_path,
)
from pipelines.storage.output_layout import SIDECARS
from pipelines.storage.output_names import SHARD_FILE

__all__ = [
    "REPAIR",
    "OpenShard",
    "ShardFacts",
    "list_shards",
]

REPAIR = "remove the damaged file and run the encode command again, which makes it anew"
"""What to do about a shard: a command run again looks at the sizes of finished shards alone."""


def list_shards(output: str, split_names: tuple[str, ...]) -> dict[str, int]:
    """Names below `output`, and sizes (bytes), of all shards and sidecars of some splits.

    Args:
        output: the folder.
        split_names: folders below it; "" for the output itself.
    """
    found: dict[str, int] = {}
    for split in split_names:
        prefix = f"{split}/" if split else ""
        for folder, suffix in ((prefix, None), (f"{SIDECARS}/{prefix}", ".json")):
            for name, size in list_files(join(output, *folder.split("/")[:-1])).items():
                match = SHARD_FILE.fullmatch(name)
                if match and match[2] == suffix:
                    found[f"{folder}{name}"] = size
    return found


class OpenShard:
    """A shard that is being written under a temporary name.

    Args:
        output: folder of the shards.
        name: final name below it.
        schema: of the rows.
        compression: of their buffers: `none`, `lz4` or `zstd`. Reading needs no settings.

    Attributes:
        text_bytes: of the rows written so far.

    Raises:
        OutputError: the file cannot be written; as from all methods.
    """

    def __init__(self, output: str, name: str, schema: pa.Schema, compression: str) -> None:
        self.text_bytes = 0
        self._output = output
        self._name = name
        self._facts = ShardFacts()
        # A worker has one core; and the level is set so that no library's default decides bytes.
        codec = None if compression == "none" else pa.Codec(compression, _LEVELS.get(compression))
        options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        try:
            make_folder_of(join(output, name))
            self._path = temporary_path(output, name.replace("/", "-"))
            self._file = HashingFile(self._path)
            sink = pa.PythonFile(self._file, mode="w")
            self._writer = pa.ipc.new_file(sink, schema, options=options)
        except (OSError, pa.ArrowException) as error:
            raise self._failure(error) from error

    def write(self, rows: TokenRows) -> None:
        """Append a batch."""
        try:
            self._writer.write_batch(rows.batch)
        except (OSError, pa.ArrowException) as error:
            raise self._failure(error) from error
        self.text_bytes += int(rows.text_bytes.sum())
        self._facts.add(rows.batch)

    def close(self) -> Mapping[str, Any]:
        """Give the file its final name; returns the fields of the sidecar that describe it."""
        try:
            self._writer.close()
            self._file.close()
        except (OSError, pa.ArrowException) as error:
            raise self._failure(error) from error
        publish(self._path, join(self._output, self._name))
        return {
            "file": self._name,
            "bytes": self.text_bytes,
            "file_bytes": self._file.size,
            "sha256": self._file.sha256(),
            **self._facts.__dict__,
        }

    def abandon(self) -> None:
        """Throw the file away after an error elsewhere."""
        # The error being handled says more than a second one from here would.
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self._file.close()
        delete_temporary(self._path)

    def _failure(self, error: Exception) -> OutputError:
        return OutputError(
            f"{join(self._output, self._name)}: cannot be written: {error}; after making room the "
            "same command goes on with the units that are missing"
        )


_LEVELS = {"zstd": 3}


class ShardFacts:
    """What a sidecar says of a shard's rows; the attributes are named as there."""

    def __init__(self) -> None:
        self.rows = 0
        self.documents = 0
        self.tokens = 0
        self.min_id: int | None = None
        self.max_id: int | None = None
        self.first_document: str | None = None
        self.last_document: str | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch into account: columns of `schemas.token_shards` or `packed_shards`."""
        ids = batch["input_ids"].flatten()
        self.rows += batch.num_rows
        if "lengths" in batch.schema.names:
            ends, names = batch["is_last"].flatten(), batch["document_ids"].flatten()
            self.tokens += pc.sum(batch["lengths"].flatten()).as_py() or 0
        else:
            ends, names = batch["is_last"], batch["document_id"]
            self.tokens += len(ids)
        self.documents += pc.sum(ends).as_py() or 0
        if len(ids):
            bounds = pc.min_max(ids).as_py()
            self.min_id = min(bounds["min"], self.min_id if self.min_id is not None else 2**32)
            self.max_id = max(bounds["max"], self.max_id if self.max_id is not None else -1)
        if len(names):
            if self.first_document is None:
                self.first_document = names[0].as_py()
            self.last_document = names[-1].as_py()
