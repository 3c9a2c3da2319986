"""Write the token shards of one unit and the sidecar of each.

    shard-UUUUU-PPP.arrow        Arrow IPC file: unit of the plan, part
    shard-UUUUU-PPP.arrow.json   sidecar: what the manifest says of the shard
    rejects/unit-UUUUU.jsonl     rows that the reader set aside, if any

A part closes at the row with which it holds `shard_bytes` of text, so names and borders depend on
the input alone. A file gets its final name when it is complete, its sidecar after it, and the
sidecar of the last part (marked `is_last_part`) after everything else: a unit is finished when that
one is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import OutputError
from pipelines.output_files import (
    HashingFile,
    delete_files,
    join,
    publish,
    temporary_path,
    write_atomically,
)
from pipelines.plan import Unit
from pipelines.rejects import Rejects
from pipelines.token_rows import TokenRows
from schemas.sidecars import ShardSidecar, UnitTotals

__all__ = ["ShardFacts", "ShardWriter", "input_identity", "shard_name", "sidecar_name"]


class ShardSettings(Protocol):
    """What a writer needs of the run's settings."""

    @property
    def digest(self) -> str:
        """Of all settings, stored in each sidecar."""

    @property
    def shard_bytes(self) -> int:
        """A part closes once it holds so many bytes of text."""


def shard_name(unit: int, part: int) -> str:
    """Name of a shard's file: (3, 0) -> 'shard-00003-000.arrow'."""
    return f"shard-{unit:05d}-{part:03d}.arrow"


def sidecar_name(unit: int, part: int) -> str:
    """Name of a shard's sidecar."""
    return f"{shard_name(unit, part)}.json"


def input_identity(unit: Unit) -> list[dict[str, str | int | None]]:
    """What a unit reads, as its sidecars record it: file, identity, and the range of bytes."""
    return [
        {
            "path": part.file.path,
            "identity": part.file.identity,
            "start": part.start,
            "end": part.end,
        }
        for part in unit.ranges
    ]


class ShardWriter:
    """Writes the rows of one unit, in order, into as many parts as it takes.

    Args:
        output: folder of the shards.
        unit: the unit being encoded.
        schema: of the rows, `schemas.token_shards`.
        settings: where parts close; the digest for the sidecars.

    Used as a context manager: on an error the part being written is thrown away.
    """

    def __init__(self, output: str, unit: Unit, schema: pa.Schema, settings: ShardSettings) -> None:
        self._output = output
        self._unit = unit
        self._schema = schema
        self._settings = settings
        self._part: _OpenPart | None = None
        self._finished: list[ShardSidecar] = []

    def __enter__(self) -> ShardWriter:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._part is not None:
            self._part.abandon()

    def write(self, rows: TokenRows) -> None:
        """Append rows, closing parts where they are full.

        Raises:
            OutputError: a file cannot be written (no space, say); names it.
        """
        start = 0
        while start < len(rows.text_bytes):
            # A part is opened when a row is there for it: no empty part follows a full one.
            part = self._open_part()
            room = self._settings.shard_bytes - part.text_bytes
            filled = np.searchsorted(np.cumsum(rows.text_bytes[start:]), room)
            end = min(len(rows.text_bytes), start + int(filled) + 1)
            part.write(rows.slice(start, end))
            start = end
            if part.text_bytes >= self._settings.shard_bytes:
                self._close_part()

    def finish(self, rejects: Rejects, special_hits: Mapping[str, int]) -> list[bytes]:
        """Close the last part, write the rejects, and put the last sidecar in place.

        A unit without rows has one part without rows, so that it is seen to be finished.

        Args:
            rejects: what the reader set aside and counted.
            special_hits: how often the text of each special token occurs in the unit's documents.

        Returns:
            The sidecars of all parts as JSON.

        Raises:
            OutputError: a file cannot be written; or documents were lost on the way here, which
                would be a fault of this program.
        """
        if self._part is not None or not self._finished:
            self._open_part()
            self._close_part()
        last = self._finished.pop()
        rejects_file = rejects.write(self._output)
        rejects_sha256 = hashlib.sha256(rejects.to_jsonl()).hexdigest() if rejects_file else None
        totals = UnitTotals(
            parts=last.part + 1,
            documents_in=rejects.documents_in,
            rejects=dict(sorted(rejects.counts.items())),
            accepted=dict(sorted(rejects.accepted.items())),
            special_text={token: hits for token, hits in sorted(special_hits.items()) if hits},
            rejects_file=rejects_file,
            rejects_sha256=rejects_sha256,
        )
        self._finished.append(replace(last, unit_totals=totals))
        self._remove_stale_files(last.part + 1, rejects_file)
        encoded = [msgspec.json.format(msgspec.json.encode(each)) for each in self._finished]
        for sidecar, data in zip(self._finished, encoded, strict=True):
            write_atomically(self._output, f"{sidecar.file}.json", data)
        return encoded

    def _open_part(self) -> _OpenPart:
        if self._part is None:
            name = shard_name(self._unit.index, len(self._finished))
            self._part = _OpenPart(self._output, name, self._schema)
        return self._part

    def _close_part(self) -> None:
        if self._part is None:
            return
        facts = self._part.close()
        self._part = None
        self._finished.append(
            ShardSidecar(
                unit=self._unit.index,
                part=len(self._finished),
                settings_digest=self._settings.digest,
                inputs=input_identity(self._unit),
                **facts,
            )
        )

    def _remove_stale_files(self, next_part: int, rejects_file: str | None) -> None:
        """An earlier attempt on an older version of the input may have left more than this one."""
        stale = [shard_name(self._unit.index, next_part), sidecar_name(self._unit.index, next_part)]
        if rejects_file is None:
            stale.append(f"rejects/unit-{self._unit.index:05d}.jsonl")
        delete_files(self._output, stale)


class _OpenPart:
    """A shard that is being written under a temporary name."""

    def __init__(self, output: str, name: str, schema: pa.Schema) -> None:
        self.text_bytes = 0
        self._output = output
        self._name = name
        self._path = temporary_path(output, name)
        self._facts = ShardFacts()
        try:
            self._file = HashingFile(self._path)
            self._writer = pa.ipc.new_file(pa.PythonFile(self._file, mode="w"), schema)
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

    def close(self) -> dict[str, Any]:
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
        with suppress(Exception):
            delete_files(self._output, [self._path.removeprefix(join(self._output, ""))])

    def _failure(self, error: Exception) -> OutputError:
        return OutputError(
            f"{join(self._output, self._name)}: cannot be written: {error}; after making room the "
            "same command goes on with the units that are missing"
        )


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
        """Take a batch into account."""
        ids = batch["input_ids"].flatten()
        self.rows += batch.num_rows
        self.documents += pc.sum(batch["is_last"]).as_py() or 0
        self.tokens += len(ids)
        if len(ids):
            bounds = pc.min_max(ids).as_py()
            self.min_id = min(bounds["min"], self.min_id if self.min_id is not None else 2**32)
            self.max_id = max(bounds["max"], self.max_id if self.max_id is not None else -1)
        if batch.num_rows:
            if self.first_document is None:
                self.first_document = batch["document_id"][0].as_py()
            self.last_document = batch["document_id"][-1].as_py()
