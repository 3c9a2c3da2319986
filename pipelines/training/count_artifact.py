"""The count table on storage: bucket files and a manifest, written last.

    counts/bucket-BBBBB.arrow   Arrow IPC file of `schemas.word_counts`, sorted by word
    counts/manifest.json        settings, inputs, totals, digest; its presence means "complete"
    counts/rejects/             rows that were set aside, if any
    counts/_temporary/          while the job runs: each unit's totals

The bytes of all files depend on the input and the settings alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import CountTableError, OutputError
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import check_rejects
from pipelines.corpus.settings import digest_of
from pipelines.corpus.unit_reports import (
    REPORT_FOLDER,
    UnitReport,
    check_balance,
    occurrences_in,
    read_reports,
    remove_reports,
)
from pipelines.storage.output_files import (
    delete_files,
    exists,
    is_local,
    join,
    list_files,
    open_for_reading,
    read_bytes,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.output_folder import delete_rejects
from pipelines.storage.output_names import BUCKET_FILE
from pipelines.storage.records import read_record
from schemas.count_manifest import (
    COUNTS_FORMAT,
    COUNTS_VERSION,
    BucketFile,
    CountManifest,
    CountTotals,
)
from schemas.run_record import InputRecord

__all__ = [
    "COUNTS_MANIFEST",
    "CountArtifact",
    "clear_counts",
    "finish_counts",
    "load_counts",
    "open_counts",
    "read_count_manifest",
    "remove_count_leftovers",
]

COUNTS_MANIFEST = "manifest.json"
_COUNT_AGAIN = "count again: start again with --overwrite"


@dataclass(frozen=True)
class CountArtifact:
    """A complete count table.

    Attributes:
        table: all words, sorted; the schema's metadata names scheme, Unicode version and policies.
        digest: SHA-256 over the metadata and all bucket files.
        manifest: what `counts/manifest.json` holds; None for a table made elsewhere.
    """

    table: pa.Table
    digest: str
    manifest: CountManifest | None

    @property
    def totals(self) -> dict[str, Any]:
        """What was counted, as plain values; empty if nobody wrote it down."""
        return {} if self.manifest is None else dict(msgspec.to_builtins(self.manifest.totals))

    @property
    def words(self) -> int:
        """How many distinct words there are, loaded or not."""
        return self.table.num_rows if self.manifest is None else self.manifest.totals.words

    @property
    def is_loaded(self) -> bool:
        """Whether `table` holds the words, and not their columns and metadata alone."""
        return int(self.table.num_rows) == self.words

    def bucket_files(self, path: str) -> list[tuple[str, str, str]]:
        """Folder, name and sha256 (hex) of each file of the table.

        Args:
            path: that the table was opened with.
        """
        if self.manifest is not None:
            return [(path, each.name, each.sha256) for each in self.manifest.files]
        # The file may be given as a link, which is not followed below a folder of ours.
        folder, name = os.path.split(os.path.realpath(path))
        return [(folder, name, self.digest)]


def clear_counts(directory: str) -> None:
    """Remove the files of a count table (complete or not); the manifest goes first."""
    delete_files(directory, [COUNTS_MANIFEST])
    delete_files(directory, _buckets(directory))
    delete_rejects(directory)
    remove_count_leftovers(directory)


def remove_count_leftovers(directory: str) -> None:
    """Remove what units reported, and what killed attempts left."""
    remove_reports(join(directory, REPORT_FOLDER))
    remove_temporary_files(directory)


def _buckets(directory: str) -> list[str]:
    return sorted(name for name in list_files(directory) if BUCKET_FILE.fullmatch(name))


def finish_counts(
    directory: str,
    units: int,
    settings: Mapping[str, Any],
    inputs: list[InputRecord],
    listing: Mapping[str, int] | None = None,
    *,
    read: ReadOptions | None = None,
) -> CountManifest:
    """Check the units' totals, add them up, and write the manifest, last of all files.

    Args:
        directory: the folder of the table, with all bucket files in place.
        units: how many units the plan has; each must have left its totals.
        settings: what decided the counts.
        inputs: path and identity of each file.
        listing: `InputList.counts`, for the record.
        read: says how many rows all units together may have set aside; None for any number.

    Raises:
        OutputError: a unit's totals are missing; documents in differ from documents counted and
            rejects; or the tables do not hold all that was counted.
        BadRecordError, BadFileError: more was set aside than allowed.
    """
    total = UnitReport.sum(read_reports(join(directory, REPORT_FOLDER), units))
    check_balance(directory, total, went="were counted", result="these counts")
    check_rejects(total.rejects, read or ReadOptions(), directory, left=total.documents)
    files = []
    metadata: dict[str, str] = {}
    words = occurrences = 0
    for name in _buckets(directory):
        data = read_bytes(join(directory, name))
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        metadata = _text_metadata(table)
        words += table.num_rows
        occurrences += occurrences_in(table)
        sha256 = hashlib.sha256(data).hexdigest()
        files.append(BucketFile(name=name, words=table.num_rows, sha256=sha256))
    _check_occurrences(directory, total.occurrences, occurrences)
    manifest = CountManifest(
        settings=dict(settings),
        inputs=inputs,
        listing=dict(listing or {}),
        totals=CountTotals(
            documents=total.documents,
            bytes=total.bytes,
            words=words,
            occurrences=occurrences,
            rejects=total.rejects,
            accepted=total.accepted,
            special_text=total.special_text,
        ),
        files=files,
        digest=_table_digest(metadata, files),
    )
    write_atomically(directory, COUNTS_MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    remove_count_leftovers(directory)
    return manifest


def _check_occurrences(directory: str, counted: int, written: int) -> None:
    """What the units counted went through a grouping of the runner: all of it must come out."""
    if counted != written:
        raise OutputError(
            f"{directory}: {counted} pre-tokens were counted, but the tables hold {written}: the "
            f"runner lost or repeated some on the way; run the same command again, and report it"
        )


def _text_metadata(table: pa.Table) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}


def _table_digest(metadata: Mapping[str, str], files: list[BucketFile]) -> str:
    return digest_of({"metadata": dict(metadata), "files": msgspec.to_builtins(files)})


def read_count_manifest(directory: str) -> CountManifest | None:
    """The manifest of a complete count table; None when there is none.

    Raises:
        CountTableError: it is damaged or of another version.
    """
    path = join(directory, COUNTS_MANIFEST)
    if not exists(path):
        return None
    manifest = read_record(
        path, CountManifest, version=COUNTS_VERSION, remedy=_COUNT_AGAIN, error=CountTableError
    )
    if manifest.format != COUNTS_FORMAT:
        raise CountTableError(
            f"{path}: is a {manifest.format!r}, expected {COUNTS_FORMAT!r}; {_COUNT_AGAIN}"
        )
    return manifest


def open_counts(directory: str) -> CountArtifact:
    """A complete count table whose words are not loaded: `table` has no rows but all metadata.

    Raises:
        CountTableError: it is missing or damaged as far as this shows; names the file.
    """
    manifest = _complete_manifest(directory)
    path = join(directory, manifest.files[0].name)
    if not exists(path):
        raise CountTableError(f"{path}: is missing; {_COUNT_AGAIN}")
    with open_for_reading(path) as file:
        try:
            schema = pa.ipc.open_file(file).schema
        except (OSError, pa.ArrowException) as error:
            raise CountTableError(f"{path}: is damaged: {error}; {_COUNT_AGAIN}") from error
    return CountArtifact(schema.empty_table(), manifest.digest, manifest)


def _complete_manifest(directory: str) -> CountManifest:
    manifest = read_count_manifest(directory)
    if manifest is None:
        raise CountTableError(
            f"{join(directory, COUNTS_MANIFEST)}: is missing: the folder holds no complete count "
            "table (beam-bpe train writes one to OUTPUT/counts)"
        )
    if not manifest.files:
        raise CountTableError(f"{directory}: the count table holds no words: the input has no text")
    return manifest


def load_counts(directory: str) -> CountArtifact:
    """Read a complete count table and check every file of it.

    Args:
        directory: a folder as `finish_counts` leaves it; or one Arrow IPC file with the columns and
            metadata of `schemas.word_counts`, made by whatever means.

    Raises:
        CountTableError: it is missing, incomplete or damaged; names the file.
    """
    if is_local(directory) and os.path.isfile(directory):
        return _load_count_file(directory)
    manifest = _complete_manifest(directory)
    tables = []
    for entry in manifest.files:
        path = join(directory, entry.name)
        data = read_bytes(path) if exists(path) else b""
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            raise CountTableError(
                f"{path}: is missing or not what its manifest says; {_COUNT_AGAIN}"
            )
        tables.append(pa.ipc.open_file(pa.py_buffer(data)).read_all())
    table = pa.concat_tables(tables)
    _check_totals(directory, manifest, table)
    table = table.combine_chunks()
    table = table.take(pc.sort_indices(table["word"]))
    return CountArtifact(table, manifest.digest, manifest)


def read_bucket_file(folder: str, name: str, sha256: str) -> pa.Table:
    """One file of a count table, as `CountArtifact.bucket_files` names it.

    Raises:
        CountTableError: it has another hash.
    """
    path = join(folder, name)
    data = read_bytes(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise CountTableError(
            f"{path}: is not what its manifest says; count again: start again with --overwrite"
        )
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()


def _check_totals(directory: str, manifest: CountManifest, table: pa.Table) -> None:
    facts = {
        "words": (manifest.totals.words, table.num_rows),
        "occurrences": (manifest.totals.occurrences, occurrences_in(table)),
        "digest": (manifest.digest, _table_digest(_text_metadata(table), manifest.files)),
    }
    for name, (written, found) in facts.items():
        if written != found:
            raise CountTableError(
                f"{join(directory, COUNTS_MANIFEST)}: {name} is {written}, but the files give "
                f"{found}; {_COUNT_AGAIN}"
            )


def _load_count_file(path: str) -> CountArtifact:
    data = read_bytes(path)
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    except (OSError, pa.ArrowException) as error:
        raise CountTableError(f"{path}: is no Arrow IPC file: {error}") from error
    if "word" in table.column_names:
        _refuse_repeated_words(path, table["word"])
    return CountArtifact(table, hashlib.sha256(data).hexdigest(), None)


def _refuse_repeated_words(path: str, words: pa.ChunkedArray) -> None:
    """Check that each word has one row, as the trainers take it; words of other types pass.

    Raises:
        CountTableError: one has several; names it.
    """
    is_text = [pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string]
    if not any(check(words.type) for check in [*is_text, pa.types.is_large_string]):
        return
    if pc.count_distinct(words, mode="all").as_py() == len(words):
        return
    counts = pc.value_counts(words.combine_chunks())
    place = pc.index(pc.greater(counts.field("counts"), 1), True).as_py()
    word, rows = counts[place].as_py().values()
    raise CountTableError(
        f"{path}: has {rows} rows of the word {word!r}; give a table with one row a word, its "
        "counts added up"
    )
