"""`beam-bpe plan`: what a job would read, without running it."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace

from bpe.errors import BadFileError, InputError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.cli.commands import job
from pipelines.corpus.listing.input_refusals import group_refusals
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Plan, make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.read_options import NULL_TEXT
from pipelines.corpus.rejects import Rejects
from pipelines.runners.progress import format_bytes, format_count
from pipelines.storage.wording import counted

__all__ = ["run"]

_SHOWN_FILES = 10
_SHOWN_BYTES = 80
# A worker holds a batch of text, its ids and what the reader looked ahead.
_WORKER_BYTES = 128 << 20
_NULLS = {
    "fail": "train and encode stop at them: pass --nulls=skip or --nulls=empty",
    "skip": "they are set aside",
    "empty": "they are empty documents",
}


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    job.use_storage_options(arguments)
    read = job.read_options(arguments)
    refused: InputError | None = None
    try:
        inputs = job.list_and_report(arguments, read)
    except (SettingsError, BadFileError) as error:
        if read.on_bad_file == "skip":
            raise
        # All the same show what can be read, and what cannot.
        refused = error
        read = replace(read, on_bad_file="skip")
        inputs = job.list_and_report(arguments, read)
    plan = make_plan(inputs, read)
    _print_files(plan)
    ranges = sum(len(unit.ranges) for unit in plan.units)
    sizes = [unit.stored_bytes for unit in plan.units]
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    size = least if least == most else f"{least} to {most}"
    _print(
        f"{counted(len(plan.units), 'unit')} of {size}, "
        f"from {counted(ranges, 'range', 'ranges')} of files; a unit is one or more shards"
    )
    largest = max(read.max_row_bytes if _has_rows(plan) else 0, 2 * read.range_bytes)
    _print(
        f"memory per worker thread: about {format_bytes(_WORKER_BYTES)}, and up to "
        f"{format_bytes(largest)} more while the longest row allowed is read"
    )
    _print_sample(plan, read, arguments.sample_rows)
    if refused is not None:
        raise refused
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _has_rows(plan: Plan) -> bool:
    return any(file.format != "text" for file in plan.files)


def _print_files(plan: Plan) -> None:
    _print(f"{counted(len(plan.files), 'file')}, {format_bytes(plan.total_bytes)}")
    files = [file for file in plan.files if file.refusal is None]
    for file in files[:_SHOWN_FILES]:
        packed = "" if file.compression == "none" else f", {file.compression}"
        _print(f"  {file.source}  {format_bytes(file.size)}  {file.format}{packed}")
    if len(files) > _SHOWN_FILES:
        _print(f"  … and {format_count(len(files) - _SHOWN_FILES)} more")
    refusals = {file.source: file.refusal for file in plan.files if file.refusal is not None}
    if refusals:
        _print(f"{counted(len(refusals), 'file')} of these cannot be read:")
    for refusal, names in group_refusals(refusals):
        more = f" and {format_count(len(names) - _SHOWN_FILES)} more" * (len(names) > _SHOWN_FILES)
        _print(f"  {format_count(len(names))}: {', '.join(names[:_SHOWN_FILES])}{more}: {refusal}")


def _print_sample(plan: Plan, read: ReadOptions, count: int) -> None:
    """Documents of the first batch, and what would be set aside there."""
    unit = next(
        unit for unit in plan.units if any(part.file.refusal is None for part in unit.ranges)
    )
    # Nulls are counted, not met one by one.
    sample = replace(read, nulls="skip") if read.null_policy == "fail" else read
    rejects = Rejects(unit, sample)
    batch = next(read_unit(unit, sample, CutFinder(get_scheme("gpt2")), rejects), None)
    _print_nulls(rejects, read.null_policy)
    if batch is None:
        _print(f"unit {unit.index} holds no documents")
        return
    _print(f"first documents of unit {unit.index}:")
    for row in batch.slice(0, count).to_pylist():
        text = row["text"][:_SHOWN_BYTES].decode("utf-8", "replace")
        _print(f"  {row['document_id']}  {format_bytes(len(row['text']))}  {text!r}")
    for reason, number in rejects.counts.items():
        if reason != NULL_TEXT:
            _print(f"  set aside so far: {reason} {number}")


def _print_nulls(rejects: Rejects, policy: str) -> None:
    """How many rows of the sample have no text, and what becomes of them."""
    nulls = rejects.counts[NULL_TEXT] + rejects.accepted[NULL_TEXT]
    if nulls:
        rows = max(nulls, rejects.documents_in)
        _print(f"nulls: {format_count(nulls)} of {counted(rows, 'row')} read; {_NULLS[policy]}")
