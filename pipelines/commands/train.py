"""`beam-bpe train`: a corpus into a tokenizer.

Count on the workers (or take the counts that are there), train on the driver, write the model
directory. Each step leaves something that the same command, started again, goes on from.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from bpe.backend import get_backend
from bpe.errors import ModelFileError, OutputError, SettingsError
from bpe.formats.model_directory import CONFIG_NAME
from bpe.tokenizer import Tokenizer
from pipelines.commands import job
from pipelines.commands.given_counts import load_given_counts
from pipelines.commands.train_summary import print_summary
from pipelines.count_artifact import (
    CountArtifact,
    clear_counts,
    finish_counts,
    load_counts,
    read_count_manifest,
    refuse_other_counts,
)
from pipelines.count_words import CountWords, WriteCountTable
from pipelines.inputs import ReadOptions
from pipelines.manifest import file_sha256, input_record
from pipelines.output_files import exists, join, prepare_output, remove_temporary_files
from pipelines.output_folder import (
    REJECTS_FOLDER,
    delete_rejects,
    read_run,
    refuse_foreign_files,
    refuse_other_command,
    write_run,
)
from pipelines.output_lock import locked_output
from pipelines.plan import Plan, make_plan
from pipelines.progress import (
    Stopwatch,
    format_bytes,
    format_count,
    show_merges,
    show_progress,
)
from pipelines.raw_documents import train_raw_sizes
from pipelines.runner_setup import end_process, run_pipeline
from pipelines.settings import (
    describe_differences,
    digest_of,
    reading_settings,
    refused_rejects,
)
from pipelines.tokenizer_files import clear_model, find_models, load_copy
from pipelines.train_bpe import (
    TrainSettings,
    save_models,
    train_sizes,
    words_memory,
)
from schemas.count_manifest import CountManifest
from schemas.run_record import RunRecord

__all__ = ["run"]

_COMMAND = "train"
COUNTS_FOLDER = "counts"
_PRETOKENIZER = "gpt2"
# A bucket is added on one worker; so much input makes tables of a few dozen megabytes.
_INPUT_PER_BUCKET = 256 << 20
_FEWEST_BUCKETS, _MOST_BUCKETS = 8, 256


@dataclass(frozen=True)
class _Job:
    """What the steps of one command share."""

    arguments: Namespace
    options: PipelineOptions
    read: ReadOptions
    settings: TrainSettings
    plan: Plan | None
    listing: Mapping[str, int]

    @property
    def output(self) -> str:
        return str(self.arguments.output)

    @property
    def memory(self) -> int:
        """Bytes that training may take on this machine."""
        if self.arguments.driver_memory is not None:
            return int(self.arguments.driver_memory)
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.arguments` for the options."""
    watch = Stopwatch()
    this = _prepare(arguments)
    # Taken before work: a table that does not fit is refused at once.
    given = None
    if arguments.from_counts:
        counting = this.settings.counting
        given = load_given_counts(arguments.from_counts, counting, arguments.pretokenizer)
    record: dict[str, Any] = {
        "settings": this.settings.to_dict(),
        "inputs": _describe_inputs(this, given),
        "golden": _golden_digest(arguments.golden),
    }
    prepare_output(this.output)
    with locked_output(this.output):
        if _begin(this, record):
            job.note(f"{this.output} is finished, with equal settings and input: nothing to do")
            return 0
        text_read = _will_read_text(this)
        models, totals = _make_models(this, given, record)
        save_models(this.output, models, arguments.golden)
        remove_temporary_files(this.output)
    print_summary(
        *(this.output, this.settings, models, totals, this.listing, watch.seconds),
        text_read=text_read,
    )
    return 0


def _will_read_text(this: _Job) -> bool:
    if this.plan is None or this.settings.pretokenizer == "none":
        return this.plan is not None
    return read_count_manifest(join(this.output, COUNTS_FOLDER)) is None


def _begin(this: _Job, record: Mapping[str, Any]) -> bool:
    """Make the output folder this run's; returns whether all models are there already.

    Raises:
        OutputError: the folder is another command's, of other settings, or holds files of others.
    """
    if this.arguments.overwrite:
        refuse_other_command(this.output, _COMMAND)
        _clear_output(this)
    elif read_run(this.output, _COMMAND) is None:
        refuse_foreign_files(this.output, _folders(this))
    elif _is_finished(this, record):
        return True
    inputs = input_record(this.plan) if this.plan else []
    settings = this.settings.to_dict()
    write_run(this.output, RunRecord(command=_COMMAND, settings=settings, inputs=inputs))
    return False


def _folders(this: _Job) -> list[str]:
    """Sub-folders that a training writes into."""
    sizes = this.settings.vocab_sizes
    models = [str(size) for size in sizes] if len(sizes) > 1 else []
    return [REJECTS_FOLDER, COUNTS_FOLDER, f"{COUNTS_FOLDER}/{REJECTS_FOLDER}", *models]


def _make_models(
    this: _Job, given: CountArtifact | None, record: dict[str, Any]
) -> tuple[dict[int, Tokenizer], Mapping[str, Any]]:
    """Count and train; returns the tokenizers by size, and the totals of what was read."""
    if this.settings.pretokenizer == "none":
        return _train_raw(this, record)
    artifact = given or _count(this)
    totals = _without_other_tokens(artifact.totals, this.settings.special_tokens)
    record |= {"counts_digest": artifact.digest, "totals": totals}
    return _train(this, artifact, record), totals


def _without_other_tokens(
    totals: Mapping[str, Any], special_tokens: Sequence[str]
) -> dict[str, Any]:
    """Totals of a count table as this training tells them: the table may know other tokens."""
    hits = totals.get("special_text", {})
    known = {token: hits[token] for token in special_tokens if token in hits}
    return {**totals, "special_text": known} if totals else {}


def _prepare(arguments: Namespace) -> _Job:
    """Check everything that can be checked without reading the corpus."""
    options = job.beam_options(arguments)
    settings = TrainSettings(
        vocab_sizes=tuple(arguments.vocab_size),
        pretokenizer=arguments.pretokenizer or _PRETOKENIZER,
        tie_order=arguments.tie_order,
        min_frequency=arguments.min_frequency,
        max_token_bytes=arguments.max_token_bytes,
        special_tokens=tuple(arguments.special_token),
        special_text=arguments.special_text,
    )
    read = job.read_options(arguments)
    if bool(arguments.from_counts) == bool(arguments.input or arguments.input_list):
        raise SettingsError("give either --input or --from-counts")
    if arguments.from_counts:
        if settings.pretokenizer == "none":
            raise SettingsError(
                "--pretokenizer none trains on text, not on counts of words; give --input instead "
                "of --from-counts"
            )
        return _Job(arguments, options, read, settings, None, {})
    inputs = job.list_and_report(arguments, read)
    return _Job(arguments, options, read, settings, make_plan(inputs, read), inputs.counts)


def _describe_inputs(this: _Job, given: CountArtifact | None) -> dict[str, Any]:
    """The input as the training record tells it."""
    if given is not None or this.plan is None:
        return {"counts": given.digest if given else None}
    return {
        "files": len(this.plan.files),
        "bytes": this.plan.total_bytes,
        "first": this.plan.files[0].path,
        "digest": digest_of(input_record(this.plan)),
        "reading": _reading_settings(this.read),
    }


def _golden_digest(path: str | None) -> str | None:
    if path is None:
        return None
    if not exists(path):
        raise SettingsError(f"--golden {path}: there is no such file")
    return file_sha256(path)


def _reading_settings(read: ReadOptions) -> dict[str, Any]:
    """Reading options that can change the counts; where files are cut cannot."""
    settings = reading_settings(read)
    del settings["range_bytes"]
    return settings


def _clear_output(this: _Job) -> None:
    clear_counts(join(this.output, COUNTS_FOLDER))
    delete_rejects(this.output)
    for directory in find_models(this.output):
        clear_model(directory)


def _is_finished(this: _Job, record: Mapping[str, Any]) -> bool:
    """Whether all models are there already.

    Raises:
        OutputError: a model of other settings or other input is there; names what differs.
    """
    wanted = _flatten(record, this.output)
    present = find_models(this.output)
    for path in present:
        earlier = _load_earlier(path).training
        differences = describe_differences(_flatten(earlier, path), wanted)
        if differences:
            raise OutputError(
                f"--output {path}: holds a tokenizer trained with other settings "
                f"({'; '.join(differences)}); give the same settings, another folder, or "
                "--overwrite to train again"
            )
    return len(present) == len(this.settings.vocab_sizes)


def _load_earlier(path: str) -> Tokenizer:
    try:
        return load_copy(path)
    except ModelFileError as error:
        raise OutputError(f"{error}; or train again with --overwrite") from error


def _flatten(record: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Settings and input of a training record, one level deep, for comparison."""
    try:
        settings, inputs = dict(record.get("settings", {})), dict(record.get("inputs", {}))
        return {
            **settings,
            **dict(inputs.pop("reading", {})),
            "inputs": inputs,
            "golden": record.get("golden"),
        }
    except (TypeError, ValueError) as error:
        raise OutputError(
            f"{join(place, CONFIG_NAME)}: the training record is damaged ({error}); train again "
            "with --overwrite"
        ) from error


def _count(this: _Job) -> CountArtifact:
    """The count table: the one that is there, or made now."""
    if this.plan is None:
        raise SettingsError("give either --input or --from-counts")
    plan = this.plan
    folder = join(this.output, COUNTS_FOLDER)
    counting = this.settings.counting
    settings = {**counting.to_dict(), **_reading_settings(this.read)}
    manifest = read_count_manifest(folder)
    if manifest is not None:
        refuse_other_counts(folder, manifest, settings, input_record(plan))
        _refuse_rejects(this, manifest)
        job.note(f"kept the counts in {folder}")
        return load_counts(folder)
    clear_counts(folder)
    buckets = min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, plan.total_bytes // _INPUT_PER_BUCKET))
    with show_progress("counting", plan.total_bytes) as progress:
        run_pipeline(
            this.options,
            lambda pipeline: (
                pipeline
                | job.create_units(list(plan.units))
                | CountWords(
                    counting, this.read, buckets=buckets, output=folder, progress_folder=progress
                )
                | WriteCountTable(folder)
            ),
            lost_worker=lambda what: end_process(f"{what}; {job.resume_hint(this.arguments)}"),
        )
    finish_counts(
        folder,
        len(plan.units),
        settings,
        input_record(plan),
        this.listing,
        max_bad_records=this.read.max_bad_records,
    )
    return load_counts(folder)


def _refuse_rejects(this: _Job, manifest: CountManifest) -> None:
    rejects = manifest.totals.rejects
    if refused_rejects(rejects, this.read):
        raise OutputError(
            f"--output {this.output}: its counts left out bad rows or files ({rejects}); give "
            "--on-bad-record=skip or --on-bad-file=skip to accept that, or --overwrite"
        )


def _train(this: _Job, artifact: CountArtifact, record: Mapping[str, Any]) -> dict[int, Tokenizer]:
    needed = words_memory(artifact.table, get_backend().name)
    if needed > this.memory:
        raise SettingsError(
            f"training on {format_count(artifact.table.num_rows)} distinct words takes about "
            f"{format_bytes(needed)} of memory, and --driver-memory allows "
            f"{format_bytes(this.memory)}; allow more, or count a part of the corpus"
        )
    with show_merges(this.settings.vocab_sizes[-1]) as progress:
        return train_sizes(artifact.table, this.settings, record=record, progress=progress)


def _train_raw(
    this: _Job, record: dict[str, Any]
) -> tuple[dict[int, Tokenizer], Mapping[str, Any]]:
    if this.plan is None:
        raise SettingsError("--pretokenizer none needs --input")
    with show_merges(this.settings.vocab_sizes[-1]) as progress:
        return train_raw_sizes(
            this.plan,
            this.read,
            this.settings,
            record,
            output=this.output,
            memory=this.memory,
            progress=progress,
        )
