"""`beam-bpe encode`: a corpus into Arrow shards of token ids.

Plan, compare with what the output holds, encode the units that are missing, write the manifest.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bpe.backends.choice import get_backend
from bpe.backends.process_memory import bound_free_memory
from bpe.errors import BpeError, OutputError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.cli.commands.load_tokenizer import load_given_tokenizer
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Plan, Unit, make_plan
from pipelines.encoding.encode_documents import EncodeDocuments
from pipelines.encoding.resume import (
    Found,
    begin_run,
    find_finished_buckets,
    find_finished_units,
    find_read_units,
    is_finished,
    remove_spills,
    remove_stale_files,
    remove_stale_units,
)
from pipelines.encoding.shuffle_buckets import Bucket, SpillDocuments, WriteBuckets, plan_buckets
from pipelines.encoding.write_manifest import write_manifest
from pipelines.runners.dask_cluster import LocalDask
from pipelines.runners.job_metrics import JobMetrics, read_metrics
from pipelines.runners.progress import Stopwatch, format_bytes, format_count, show_progress
from pipelines.runners.runner_setup import end_process, run_pipeline
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import read_manifest
from pipelines.shards.split_documents import parse_splits
from pipelines.shards.tokenizer_files import save_copy
from pipelines.storage.output_files import join, prepare_output
from pipelines.storage.output_layout import REJECTS, TOKENIZER_FOLDER
from pipelines.storage.output_lock import locked_output
from pipelines.storage.wording import counted
from schemas.sidecars import Manifest, OutputTotals

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    watch = Stopwatch()
    bound_free_memory()
    options = job.beam_options(arguments)
    read = job.read_options(arguments)
    tokenizer = load_given_tokenizer(arguments)
    job.tell_lossy(tokenizer, arguments.special_text)
    settings = _settings(arguments, tokenizer, read)
    job.tell_framing(tokenizer, settings.bos, settings.eos)
    inputs = job.list_and_report(arguments, read)
    plan = make_plan(inputs, read)
    _check_row_length(settings, plan)
    output = arguments.output
    try:
        prepare_output(output)
    except OutputError:
        if arguments.overwrite or not is_finished(output, settings, plan):
            raise
        return _tell_finished(output)
    with locked_output(output), closing(LocalDask()) as dask:
        found = begin_run(output, settings, plan, overwrite=arguments.overwrite)
        for sentence in found.notes:
            job.note(f"note: {sentence}")
        if found.finished:
            return _tell_finished(output)
        save_copy(tokenizer, arguments.tokenizer, join(output, TOKENIZER_FOLDER))
        steps = _Job(arguments, options, settings, plan, found, dask)
        kept = steps.shuffle() if settings.shuffle == "global" else steps.encode()
        manifest = write_manifest(
            output,
            settings,
            plan,
            code_version=job.code_version(),
            backend=get_backend().name,
            listing=inputs.counts,
        )
    metrics = read_metrics(steps.results)
    _print_summary(output, manifest, watch.seconds, resumed=kept > 0, metrics=metrics)
    return 0


def _tell_finished(output: str) -> int:
    job.note(f"{output} is finished, with equal settings and input: nothing to do")
    _print_summary(output, read_manifest(output), None)
    return 0


@dataclass(frozen=True)
class _Job:
    """The pipelines of one run, for what the output lacks."""

    arguments: Namespace
    options: PipelineOptions
    settings: EncodeSettings
    plan: Plan
    found: Found
    dask: LocalDask
    results: list[Any] = field(default_factory=list)

    def encode(self) -> int:
        """Encode the units that are missing; returns how many were kept."""
        output, settings = self.arguments.output, self.settings
        kept = find_finished_units(output, settings, self.plan) if self.found.resumed else set()
        removed = remove_stale_files(output, kept, settings.split_names)
        self._tell(f"kept {len(kept)} of {counted(len(self.plan.units), 'unit')}", removed)
        missing = [unit for unit in self.plan.units if unit.index not in kept]
        self._run_units(
            missing, lambda folder: EncodeDocuments(output, settings, progress_folder=folder)
        )
        return len(kept)

    def shuffle(self) -> int:
        """Spill the units and write the buckets that are missing; returns how many were kept."""
        output, settings, plan = self.arguments.output, self.settings, self.plan
        buckets = plan_buckets(plan, settings)
        written: set[int] = set()
        spilled: set[int] = set()
        if self.found.resumed:
            written = find_finished_buckets(output, settings, buckets)
            needed = len(written) < len(buckets)
            spilled = find_read_units(output, settings, plan, with_spills=needed)
        removed = remove_stale_files(output, written, settings.split_names, rejects=False)
        removed += remove_stale_units(output, spilled)
        self._tell(
            f"kept {len(spilled)} of {counted(len(plan.units), 'unit')} read, and {len(written)} "
            f"of {counted(len(buckets), 'bucket')} written",
            removed,
        )
        unread = [unit for unit in plan.units if unit.index not in spilled]
        self._run_units(
            unread,
            lambda folder: SpillDocuments(output, settings, len(buckets), progress_folder=folder),
        )
        self._run_buckets([bucket for bucket in buckets if bucket.index not in written])
        remove_spills(output)
        return len(spilled) + len(written)

    def _tell(self, kept: str, removed: int) -> None:
        if self.found.resumed:
            files = counted(removed, "file")
            left = f"; removed {files} of units that are to be done again" if removed else ""
            job.note(f"resuming: {kept}{left}")

    def _run_units(self, units: list[Unit], transform: Callable[[str], beam.PTransform]) -> None:
        if not units:
            return
        with show_progress("encoding", sum(unit.stored_bytes for unit in units)) as folder:
            self._run(lambda pipeline: pipeline | job.create_units(units) | transform(folder))

    def _run_buckets(self, buckets: list[Bucket]) -> None:
        if not buckets:
            return
        elements = [bucket.to_json() for bucket in buckets]
        transform = WriteBuckets(self.arguments.output, self.settings)
        self._run(lambda pipeline: pipeline | "Buckets" >> beam.Create(elements) | transform)

    def _run(self, build: Callable[[beam.Pipeline], Any]) -> None:
        hint = job.resume_hint(self.arguments)
        result = run_pipeline(
            self.options,
            build,
            lost_worker=lambda what: end_process(f"{what}; {hint}"),
            dask=self.dask,
        )
        self.results.append(result)


def _settings(arguments: Namespace, tokenizer: Tokenizer, read: ReadOptions) -> EncodeSettings:
    eos = _token_id(tokenizer, "--append-eos", arguments.append_eos)
    _refuse_without_pack(arguments)
    return EncodeSettings(
        tokenizer_digest=tokenizer.digest,
        read=read,
        bos=_token_id(tokenizer, "--prepend-bos", arguments.prepend_bos),
        eos=eos,
        special_text=arguments.special_text,
        shard_bytes=arguments.shard_bytes,
        max_row_tokens=arguments.max_row_tokens,
        compression=arguments.compression,
        splits=parse_splits(arguments.split) if arguments.split is not None else (),
        pack=arguments.pack,
        pack_mode=arguments.pack_mode or "concat",
        pack_tail=arguments.pack_tail or "pad",
        pad=_token_id(tokenizer, "--pad-id", arguments.pad_id) if arguments.pad_id else eos,
        shuffle=arguments.shuffle,
        seed=arguments.seed,
    )


def _refuse_without_pack(arguments: Namespace) -> None:
    """Options of packing without packing would be ignored in silence."""
    for name in ("pack_mode", "pack_tail", "pad_id"):
        if arguments.pack is None and getattr(arguments, name) is not None:
            raise SettingsError(f"--{name.replace('_', '-')} needs --pack N")


def _token_id(tokenizer: Tokenizer, option: str, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return tokenizer.token_id(value)
    except BpeError as error:
        raise SettingsError(f"{option} {value}: {error}") from error


def _check_row_length(settings: EncodeSettings, plan: Plan) -> None:
    """Rows of one document carry rising part numbers, of which a range of a file has one."""
    if settings.pack is not None:
        return
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


def _print_summary(
    output: str,
    manifest: Manifest,
    seconds: float | None,
    *,
    resumed: bool = False,
    metrics: JobMetrics | None = None,
) -> None:
    totals = manifest.totals
    tokens, size = totals.tokens, totals.bytes
    lines = [
        *job.limit_lines(manifest.settings.get("limit")),
        f"documents        {format_count(totals.documents)}",
        job.text_line(size),
        f"tokens           {format_count(tokens)}",
        f"bytes per token  {_ratio(totals)}" if tokens else "bytes per token  -",
        f"shards           {totals.shards} ({format_bytes(totals.file_bytes)})",
    ]
    lines += _layout_lines(manifest)
    if totals.rejects:
        reasons = ", ".join(f"{reason} {count}" for reason, count in totals.rejects.items())
        lines.append(f"rejected         {reasons} (see {join(output, REJECTS)})")
    lines += job.accepted_lines(totals.accepted, manifest.listing)
    is_text = manifest.settings["special_text"] == "text"
    meaning = "as ordinary text" if is_text else "as special tokens"
    lines += job.special_text_lines(totals.special_text, meaning)
    lines += _metric_lines(metrics, resumed=resumed)
    if seconds is not None:
        lines.append(job.seconds_line(seconds, None if resumed else size))
    lines.append(f"output           {output}")
    sys.stdout.write("\n".join(lines) + "\n")


def _layout_lines(manifest: Manifest) -> list[str]:
    """A summary's lines about packed rows and splits, if there are any."""
    totals, settings = manifest.totals, manifest.settings
    packing, lines = totals.packing, []
    if settings["pack"] is not None:
        filled = f", {counted(packing.padding, 'id')} of padding" if packing.padding else ""
        cut = (
            f", left out {counted(packing.dropped_tokens, 'id')} with the ends of "
            f"{counted(packing.dropped_documents, 'document')}"
            if packing.dropped_tokens
            else ""
        )
        lines.append(
            f"packed rows      {format_count(totals.rows)} of {settings['pack']}{filled}{cut}"
        )
    for name, share in settings["splits"]:
        split = totals.splits.get(name)
        documents, tokens = (split.documents, split.tokens) if split else (0, 0)
        lines.append(
            f"split            {name} {share}: {counted(documents, 'document')}, "
            f"{counted(tokens, 'token')}"
        )
    return lines


def _ratio(totals: OutputTotals) -> str:
    """Bytes per token of everything, and of the shards with the least and the most."""
    spread, mean = totals.bytes_per_token, f"{totals.bytes / totals.tokens:.3f}"
    if spread is None or totals.shards == 1:
        return mean
    return f"{mean} ({spread.least:.3f} to {spread.most:.3f} by shard)"


def _metric_lines(metrics: JobMetrics | None, *, resumed: bool) -> list[str]:
    """A summary's line about what the runner counted, if it tells."""
    if metrics is None or not metrics.counters:
        return []
    names = ("documents", "bytes", "tokens")
    shown = [f"{name} {format_count(metrics.counters.get(name, 0))}" for name in names]
    shown += [f"{reason} {format_count(n)}" for reason, n in metrics.rejects.items()]
    # Of one unit, the ratio is that of the whole.
    if metrics.least_ratio is not None and metrics.least_ratio != metrics.largest_ratio:
        ratios = f"{metrics.least_ratio:.3f} to {metrics.largest_ratio:.3f}"
        shown.append(f"bytes per token {ratios} by unit")
    whose = " (in this run alone)" if resumed else ""
    return [f"runner counted   {', '.join(shown)}{whose}"]
