"""A source of token shards: the rows of a finished output as Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa

from bpe.errors import OutputError, SettingsError
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.manifest import file_sha256, read_manifest
from pipelines.shards.shard_reader import open_shard
from pipelines.storage.output_files import join

__all__ = ["ReadTokenShards"]


class ReadTokenShards(beam.PTransform):
    """Reads what `beam-bpe encode` wrote.

    Input: a pipeline. Output: `pa.RecordBatch` with the columns of `schemas.token_shards`, or of
    `schemas.packed_shards` if the output is packed. On a local file system batches are views of
    mapped files until the runner sends them elsewhere.

        with beam.Pipeline() as pipeline:
            pipeline | ReadTokenShards("tokens", split="train") | beam.Map(print)

    Args:
        output: the folder, with its manifest.
        split: of an output with splits; "" for all of them.
        check: compare each shard's SHA-256 with the manifest's before its rows are handed on.

    Raises:
        OutputError: the folder is no finished output; on the workers, a shard is damaged.
        SettingsError: the output has no such split.
    """

    def __init__(
        self, output: str | os.PathLike[str], *, split: str = "", check: bool = False
    ) -> None:
        super().__init__()
        output = os.fspath(output)
        manifest = read_manifest(output)
        names = [name for name, _ in manifest.settings["splits"]]
        if split and split not in names:
            raise SettingsError(
                f"split={split!r}: {output} has "
                + (f"the splits {', '.join(names)}" if names else "no splits")
            )
        row_ids = manifest.settings.get("pack")
        self._shards = [
            (join(output, shard.file), shard.file_bytes, shard.sha256 if check else "", row_ids)
            for shard in manifest.shards
            if shard.rows and split in ("", shard.split)
        ]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[pa.RecordBatch]:
        """Apply to a pipeline."""
        return (
            pipeline
            | "Shards" >> beam.Create(self._shards)
            | "ReadShard" >> beam.ParDo(_ReadShard()).with_output_types(pa.RecordBatch)
        )


class _ReadShard(beam.DoFn):
    """Reads one shard: path, size in bytes, hash if that is to be checked, ids in packed rows."""

    def process(self, element: tuple[str, int, str, int | None]) -> Iterator[pa.RecordBatch]:
        """The shard's batches, in order."""
        path, size, sha256, row_ids = element
        with reported_errors(), open_shard(path, row_ids, size=size) as batches:
            if sha256 and file_sha256(path) != sha256:
                raise OutputError(f"{path}: its sha256 is not the manifest's {sha256}")
            yield from batches
