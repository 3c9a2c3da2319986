"""Seed pieces of a Unigram vocabulary, counted on the workers: files of a count table in.

    file of words ─ CountSubstrings ─► (bucket, table) ─ sum per key ─ WriteSeeds ─► SEEDS/bucket-…

A bucket has all uses of its substrings, so that it can tell which are seeds, and gives the best of
them; the driver takes the best of all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from bpe.recipes.unigram_seeds import (
    add_substrings,
    count_substrings,
    join_seeds,
    keep_to,
    pick_seeds,
    training_words,
)
from pipelines.runners.beam_flush_patch import send_without_timer
from pipelines.runners.worker_errors import reported_errors
from pipelines.storage.output_files import (
    delete_files,
    join,
    list_files,
    read_bytes,
    remove_empty_folder,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.output_names import BUCKET_FILE, bucket_file_name
from pipelines.training.count_artifact import read_bucket_file
from pipelines.training.count_tables import from_ipc, split_by_bucket, to_ipc
from pipelines.training.count_words import SumCounts

__all__ = ["CountSeeds", "SeedRules", "clear_seeds", "read_seeds"]

_TABLE_BYTES = 64 << 20


@dataclass(frozen=True)
class SeedRules:
    """What decides the seeds, besides the words.

    Attributes:
        longest: characters of a seed.
        lowest: count and bytes of the last word that is trained on, the most frequent coming
            first, and words of the same count by bytes.
        most: how many seeds there may be.
    """

    longest: int
    lowest: tuple[int, bytes]
    most: int


class CountSeeds(beam.PTransform):
    """Counts the substrings of words and writes the best.

    Input: files of a count table, each the JSON of folder, name and sha256. Output: the names of
    the files written to `folder`, for `read_seeds`. A file written twice is the same.

    Args:
        folder: of the seeds; made if missing.
        rules: what a seed is.
        buckets: number of hash buckets, at least 1.
    """

    def __init__(self, folder: str | os.PathLike[str], rules: SeedRules, buckets: int) -> None:
        super().__init__()
        self._count = _CountSubstrings(rules, buckets)
        self._write = _WriteSeeds(os.fspath(folder), rules.most)

    def expand(self, files: beam.PCollection[str]) -> beam.PCollection[str]:
        """Apply to the files."""
        send_without_timer()
        return (
            files
            | "CountSubstrings" >> beam.ParDo(self._count).with_output_types(tuple[int, bytes])
            | "SumSubstrings" >> beam.CombinePerKey(_SumSubstrings())
            | "WriteSeeds" >> beam.ParDo(self._write).with_output_types(str)
        )


class _CountSubstrings(beam.DoFn):
    """Reads a file of words and emits the substrings, a table for each bucket."""

    def __init__(self, rules: SeedRules, buckets: int) -> None:
        self._rules = rules
        self._buckets = buckets

    def process(self, element: str) -> Iterator[tuple[int, bytes]]:
        """Count one file; emission happens here, never in `finish_bundle` (Dask drops that)."""
        with reported_errors() as work:
            folder, name, sha256 = json.loads(element)
            work.name = join(folder, name)
            table = read_bucket_file(folder, name, sha256).combine_chunks()
            words, counts = (pa.concat_arrays(table[each].chunks) for each in ("word", "count"))
            found = keep_to(
                training_words(words.cast(pa.large_binary()), counts), self._rules.lowest
            )
            tables: list[pa.Table] = []
            for part in count_substrings(found.words, found.counts, self._rules.longest):
                tables.append(part)
                if sum(each.nbytes for each in tables) > _TABLE_BYTES:
                    tables = [add_substrings(tables)]
                if tables[0].nbytes > _TABLE_BYTES:
                    yield from self._emit(tables.pop())
            if tables:
                yield from self._emit(add_substrings(tables))

    def _emit(self, table: pa.Table) -> Iterator[tuple[int, bytes]]:
        for bucket, rows in split_by_bucket(table, self._buckets):
            yield bucket, to_ipc(rows)


class _SumSubstrings(SumCounts):
    """Adds tables of substrings; as `SumCounts`, but in no order."""

    def compact(self, accumulator: list[bytes]) -> list[bytes]:
        """At most one table."""
        if len(accumulator) < 2:
            return accumulator
        with reported_errors():
            return [to_ipc(add_substrings([from_ipc(each) for each in accumulator]))]

    def extract_output(self, accumulator: list[bytes]) -> bytes:
        """The one table left."""
        with reported_errors():
            return to_ipc(add_substrings([from_ipc(each) for each in accumulator]))


class _WriteSeeds(beam.DoFn):
    """Writes the best seeds of a bucket."""

    def __init__(self, folder: str, most: int) -> None:
        self._folder = folder
        self._most = most

    def process(self, element: tuple[int, bytes]) -> Iterator[str]:
        """Write one bucket and name its file."""
        bucket, data = element
        name = bucket_file_name(bucket)
        with reported_errors():
            seeds = pick_seeds(from_ipc(data), self._most)
            write_atomically(self._folder, name, to_ipc(seeds))
        yield name


def read_seeds(folder: str, most: int) -> pa.Table:
    """The best seeds of all buckets, in order; see `pick_seeds`."""
    return join_seeds([from_ipc(read_bytes(join(folder, name))) for name in _files(folder)], most)


def clear_seeds(folder: str) -> None:
    """Remove the files of seeds, and the folder if nothing else is in it."""
    delete_files(folder, _files(folder))
    remove_temporary_files(folder)
    remove_empty_folder(folder)


def _files(folder: str) -> list[str]:
    return sorted(name for name in list_files(folder) if BUCKET_FILE.fullmatch(name))
