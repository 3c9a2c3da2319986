"""From input to tokenizers: count or read, then train on the driver or in rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpe.backends.choice import get_backend
from bpe.backends.process_memory import give_back_memory
from bpe.errors import SettingsError
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.cli.commands.train_job import (
    COUNTS_FOLDER,
    FIRST_STAGE,
    SECOND_COUNTS,
    TrainJob,
    reading_settings_of,
)
from pipelines.cli.commands.train_unigram import train_unigram
from pipelines.corpus.plan import Plan, create_units
from pipelines.corpus.settings import refuse_rejects
from pipelines.runners.progress import format_bytes, format_count, show_merges, show_progress
from pipelines.shards.manifest import input_record
from pipelines.shards.tokenizer_files import is_finished_model, load_copy
from pipelines.storage.output_files import join, list_files
from pipelines.storage.run_folder import Step, claim
from pipelines.storage.wording import counted
from pipelines.training.count_artifact import (
    CountArtifact,
    clear_counts,
    finish_counts,
    load_counts,
    open_counts,
    read_count_manifest,
)
from pipelines.training.count_words import CountWords, WriteCountTable
from pipelines.training.raw_documents import text_bytes, train_raw_sizes
from pipelines.training.rounds.checkpoints import ROUNDS_FOLDER, clear_rounds
from pipelines.training.rounds.options import Sample
from pipelines.training.rounds.state_source import RawText, StateSource, WordTable
from pipelines.training.rounds.train_rounds import RoundsJob, driver_memory, train_in_rounds
from pipelines.training.train_bpe import (
    raw_memory,
    save_models,
    train_second_sizes,
    train_sizes,
    words_memory,
)
from schemas import RoundSummary

__all__ = ["choose_engine", "make_models", "sample_of"]

Models = tuple[dict[int, Tokenizer], Mapping[str, Any]]

# A bucket is added on one worker; so much input makes tables of a few dozen megabytes.
_INPUT_PER_BUCKET = 256 << 20
_FEWEST_BUCKETS, _MOST_BUCKETS = 8, 256
# Bytes of a word in a count table besides its text: an offset and a count.
_PER_WORD = 16


def make_models(this: TrainJob, given: CountArtifact | None, record: Mapping[str, Any]) -> Models:
    """Count or read, and train; returns the tokenizers by size, and the totals of what was read.

    Args:
        this: the command.
        given: the table of --from-counts, whose words need not be loaded; None without one.
        record: the beginning of each tokenizer's training record.

    Raises:
        BpeError: of any kind.
    """
    if this.is_raw:
        return _train_raw(this, record)
    if this.settings.superbpe_from is not None:
        return _train_stages(this, record)
    folder = join(this.output, COUNTS_FOLDER)
    if given is None:
        _count(this, folder)
        given = open_counts(folder)
    else:
        folder = str(this.arguments.from_counts)
    totals = _without_other_tokens(given.totals, this.settings.special_tokens)
    record = {**record, "counts_digest": given.digest, "totals": totals}
    return _train_words(this, given, folder, record), totals


def _train_stages(this: TrainJob, record: Mapping[str, Any]) -> Models:
    """Train inside words, then go on across them."""
    first = replace(this, settings=this.settings.first_stage)
    second = replace(this, settings=this.settings.second_stage)
    folder = join(this.output, FIRST_STAGE)
    if is_finished_model(folder):
        job.note(f"kept the first stage in {folder}")
    else:
        models, _ = make_models(first, None, {**record, "settings": first.settings.to_dict()})
        save_models(folder, models)
        clear_rounds(join(this.output, ROUNDS_FOLDER))
    stage = load_copy(folder)
    counts = join(this.output, SECOND_COUNTS)
    _count(second, counts)
    artifact = open_counts(counts)
    totals = _without_other_tokens(artifact.totals, this.settings.special_tokens)
    record = {
        **record,
        "counts_digest": artifact.digest,
        "totals": totals,
        "inherited_merges": len(stage.merges),
    }
    return _train_words(second, artifact, counts, record, (folder, stage)), totals


def _without_other_tokens(
    totals: Mapping[str, Any], special_tokens: Sequence[str]
) -> dict[str, Any]:
    """Totals of a count table as this training tells them: the table may know other tokens."""
    hits = totals.get("special_text", {})
    known = {token: hits[token] for token in special_tokens if token in hits}
    return {**totals, "special_text": known} if totals else {}


def choose_engine(this: TrainJob, what: str, needed: int) -> str:
    """Where to train, `driver` or `rounds`.

    Args:
        this: the command.
        what: what is trained on, for messages.
        needed: bytes of memory that training on the driver takes.

    Raises:
        SettingsError: the engine that was asked for, or the only one left, cannot do it.
    """
    fits = needed <= this.memory
    too_much = (
        f"training on {what} takes about {format_bytes(needed)} of memory, and --driver-memory "
        f"allows {format_bytes(this.memory)}"
    )
    if this.rounds.engine == "driver":
        if not fits:
            rest = "" if this.base else ", or train with --engine rounds"
            raise SettingsError(f"{too_much}; allow more{rest}")
        return "driver"
    if this.rounds.engine == "auto" and fits:
        return "driver"
    if this.settings.recipe != "bpe":
        raise SettingsError(
            f"{too_much}; --recipe {this.settings.recipe} cannot be trained in rounds: allow more"
            + (", or give --max-words" if this.settings.recipe == "unigram" else "")
        )
    if this.base is not None:
        raise SettingsError(f"{too_much}; --extend cannot be trained in rounds: allow more")
    if this.settings.tie_order == "first":
        why = "" if fits else f"{too_much}, and "
        raise SettingsError(
            f"{why}--tie-order first cannot be had in rounds: choose hf, id or bytes, or train on "
            "the driver (--engine driver) with enough memory"
        )
    return "rounds"


def sample_of(this: TrainJob) -> Sample:
    """The part of the corpus that raw training takes."""
    return this.rounds.sample_of(text_bytes(_plan_of(this)))


def _plan_of(this: TrainJob) -> Plan:
    if this.plan is None:
        raise SettingsError("give either --input or --from-counts")
    return this.plan


def _train_raw(this: TrainJob, record: Mapping[str, Any]) -> Models:
    plan, sample = _plan_of(this), sample_of(this)
    text = text_bytes(plan)
    kept = min(int(text * sample.share), sample.first_bytes or text)
    _tell_sample(sample, kept, text)
    what = f"{format_bytes(kept)} of text without a pre-tokenizer"
    if choose_engine(this, what, raw_memory(kept, get_backend().name)) == "rounds":
        if sample.first_bytes is not None:
            raise SettingsError(
                f"--sample-bytes {this.rounds.sample_bytes}: so little text is trained on the "
                "driver; leave --engine out"
            )
        shards = this.rounds.shards_of(text, sample)
        source = RawText(
            plan, this.read, this.settings, sample=sample, shards=shards, output=this.output
        )
        return _train_in_rounds(this, source, record)
    with show_merges(this.settings.sizes[-1]) as progress:
        return train_raw_sizes(
            plan,
            this.read,
            this.settings,
            record=record,
            output=this.output,
            sample=sample,
            progress=progress,
        )


def _tell_sample(sample: Sample, kept: int, text: int) -> None:
    if not sample.is_whole:
        how = "from the start" if sample.first_bytes is not None else "drawn evenly"
        job.note(
            f"training on a sample: about {format_bytes(kept)} of {format_bytes(text)} "
            f"({100 * kept / max(1, text):.3g} %), {how}; --sample-bytes=all takes all of it"
        )


def _train_in_rounds(this: TrainJob, source: StateSource, record: Mapping[str, Any]) -> Models:
    needed = driver_memory(this.rounds.budget.of(source.expected.tokens))
    if needed > this.memory:
        job.note(
            f"warning: also in rounds the driver takes about {format_bytes(needed)} of memory, "
            f"more than --driver-memory {format_bytes(this.memory)}; a smaller --segment-budget "
            "takes less, down to "
            f"{format_bytes(driver_memory(1))}"
        )
    rounds = RoundsJob(
        output=this.output,
        options=this.rounds,
        settings=this.settings,
        run_job=this.run_job,
        note=job.note,
        report=_report_round,
    )
    return train_in_rounds(rounds, source, record)


def _report_round(summary: RoundSummary) -> None:
    last = "-" if summary.last_count is None else format_count(summary.last_count)
    job.note(
        f"round {summary.round:>3}: {format_count(summary.merges):>7} merges, vocabulary "
        f"{format_count(summary.vocabulary):>7}, last count {last:>11}, sent "
        f"{format_bytes(summary.bytes_sent):>8}, {summary.seconds:.1f} s"
    )


def _train_words(
    this: TrainJob,
    artifact: CountArtifact,
    folder: str,
    record: Mapping[str, Any],
    first_stage: tuple[str, Tokenizer] | None = None,
) -> dict[int, Tokenizer]:
    """Train on a count table; with a first stage (its folder, and it), go on from that."""
    text = _text_of_words(artifact, folder)
    words = artifact.words
    most = this.settings.recipe_options.get("max_words")
    if most is not None and most < words:
        words, text = most, text * most // words
    what = counted(words, "distinct word")
    needed = words_memory(words, text, get_backend().name)
    if choose_engine(this, what, needed) == "rounds":
        shards = this.rounds.shards_of(text, Sample())
        source = WordTable(
            artifact,
            folder,
            this.settings,
            text_bytes=text,
            shards=shards,
            first_stage=first_stage,
        )
        return _train_in_rounds(this, source, record)[0]
    table = artifact.table if artifact.is_loaded else load_counts(folder).table
    if this.settings.recipe == "unigram":
        return train_unigram(this, artifact.bucket_files(folder), table, record)
    # What counting left in this process is of no more use, and training takes much.
    give_back_memory()
    if first_stage is not None:
        return train_second_sizes(table, first_stage[1], this.settings, record=record)
    with show_merges(this.settings.sizes[-1]) as progress:
        return train_sizes(table, this.settings, record=record, progress=progress, base=this.base)


def _text_of_words(artifact: CountArtifact, folder: str) -> int:
    """Bytes of all distinct words together, from the sizes of files if they are not loaded."""
    if artifact.manifest is None:
        return max(1, int(artifact.table.nbytes) - artifact.words * _PER_WORD)
    sizes = list_files(folder)
    whole = sum(sizes.get(each.name, 0) for each in artifact.manifest.files)
    return max(artifact.words, whole - artifact.words * _PER_WORD)


def _count(this: TrainJob, folder: str) -> None:
    """Have a complete count table: the one that is there, or made now."""
    plan = _plan_of(this)
    counting = this.settings.counting
    settings = {**counting.to_dict(), **reading_settings_of(this.read)}
    found = claim(
        Step(
            folder=folder,
            read=read_count_manifest,
            remove=clear_counts,
            settings=settings,
            inputs=input_record(plan),
            holds=f"{folder}: holds counts made with other settings",
            remedy="give the same settings, another --output, or --overwrite to count again",
        )
    )
    if found.record is not None:
        rejects = found.record.totals.rejects
        refuse_rejects(f"--output {this.output}: its counts", rejects, this.read)
        job.note(f"kept the counts in {folder}")
        return
    buckets = min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, plan.total_bytes // _INPUT_PER_BUCKET))
    with show_progress("counting", plan.total_bytes) as progress:
        this.run_job(
            "count",
            lambda pipeline: (
                pipeline
                | create_units(list(plan.units))
                | CountWords(
                    counting, this.read, buckets=buckets, output=folder, progress_folder=progress
                )
                | WriteCountTable(folder)
            ),
        )
    finish_counts(
        folder,
        len(plan.units),
        settings,
        input_record(plan),
        this.listing,
        read=this.read,
    )
