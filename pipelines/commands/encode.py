"""`beam-bpe encode`: a corpus into Arrow shards of token ids.

Plan, compare with what the output holds, encode the units that are missing, write the manifest.
"""

from __future__ import annotations

import sys
from argparse import Namespace

from apache_beam.options.pipeline_options import PipelineOptions

from bpe.backend import get_backend
from bpe.errors import BpeError, SettingsError
from bpe.tokenizer import Tokenizer, load_tokenizer
from pipelines.commands import job
from pipelines.encode_documents import EncodeDocuments, EncodeSettings
from pipelines.inputs import ReadOptions
from pipelines.manifest import read_manifest, write_manifest
from pipelines.output_files import join, prepare_output
from pipelines.output_folder import REJECTS_FOLDER
from pipelines.output_lock import locked_output
from pipelines.plan import Plan, Unit, make_plan
from pipelines.progress import Stopwatch, format_bytes, format_count, show_progress
from pipelines.resume import Found, begin_run, find_finished_units, remove_stale_files
from pipelines.runner_setup import end_process, run_pipeline
from pipelines.tokenizer_files import TOKENIZER_FOLDER, save_copy
from schemas.sidecars import Manifest

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.arguments` for the options."""
    watch = Stopwatch()
    options = job.beam_options(arguments)
    read = job.read_options(arguments)
    tokenizer = load_tokenizer(arguments.tokenizer, pretokenizer=arguments.pretokenizer)
    job.tell_lossy(tokenizer)
    settings = _settings(arguments, tokenizer, read)
    inputs = job.list_and_report(arguments, read)
    plan = make_plan(inputs, read)
    _check_row_length(settings, plan)
    output = arguments.output
    prepare_output(output)
    with locked_output(output):
        found = begin_run(output, settings, plan, overwrite=arguments.overwrite)
        for sentence in found.notes:
            job.note(f"note: {sentence}")
        if found.finished:
            job.note(f"{output} is finished, with equal settings and input: nothing to do")
            _print_summary(output, read_manifest(output), None)
            return 0
        save_copy(tokenizer, arguments.tokenizer, join(output, TOKENIZER_FOLDER))
        kept = _keep_finished(output, settings, plan, found)
        missing = [unit for unit in plan.units if unit.index not in kept]
        _encode(arguments, options, settings, missing)
        manifest = write_manifest(
            output,
            settings,
            plan,
            code_version=job.code_version(),
            backend=get_backend().name,
            listing=inputs.counts,
        )
    _print_summary(output, manifest, watch.seconds, resumed=bool(kept))
    return 0


def _encode(
    arguments: Namespace, options: PipelineOptions, settings: EncodeSettings, units: list[Unit]
) -> None:
    if not units:
        return
    with show_progress("encoding", sum(unit.stored_bytes for unit in units)) as folder:
        run_pipeline(
            options,
            lambda pipeline: (
                pipeline
                | job.create_units(units)
                | EncodeDocuments(arguments.output, settings, progress_folder=folder)
            ),
            lost_worker=lambda what: end_process(f"{what}; {job.resume_hint(arguments)}"),
        )


def _settings(arguments: Namespace, tokenizer: Tokenizer, read: ReadOptions) -> EncodeSettings:
    return EncodeSettings(
        tokenizer_digest=tokenizer.digest,
        read=read,
        bos=_token_id(tokenizer, "--prepend-bos", arguments.prepend_bos),
        eos=_token_id(tokenizer, "--append-eos", arguments.append_eos),
        special_text=arguments.special_text,
        shard_bytes=arguments.shard_bytes,
        max_row_tokens=arguments.max_row_tokens,
    )


def _token_id(tokenizer: Tokenizer, option: str, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return tokenizer.token_id(value)
    except BpeError as error:
        raise SettingsError(f"{option} {value}: {error}") from error


def _check_row_length(settings: EncodeSettings, plan: Plan) -> None:
    """Rows of one document carry rising part numbers, of which a range of a file has one."""
    shortest = settings.read.range_bytes + 2
    if settings.max_row_tokens >= shortest or settings.read.document_separator is not None:
        return
    for file in plan.files:
        if file.format == "text" and file.size > settings.read.range_bytes:
            raise SettingsError(
                f"--max-row-tokens {settings.max_row_tokens}: {file.path} is one document cut into "
                f"ranges of {settings.read.range_bytes} bytes, whose rows need up to {shortest} "
                "ids; allow so many, or give a smaller --range-bytes"
            )


def _keep_finished(output: str, settings: EncodeSettings, plan: Plan, found: Found) -> set[int]:
    kept = find_finished_units(output, settings, plan) if found.resumed else set()
    removed = remove_stale_files(output, kept)
    if found.resumed:
        left = f"; removed {removed} file(s) of unfinished units" if removed else ""
        job.note(f"resuming: kept {len(kept)} of {len(plan.units)} units{left}")
    return kept


def _print_summary(
    output: str, manifest: Manifest, seconds: float | None, *, resumed: bool = False
) -> None:
    totals = manifest.totals
    tokens, size = totals.tokens, totals.bytes
    lines = [
        f"documents        {format_count(totals.documents)}",
        f"bytes of text    {format_count(size)} ({format_bytes(size)})",
        f"tokens           {format_count(tokens)}",
        f"bytes per token  {size / tokens:.3f}" if tokens else "bytes per token  -",
        f"shards           {totals.shards} ({format_bytes(totals.file_bytes)})",
    ]
    if totals.rejects:
        reasons = ", ".join(f"{reason} {count}" for reason, count in totals.rejects.items())
        lines.append(f"rejected         {reasons} (see {join(output, REJECTS_FOLDER)})")
    lines += job.accepted_lines(totals.accepted, manifest.listing)
    is_text = manifest.settings["special_text"] == "text"
    meaning = "as ordinary text" if is_text else "as special tokens"
    lines += job.special_text_lines(totals.special_text, meaning)
    if seconds is not None:
        lines.append(job.seconds_line(seconds, None if resumed else size))
    lines.append(f"output           {output}")
    sys.stdout.write("\n".join(lines) + "\n")
