"""The table of `beam-bpe train --from-counts`, checked to be one of the training's kind."""

from __future__ import annotations

import os

from bpe.counting import CountMetadata, check_count_metadata, read_count_metadata
from bpe.errors import CountTableError
from bpe.pretokenizing.schemes import get_scheme
from pipelines.cli.commands.train_job import COUNTS_FOLDER
from pipelines.shards.artifact_kind import recognize
from pipelines.storage.output_files import is_local, join
from pipelines.training.count_artifact import CountArtifact, load_counts, open_counts
from pipelines.training.count_words import CountSettings

__all__ = ["load_given_counts"]


def load_given_counts(
    path: str, counting: CountSettings, pretokenizer: str | None
) -> CountArtifact:
    """The table of --from-counts, checked to be one of this training's kind.

    The words of a folder are not loaded yet: they may be too many for this machine.

    Args:
        path: folder of a count table, or an Arrow IPC file.
        counting: how the words must have been counted.
        pretokenizer: as the user gave it, to vouch for a file that names none; None if not given.

    Raises:
        CountTableError: the table is missing, damaged, or of another kind.
    """
    artifact = _load(path)
    scheme = get_scheme(counting.pretokenizer)
    expected = CountMetadata(
        scheme.name,
        scheme.unicode_version,
        special_text=counting.special_text,
        special_tokens=counting.acting_tokens,
    )
    try:
        if _is_bare(artifact):
            _check_bare(artifact, pretokenizer)
        else:
            check_count_metadata(read_count_metadata(artifact.table), expected)
    except CountTableError as error:
        raise CountTableError(f"--from-counts {path}: {error}") from error
    if counting.first_positions and "first" not in artifact.table.column_names:
        raise CountTableError(
            f"--from-counts {path}: the table does not say where words first "
            "occur, which --tie-order first needs; count with --tie-order first"
        )
    return artifact


def _load(path: str) -> CountArtifact:
    """The table, its words unread if it is a folder; of another folder of ours, says what it is."""
    if is_local(path) and os.path.isfile(path):
        return load_counts(path)
    try:
        return open_counts(path)
    except CountTableError as error:
        place = recognize(path)
        if place.kind in {"counts", "nothing", "other", "parent"}:
            raise
        inside = join(path, COUNTS_FOLDER)
        remedy = (
            f"give {inside}"
            if recognize(inside).kind == "counts"
            else "give OUTPUT/counts of a beam-bpe train, or an Arrow IPC file with the columns "
            "word and count"
        )
        raise CountTableError(f"--from-counts {path}: {place.what}; {remedy}") from error


def _is_bare(artifact: CountArtifact) -> bool:
    """Whether a table was made by something else, which did not say how it counted."""
    metadata = artifact.table.schema.metadata or {}
    return artifact.manifest is None and not any(key.startswith(b"beam_bpe.") for key in metadata)


def _check_bare(artifact: CountArtifact, pretokenizer: str | None) -> None:
    columns = artifact.table.column_names
    missing = [name for name in ("word", "count") if name not in columns]
    if missing:
        raise CountTableError(
            f"has no column {missing[0]!r}, only {columns}; give a table with the columns word "
            "(binary) and count (int64)"
        )
    if pretokenizer is None:
        raise CountTableError(
            "the table does not say which pre-tokenizer made its words; give the one that did "
            "(--pretokenizer gpt2, say)"
        )
