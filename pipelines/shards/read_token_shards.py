"""A source of token shards: the rows of a finished output as Arrow batches."""

from __future__ import annotations

import os
from collections.abc import Iterator

import apache_beam as beam
import pyarrow as pa

from bpe.errors import BpeError, OutputError, SettingsError
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.manifest import file_sha256, read_manifest
from pipelines.storage.output_files import join, open_for_reading

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
        self._shards = [
            (join(output, shard.file), shard.file_bytes, shard.sha256 if check else "")
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
    """Reads one shard: its path, its size in bytes, and its hash if that is to be checked."""

    def process(self, element: tuple[str, int, str]) -> Iterator[pa.RecordBatch]:
        """The shard's batches, in order."""
        path, size, sha256 = element
        with reported_errors():
            try:
                with open_for_reading(path) as file:
                    if file.size() != size:
                        raise OutputError(f"{path}: has {file.size()} bytes, the manifest {size}")
                    if sha256 and file_sha256(path) != sha256:
                        raise OutputError(f"{path}: its sha256 is not the manifest's {sha256}")
                    reader = pa.ipc.open_file(file)
                    for index in range(reader.num_record_batches):
                        yield reader.get_batch(index)
            except BpeError:
                raise
            except (OSError, pa.ArrowException) as error:
                raise OutputError(f"{path}: is damaged: {error}") from error
