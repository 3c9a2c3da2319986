"""The count table on storage: bucket files and a manifest, written last.

    counts/bucket-BBBBB.arrow   Arrow IPC file of `schemas.word_counts`, sorted by word
    counts/manifest.json        settings, inputs, totals, digest; its presence means "complete"
    counts/rejects/             rows that were set aside, if any

The bytes of all files depend on the input and the settings alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import CountTableError, OutputError
from pipelines.output_files import (
    delete_files,
    exists,
    is_local,
    join,
    list_files,
    read_bytes,
    remove_temporary_files,
    write_atomically,
)
from pipelines.settings import describe_differences, digest_of

__all__ = [
    "REPORT_FOLDER",
    "CountArtifact",
    "clear_counts",
    "finish_counts",
    "load_counts",
    "refuse_other_counts",
]

_MANIFEST = "manifest.json"
_FORMAT = "beam_bpe.count_table"
_VERSION = 1
REPORT_FOLDER = "_temporary"
"""Where units leave their totals until the manifest holds the sum."""


@dataclass(frozen=True)
class CountArtifact:
    """A complete count table.

    Attributes:
        table: all words, sorted; the schema's metadata names scheme, Unicode version and policies.
        manifest: what `counts/manifest.json` holds.
    """

    table: pa.Table
    manifest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over the metadata and all bucket files."""
        return str(self.manifest["digest"])


def clear_counts(directory: str) -> None:
    """Remove the files of a count table (complete or not); the manifest goes first."""
    delete_files(directory, [_MANIFEST])
    ours = [name for name in list_files(directory) if name.startswith("bucket-")]
    delete_files(directory, ours)
    rejects = join(directory, "rejects")
    delete_files(rejects, [name for name in list_files(rejects) if name.startswith("unit-")])
    remove_temporary_files(directory)


def finish_counts(
    directory: str, units: int, settings: Mapping[str, Any], inputs: list[dict[str, Any]]
) -> Mapping[str, Any]:
    """Add up the units' totals and write the manifest, last of all files.

    Args:
        directory: the folder of the table, with all bucket files in place.
        units: how many units the plan has; each must have left its totals.
        settings: what decided the counts.
        inputs: path and identity of each file.

    Raises:
        OutputError: a unit's totals are missing.
    """
    totals = _add_totals(join(directory, REPORT_FOLDER), units)
    files = []
    metadata: dict[str, str] = {}
    words = occurrences = 0
    for name in sorted(list_files(directory)):
        if not name.startswith("bucket-"):
            continue
        data = read_bytes(join(directory, name))
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        metadata = {
            key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()
        }
        words += table.num_rows
        # Python's integers: the sum over all words may pass int64.
        occurrences += sum(int(pc.sum(chunk).as_py() or 0) for chunk in table["count"].chunks)
        sha256 = hashlib.sha256(data).hexdigest()
        files.append({"name": name, "words": table.num_rows, "sha256": sha256})
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": dict(settings),
        "inputs": inputs,
        "totals": {**totals, "words": words, "occurrences": occurrences},
        "files": files,
        "digest": digest_of({"metadata": metadata, "files": files}),
    }
    write_atomically(directory, _MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
    remove_temporary_files(directory)
    return manifest


def _add_totals(folder: str, units: int) -> dict[str, Any]:
    names = set(list_files(folder))
    documents = text_bytes = 0
    rejects: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for index in range(units):
        name = f"unit-{index:05d}.json"
        if name not in names:
            raise OutputError(
                f"{join(folder, name)}: is missing although the job ended; run it again"
            )
        unit = json.loads(read_bytes(join(folder, name)))
        documents += unit["documents"]
        text_bytes += unit["bytes"]
        rejects.update(unit["rejects"])
        accepted.update(unit["accepted"])
    return {
        "documents": documents,
        "bytes": text_bytes,
        "rejects": dict(sorted(rejects.items())),
        "accepted": dict(sorted(accepted.items())),
    }


def read_count_manifest(directory: str) -> Mapping[str, Any] | None:
    """The manifest of a complete count table; None when there is none.

    Raises:
        CountTableError: it is damaged or of a later version.
    """
    path = join(directory, _MANIFEST)
    if not exists(path):
        return None
    try:
        manifest = json.loads(read_bytes(path))
    except ValueError as error:
        raise CountTableError(f"{path}: is damaged: {error}; count again") from error
    if manifest.get("format") != _FORMAT or manifest.get("version") != _VERSION:
        raise CountTableError(
            f"{path}: is {manifest.get('format')} version {manifest.get('version')}, expected "
            f"{_FORMAT} version {_VERSION}; count again"
        )
    return dict(manifest)


def refuse_other_counts(
    directory: str,
    manifest: Mapping[str, Any],
    settings: Mapping[str, Any],
    inputs: list[dict[str, Any]],
) -> None:
    """Check that a table that is already there was counted with these settings on these files.

    Raises:
        OutputError: it was not; names each setting with old and new value.
    """
    differences = describe_differences(manifest["settings"], settings)
    old, new = manifest["inputs"], inputs
    if old != new:
        changed = [each for each in [*old, *new] if each not in old or each not in new]
        differences.append(
            f"inputs: was {len(old)} file(s), now {len(new)}; {changed[0]['path']} is new, gone or "
            "changed"
        )
    if differences:
        raise OutputError(
            f"{directory}: holds counts made with other settings ({'; '.join(differences)}); "
            "give the same settings, another --output, or --overwrite to count again"
        )


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
    manifest = read_count_manifest(directory)
    if manifest is None:
        raise CountTableError(
            f"{join(directory, _MANIFEST)}: is missing: the folder holds no complete count table "
            "(beam-bpe train writes one to OUTPUT/counts)"
        )
    tables = []
    for entry in manifest["files"]:
        path = join(directory, entry["name"])
        data = read_bytes(path) if exists(path) else b""
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise CountTableError(f"{path}: is missing or not what its manifest says; count again")
        tables.append(pa.ipc.open_file(pa.py_buffer(data)).read_all())
    if not tables:
        raise CountTableError(f"{directory}: the count table holds no words: the input has no text")
    table = pa.concat_tables(tables).combine_chunks()
    return CountArtifact(table.take(pc.sort_indices(table["word"])), manifest)


def _load_count_file(path: str) -> CountArtifact:
    data = read_bytes(path)
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    except pa.ArrowInvalid as error:
        raise CountTableError(f"{path}: is no Arrow IPC file: {error}") from error
    return CountArtifact(table, {"digest": hashlib.sha256(data).hexdigest(), "totals": {}})
