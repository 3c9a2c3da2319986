"""`beam-bpe export`: a finished folder of shards in the format of another trainer."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Literal

from bpe.errors import BpeError, SettingsError
from bpe.version import __version__
from pipelines.cli.commands import job
from pipelines.exports import EXPORTS, Export, ExportOptions, ShardSource
from pipelines.exports.export_run import (
    ExportRun,
    describe_export,
    refuse_inside,
    run_export,
)
from pipelines.runners.progress import (
    ProgressReporter,
    Stopwatch,
    format_bytes,
    format_count,
    show_progress,
)
from pipelines.shards.manifest import read_manifest
from pipelines.shards.shards_of_split import split_names
from pipelines.shards.tokenizer_files import load_copy
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import TOKENIZER_FOLDER
from pipelines.storage.run_folder import claimed
from pipelines.storage.wording import counted
from schemas.export_record import ExportRecord
from schemas.run_record import RunRecord
from schemas.sidecars import Manifest

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    job.use_storage_options(arguments)
    watch = Stopwatch()
    directory, output = arguments.directory, arguments.output
    export = EXPORTS[arguments.to](_options(arguments))
    manifest = read_manifest(directory, split_option="--split")
    bos = _mark(arguments, manifest, "bos", "--prepend-bos", arguments.prepend_bos)
    eos = _mark(arguments, manifest, "eos", "--append-eos", arguments.append_eos)
    split, validation = _splits(arguments, manifest, export)
    with show_progress("exporting", manifest.totals.file_bytes) as folder:
        progress = ProgressReporter(folder).add
        source = ShardSource(
            directory,
            bos=bos,
            eos=eos,
            split=split,
            validation=validation,
            progress=progress,
        )
        export.check(source)
        _tell_missing_separator(export, source)
        wanted = describe_export(arguments.to, export, source)
        refuse_inside(output)
        record, found = _make(arguments, export, source, wanted)
    if found:
        job.note(f"{output} is finished, with equal settings and shards: nothing to do")
    _print_summary(output, record, None if found else watch.seconds)
    return 0


def _make(
    arguments: Namespace, export: Export, source: ShardSource, wanted: RunRecord
) -> tuple[ExportRecord, bool]:
    """The record of the export, and whether it was there already."""
    output = arguments.output
    made = [each.file_names for each in EXPORTS.values()]
    with claimed(ExportRun(output, wanted, overwrite=arguments.overwrite, made=made)) as found:
        if found.record is not None:
            return found.record, True
        return run_export(export, source, output, wanted, code_version=__version__), False


def _options(arguments: Namespace) -> ExportOptions:
    name = arguments.name
    if name is not None and (not name or "/" in name or name.startswith((".", "_"))):
        raise SettingsError(
            f"--name {name!r}: is the first part of files' names; it cannot be empty, hold a "
            "slash, or begin with a dot or an underscore"
        )
    return ExportOptions(
        dtype=arguments.dtype,
        name=name,
        val_fraction=arguments.val_fraction,
        tokens_per_file=arguments.tokens_per_file,
        block_size=arguments.block_size,
    )


def _splits(
    arguments: Namespace, manifest: Manifest, export: Export
) -> tuple[str | None, str | None]:
    """The split that is exported, and the one that is held out beside it.

    Raises:
        SettingsError: documents are held out by split and by `--val-fraction` at once.
    """
    names = split_names(manifest)
    validation = next((name for name in ("validation", "val") if name in names), None)
    if arguments.split is not None or not export.has_validation or validation is None:
        return arguments.split, None
    if "train" not in names:
        return None, None
    if arguments.val_fraction is not None:
        raise SettingsError(
            f"--val-fraction {arguments.val_fraction}: the split {validation} of "
            f"{arguments.directory} is held out already; leave the option out, or name one split "
            "with --split"
        )
    others = [name for name in names if name not in ("train", validation)]
    if others:
        job.note(f"note: train and {validation} are exported, without {', '.join(others)}")
    return "train", validation


def _mark(
    arguments: Namespace,
    manifest: Manifest,
    mark: Literal["bos", "eos"],
    option: str,
    value: str | None,
) -> int | None:
    """The id that an export adds to each document.

    Raises:
        SettingsError: the tokenizer has no such token, or the documents have such a mark already.
    """
    if value is None:
        return None
    directory = arguments.directory
    if manifest.settings.get(mark) is not None:
        raise SettingsError(
            f"{option} {value}: the documents in {directory} have one already, "
            f"{manifest.settings[mark]}, from encode; leave the option out"
        )
    try:
        return load_copy(join(directory, TOKENIZER_FOLDER)).token_id(value)
    except BpeError as error:
        raise SettingsError(f"{option} {value}: {error}") from error


def _tell_missing_separator(export: Export, source: ShardSource) -> None:
    marked = [source.bos, source.eos, *map(source.manifest.settings.get, ("bos", "eos"))]
    if export.keeps_documents or source.documents < 2 or any(each is not None for each in marked):
        return
    job.note(
        f"note: documents run into each other in {export.title}, and the shards have no EOS "
        "between them; --append-eos TOKEN puts one after each"
    )


def _print_summary(output: str, record: ExportRecord, seconds: float | None) -> None:
    size = sum(file.bytes for file in record.files)
    lines = [
        f"documents        {format_count(record.documents)}",
        f"tokens           {format_count(record.tokens)} ({record.settings['dtype']})",
    ]
    for name, side in record.sides.items():
        lines.append(
            f"{name:<16} {counted(side.documents, 'document')}, {counted(side.tokens, 'token')}"
        )
    for name, count in record.left_out.items():
        first, _, rest = name.partition(" ")
        one = f"{first.removesuffix('s')} {rest}"
        lines.append(f"left out         {counted(count, one, name)}")
    lines.append(f"files            {len(record.files)} ({format_bytes(size)})")
    if seconds is not None:
        lines.append(job.seconds_line(seconds, size))
    lines.append(f"output           {output}")
    sys.stdout.write("\n".join(lines) + "\n")
