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

from bpe.backends.process_memory import bound_free_memory
from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.errors import BpeError, SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.cli.commands.load_tokenizer import NO_MARK, load_given_tokenizer
from pipelines.cli.commands.tokenizer_notes import tell_engine, tell_framing, tell_lossy
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Plan, make_plan
from pipelines.encoding.encode_documents import EncodeDocuments
from pipelines.encoding.encode_run import EncodeRun
from pipelines.encoding.shuffle_buckets import SpillDocuments, WriteBuckets
from pipelines.runners.dask_cluster import LocalDask
from pipelines.runners.job_metrics import JobMetrics, read_metrics
from pipelines.runners.progress import Stopwatch, format_bytes, format_count, show_progress
from pipelines.runners.runner_setup import end_process, run_pipeline
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import read_manifest
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import REJECTS
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
    tell_engine(tokenizer)
    tell_lossy(tokenizer, arguments.special_text)
    settings = _settings(arguments, tokenizer, read)
    tell_framing(tokenizer, settings.bos, settings.eos)
    inputs = job.list_and_report(arguments, read)
    plan = make_plan(inputs, read)
    _check_row_length(settings, plan)
    with (
        EncodeRun(
            arguments.output,
            settings,
            plan,
            tokenizer,
            overwrite=arguments.overwrite,
            listing=inputs.counts,
        ) as encoding,
        closing(LocalDask()) as dask,
    ):
        for sentence in encoding.found.notes:
            job.note(f"note: {sentence}")
        steps = _Job(arguments, options, encoding, dask)
        if not encoding.found.finished:
            steps.run()
    _tell_end(encoding, watch, steps)
    return 0


def _tell_end(encoding: EncodeRun, watch: Stopwatch, steps: _Job) -> None:
    output = encoding.output
    manifest = encoding.manifest or read_manifest(output)
    if encoding.found.finished:
        job.note(f"{output} is finished, with equal settings and input: nothing to do")
        _print_summary(output, manifest, None)
        return
    metrics = read_metrics(steps.results)
    resumed = encoding.kept > 0
    _print_summary(output, manifest, watch.seconds, resumed=resumed, metrics=metrics)


@dataclass(frozen=True)
class _Job:
    """The pipelines of one run, for what the output lacks."""

    arguments: Namespace
    options: PipelineOptions
    encoding: EncodeRun
    dask: LocalDask
    results: list[Any] = field(default_factory=list)

    def run(self) -> None:
        """Encode the units that are missing, in two jobs for a global shuffle."""
        encoding = self.encoding
        if encoding.found.resumed:
            self._tell_kept()
        transform = SpillDocuments if encoding.settings.shuffle == "global" else EncodeDocuments
        if encoding.missing_units:
            size = sum(unit.stored_bytes for unit in encoding.missing_units)
            with show_progress("encoding", size) as folder:
                encode = transform(encoding, progress_folder=folder)
                self._run(lambda pipeline: pipeline | encoding.units() | encode)
        if encoding.missing_buckets:
            write = WriteBuckets(encoding)
            self._run(lambda pipeline: pipeline | encoding.buckets() | write)

    def _tell_kept(self) -> None:
        encoding = self.encoding
        units = len(encoding.plan.units)
        read = units - len(encoding.missing_units)
        kept = f"kept {read} of {counted(units, 'unit')}"
        if encoding.settings.shuffle == "global":
            buckets = encoding.bucket_count
            written = buckets - len(encoding.missing_buckets)
            kept += f" read, and {written} of {counted(buckets, 'bucket')} written"
        files = counted(encoding.removed, "file")
        left = f"; removed {files} of units that are to be done again" if encoding.removed else ""
        job.note(f"resuming: {kept}{left}")

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
    bos, eos = _marks(arguments, tokenizer)
    _refuse_without_pack(arguments)
    return EncodeSettings(
        tokenizer_digest=tokenizer.digest,
        read=read,
        bos=bos,
        eos=eos,
        special_text=arguments.special_text,
        shard_bytes=arguments.shard_bytes,
        max_row_tokens=arguments.max_row_tokens,
        compression=arguments.compression,
        splits=arguments.split,
        pack=arguments.pack,
        pack_mode=arguments.pack_mode or "concat",
        pack_tail=arguments.pack_tail or "pad",
        pad=_token_id(tokenizer, "--pad-id", arguments.pad_id) if arguments.pad_id else eos,
        shuffle=arguments.shuffle,
        seed=arguments.seed,
    )


def _marks(arguments: Namespace, tokenizer: Tokenizer) -> tuple[int | None, int | None]:
    """Ids around each document: as given; those of a preset of bytes stand unless others are."""
    name = tokenizer.model.byte_preset
    if name is None:
        return (
            _token_id(tokenizer, "--prepend-bos", arguments.prepend_bos),
            _token_id(tokenizer, "--append-eos", arguments.append_eos),
        )
    preset = BYTE_PRESETS[name]
    found = [
        (None if given == NO_MARK else _token_id(tokenizer, option, given)) if given else usual
        for option, given, usual in (
            ("--prepend-bos", arguments.prepend_bos, preset.bos),
            ("--append-eos", arguments.append_eos, preset.eos),
        )
    ]
    shown = ["none" if mark is None else str(mark) for mark in found]
    job.note(f"note: {name}: bos {shown[0]}, eos {shown[1]} around each document")
    return found[0], found[1]


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
