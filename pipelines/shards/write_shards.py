"""Write the token shards of one unit and the sidecar of each.

    shard-UUUUU-PPP.arrow        Arrow IPC file: unit of the plan, part
    SPLIT/shard-UUUUU-PPP.arrow  the same where documents are divided among splits

Sidecars (what the manifest says of a shard) and skipped rows lie in
`pipelines.storage.output_layout`'s folders.
A part closes at the row with which it holds `shard_bytes` of text, so names and borders depend on
the input alone. A file gets its final name when it is complete, its sidecar after it, and the
sidecar of the last shard (the one with `unit_totals`) after everything else: a unit is finished
when that one is there. A global shuffle writes buckets in place of units.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType

import msgspec
import numpy as np
import pyarrow as pa

from pipelines.corpus.plan import Unit
from pipelines.corpus.rejects import Rejects
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.shard_files import OpenShard
from pipelines.shards.token_rows import TokenRows
from pipelines.storage.output_files import delete_files, write_atomically
from pipelines.storage.output_layout import REJECTS
from pipelines.storage.output_names import rejects_name, shard_name, sidecar_name
from schemas.sidecars import PackingTotals, ShardSidecar, UnitTotals

__all__ = ["ShardGroup", "ShardWriter", "input_identity", "unit_totals"]


def input_identity(unit: Unit) -> list[dict[str, str | int | None]]:
    """What a unit reads, as its sidecars record it: file, identity, and the range of bytes."""
    return [
        {
            "path": part.file.path,
            "identity": part.file.identity,
            "start": part.start,
            "end": part.end,
            **({} if part.file.stop is None else {"stop": part.file.stop}),
        }
        for part in unit.ranges
    ]


@dataclass(frozen=True)
class ShardGroup:
    """The shards that are written in one go: those of a unit, or of a bucket.

    Attributes:
        index: number of the unit or bucket.
        inputs: as in `schemas.sidecars.ShardSidecar`.
        input_digest: as there.
    """

    index: int
    inputs: list[dict[str, str | int | None]]
    input_digest: str | None = None

    @classmethod
    def of_unit(cls, unit: Unit) -> ShardGroup:
        """The shards of a unit."""
        return cls(unit.index, input_identity(unit))


def unit_totals(
    output: str,
    rejects: Rejects,
    special_hits: Mapping[str, int],
    packing: PackingTotals | None = None,
) -> UnitTotals:
    """Write a unit's rejects and sum up what was read; `parts` is left for the writer.

    Args:
        output: folder of the shards.
        rejects: what the reader set aside and counted.
        special_hits: how often the text of each special token occurs in the unit's documents.
        packing: what packing added or left out.

    Raises:
        OutputError: the file of rejects cannot be written.
    """
    rejects_file = rejects.write(output, REJECTS)
    if rejects_file is None:
        # An earlier attempt on an older version of the input may have left one.
        delete_files(output, [rejects_name(rejects.unit.index, REJECTS)])
    return UnitTotals(
        parts=0,
        documents_in=rejects.documents_in,
        rejects=dict(sorted(rejects.counts.items())),
        accepted={name: n for name, n in sorted(rejects.accepted.items()) if n},
        special_text={token: hits for token, hits in sorted(special_hits.items()) if hits},
        rejects_file=rejects_file,
        rejects_sha256=hashlib.sha256(rejects.to_jsonl()).hexdigest() if rejects_file else None,
        packing=packing or PackingTotals(),
    )


class ShardWriter:
    """Writes the rows of one unit, in order, into as many parts as it takes.

    Args:
        output: folder of the shards.
        group: the unit or bucket being written.
        schema: of the rows.
        settings: where parts close, how they are compressed, and the digest for the sidecars.

    Used as a context manager: on an error the parts being written are thrown away.
    """

    def __init__(
        self, output: str, group: ShardGroup, schema: pa.Schema, settings: EncodeSettings
    ) -> None:
        self._output = output
        self._group = group
        self._schema = schema
        self._settings = settings
        self._open: dict[str, OpenShard] = {}
        self._finished: dict[str, list[ShardSidecar]] = {
            split: [] for split in settings.split_names
        }

    def __enter__(self) -> ShardWriter:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for part in self._open.values():
            part.abandon()

    def write(self, rows: TokenRows, split: str = "") -> None:
        """Append rows to a split, closing parts where they are full.

        Raises:
            OutputError: a file cannot be written (no space, say); names it.
        """
        start = 0
        while start < len(rows.text_bytes):
            # A part is opened when a row is there for it: no empty part follows a full one.
            part = self._open_part(split)
            room = self._settings.shard_bytes - part.text_bytes
            filled = np.searchsorted(np.cumsum(rows.text_bytes[start:]), room)
            end = min(len(rows.text_bytes), start + int(filled) + 1)
            part.write(rows.slice(start, end))
            start = end
            if part.text_bytes >= self._settings.shard_bytes:
                self._close_part(split)

    def finish(self, totals: UnitTotals) -> list[bytes]:
        """Close all parts and put the sidecars in place, the last one last.

        A unit without rows has one part without rows, so that it is seen to be finished.

        Args:
            totals: of the unit or bucket.

        Returns:
            The sidecars of all parts as JSON.

        Raises:
            OutputError: a file cannot be written.
        """
        for split in list(self._open):
            self._close_part(split)
        splits = self._settings.split_names
        if not any(self._finished.values()):
            self._open_part(splits[0])
            self._close_part(splits[0])
        self._remove_stale_files()
        sidecars = [sidecar for split in splits for sidecar in self._finished[split]]
        sidecars[-1] = replace(sidecars[-1], unit_totals=replace(totals, parts=len(sidecars)))
        encoded = [msgspec.json.format(msgspec.json.encode(each)) for each in sidecars]
        for sidecar, data in zip(sidecars, encoded, strict=True):
            name = sidecar_name(sidecar.unit, sidecar.part, sidecar.split)
            write_atomically(self._output, name, data)
        return encoded

    def _open_part(self, split: str) -> OpenShard:
        if split not in self._open:
            name = shard_name(self._group.index, len(self._finished[split]), split)
            compression = self._settings.compression
            self._open[split] = OpenShard(self._output, name, self._schema, compression)
        return self._open[split]

    def _close_part(self, split: str) -> None:
        facts = self._open[split].close()
        del self._open[split]
        self._finished[split].append(
            ShardSidecar(
                split=split,
                unit=self._group.index,
                part=len(self._finished[split]),
                settings_digest=self._settings.digest,
                inputs=self._group.inputs,
                input_digest=self._group.input_digest,
                **facts,
            )
        )

    def _remove_stale_files(self) -> None:
        """An earlier attempt on an older version of the input may have left more than this one."""
        unit = self._group.index
        for split, finished in self._finished.items():
            stale = [each(unit, len(finished), split) for each in (shard_name, sidecar_name)]
            delete_files(self._output, stale)
