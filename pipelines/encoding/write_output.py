"""From the encoded rows of a unit to its shards: divided among splits, packed, written."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

import numpy as np
import pyarrow as pa

from bpe.tokenizer import Tokenizer
from pipelines.corpus.token_lengths import token_lengths
from pipelines.encoding.pack_rows import Packer
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import add_packing
from pipelines.shards.split_documents import Splitter
from pipelines.shards.token_rows import TokenRows
from pipelines.shards.write_shards import ShardGroup, ShardWriter
from schemas.packed_shards import packed_shard_schema
from schemas.sidecars import PackingTotals, UnitTotals
from schemas.token_shards import token_shard_schema

__all__ = ["OutputWriter", "output_schema"]


def output_schema(tokenizer: Tokenizer, settings: EncodeSettings) -> pa.Schema:
    """Schema of the shards that a run writes."""
    if settings.pack is None:
        return token_shard_schema(tokenizer.id_type)
    return packed_shard_schema(tokenizer.id_type, settings.pack)


class OutputWriter:
    """Writes the rows of one unit or bucket; a context manager, as `ShardWriter` is.

    Args:
        output: folder of the shards.
        group: the unit or bucket.
        tokenizer: that made the ids.
        settings: of the run.
    """

    def __init__(
        self, output: str, group: ShardGroup, tokenizer: Tokenizer, settings: EncodeSettings
    ) -> None:
        schema = output_schema(tokenizer, settings)
        self._writer = ShardWriter(output, group, schema, settings)
        self._names = settings.split_names
        self._splitter = Splitter(settings.splits, settings.seed) if settings.splits else None
        self._packers: list[Packer] = []
        if settings.pack is not None:
            lengths = token_lengths(tokenizer)
            self._packers = [Packer(schema, settings, lengths) for _ in self._names]

    def __enter__(self) -> OutputWriter:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._writer.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def write(self, rows: TokenRows) -> None:
        """Take rows of `schemas.token_shards`, in the order in which they are to stand.

        Raises:
            OutputError: a file cannot be written (no space, say); names it.
        """
        if self._splitter is None:
            self._pack(rows, 0)
            return
        splits = self._splitter.assign(rows.batch["document_id"])
        for split in np.unique(splits).tolist():
            self._pack(rows.filter(splits == split), split)

    def finish_packing(self) -> PackingTotals:
        """Write what packing held back; returns what it added or left out."""
        sums = PackingTotals()
        for split, packer in enumerate(self._packers):
            self._write(packer.finish(), split)
            sums = add_packing(sums, packer.totals())
        return sums

    def finish(self, totals: UnitTotals) -> list[bytes]:
        """Close the shards and write their sidecars; see `ShardWriter.finish`."""
        return self._writer.finish(totals)

    def _pack(self, rows: TokenRows, split: int) -> None:
        self._write(self._packers[split].add(rows) if self._packers else [rows], split)

    def _write(self, batches: Iterable[TokenRows], split: int) -> None:
        for rows in batches:
            self._writer.write(rows, self._names[split])
