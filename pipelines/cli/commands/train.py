"""`beam-bpe train`: a corpus into a tokenizer.

Count on the workers (or take the counts that are there), train on the driver or in rounds, write
the model directory. Each step leaves something that the same command, started again, goes on from.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from bpe.errors import ModelFileError, OutputError, SettingsError
from bpe.formats.model_directory import CONFIG_NAME
from bpe.recipes.registry import RECIPES, Recipe, get_recipe
from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.cli.commands.load_counts import load_given_counts
from pipelines.cli.commands.train_extension import extension_settings, load_base
from pipelines.cli.commands.train_job import (
    COUNTS_FOLDER,
    FIRST_STAGE,
    SECOND_COUNTS,
    TrainJob,
    reading_settings_of,
)
from pipelines.cli.commands.train_merges import make_models, sample_of
from pipelines.cli.commands.train_preset import apply_preset
from pipelines.cli.commands.train_summary import print_summary
from pipelines.cli.commands.train_unigram import SEEDS_FOLDER
from pipelines.corpus.plan import make_plan
from pipelines.corpus.settings import digest_of
from pipelines.runners.progress import Stopwatch
from pipelines.runners.runner_setup import runner_name
from pipelines.shards.manifest import file_sha256, input_record
from pipelines.shards.tokenizer_files import clear_model, find_models, load_copy
from pipelines.storage.output_files import exists, join, remove_temporary_files
from pipelines.storage.output_folder import delete_rejects
from pipelines.storage.run_folder import Claim, Run, claimed, refuse_changes
from pipelines.storage.wording import describe_differences
from pipelines.training.count_artifact import (
    CountArtifact,
    clear_counts,
    read_count_manifest,
    remove_count_leftovers,
)
from pipelines.training.count_seeds import clear_seeds
from pipelines.training.presets import resolve
from pipelines.training.rounds.checkpoints import ROUNDS_FOLDER, clear_rounds
from pipelines.training.rounds.options import RoundOptions
from pipelines.training.train_bpe import TrainSettings, save_models
from schemas.run_record import RunRecord

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    watch = Stopwatch()
    this = _prepare(arguments)
    # Taken before work: a table that does not fit is refused at once.
    given = None
    if arguments.from_counts:
        counting = this.settings.counting
        given = load_given_counts(arguments.from_counts, counting, arguments.pretokenizer)
    record = {
        "settings": this.settings.to_dict(),
        "inputs": _describe_inputs(this, given),
        "golden": _golden_digest(arguments.golden),
    }
    folder = _TrainFolder(
        this.output,
        RunRecord(
            command="train",
            settings=this.settings.to_dict(),
            inputs=input_record(this.plan) if this.plan else [],
        ),
        overwrite=arguments.overwrite,
        record=record,
        models=len(this.settings.sizes),
    )
    with claimed(folder) as found, closing(this.dask):
        if found.finished:
            job.note(f"{this.output} is finished, with equal settings and input: nothing to do")
            return 0
        text_read = _will_read_text(this)
        models, totals = make_models(this, given, record)
        save_models(this.output, models, arguments.golden)
        folder.tidy()
    print_summary(this, models, totals, watch.seconds, text_read=text_read)
    return 0


def _will_read_text(this: TrainJob) -> bool:
    if this.plan is None or this.is_raw:
        return this.plan is not None
    return read_count_manifest(join(this.output, COUNTS_FOLDER)) is None


@dataclass(frozen=True, kw_only=True)
class _TrainFolder(Run[None]):
    """The output folder of a training, which is finished when it holds all models.

    Attributes:
        record: the beginning of each tokenizer's training record.
        models: how many there will be.
    """

    record: Mapping[str, Any]
    models: int

    def compare(self, earlier: RunRecord) -> Claim[None]:
        """The models that are there decide; steps compare the counts and rounds."""
        del earlier
        wanted = _flatten(self.record, self.output)
        present = find_models(self.output)
        for path in present:
            found = _flatten(_load_earlier(path).training, path)
            refuse_changes(
                f"--output {path}: holds a tokenizer trained with other settings",
                describe_differences(found, wanted),
                "give the same settings, another folder, or --overwrite to train again",
            )
        return Claim("finished" if len(present) == self.models else "resumed")

    def clear(self) -> None:
        """Remove all that the command makes."""
        for folder in (COUNTS_FOLDER, SECOND_COUNTS):
            clear_counts(join(self.output, folder))
        clear_model(join(self.output, FIRST_STAGE))
        clear_rounds(join(self.output, ROUNDS_FOLDER))
        clear_seeds(join(self.output, SEEDS_FOLDER))
        delete_rejects(self.output)
        for directory in find_models(self.output):
            clear_model(directory)

    def tidy(self) -> None:
        """Remove what served the work, also of a run that was killed when it had finished that."""
        clear_rounds(join(self.output, ROUNDS_FOLDER))
        clear_seeds(join(self.output, SEEDS_FOLDER))
        for folder in (COUNTS_FOLDER, SECOND_COUNTS):
            remove_count_leftovers(join(self.output, folder))
        for folder in (self.output, join(self.output, FIRST_STAGE), *find_models(self.output)):
            remove_temporary_files(folder)


def _prepare(arguments: Namespace) -> TrainJob:
    """Check everything that can be checked without reading the corpus."""
    options = job.beam_options(arguments)
    apply_preset(arguments)
    recipe = get_recipe(arguments.recipe)
    chosen = resolve(
        arguments.preset,
        arguments.pretokenizer,
        arguments.tie_order,
        arguments.min_frequency,
        arguments.superbpe_from,
        recipe,
    )
    base = load_base(arguments)
    decides = {
        **_sizes(arguments),
        "pretokenizer": _with_digits(chosen.pretokenizer, arguments),
        "tie_order": chosen.tie_order,
        "min_frequency": chosen.min_frequency,
        "special_tokens": tuple(arguments.special_token),
    }
    settings = TrainSettings(
        **(decides if base is None else extension_settings(arguments, base)),
        max_token_bytes=arguments.max_token_bytes,
        special_text=arguments.special_text,
        superbpe_from=arguments.superbpe_from,
        preset=arguments.preset,
        recipe=recipe.name,
        recipe_options=_recipe_options(arguments, recipe),
    )
    read = job.read_options(arguments)
    rounds = _round_options(arguments, settings, options)
    if bool(arguments.from_counts) == bool(arguments.input or arguments.input_list):
        raise SettingsError("give either --input (or --input-list) or --from-counts")
    if arguments.from_counts:
        if read.limit is not None:
            raise SettingsError(
                "--limit counts documents of --input; leave it out, or count again without "
                "--from-counts"
            )
        if settings.superbpe_from is not None:
            raise SettingsError(
                "--superbpe-from counts words of two kinds; give --input instead of --from-counts"
            )
        if settings.pretokenizer == "none":
            raise SettingsError(
                "--pretokenizer none trains on text, not on counts of words; give --input instead "
                "of --from-counts"
            )
        return TrainJob(arguments, read, settings, rounds, None, {}, base)
    inputs = job.list_and_report(arguments, read)
    plan = make_plan(inputs, read)
    return TrainJob(arguments, read, settings, rounds, plan, inputs.counts, base)


def _sizes(arguments: Namespace) -> dict[str, tuple[int, ...]]:
    """Sizes of vocabularies, or numbers of merges where the alphabet is not known before."""
    if arguments.vocab_size is not None:
        return {"vocab_sizes": tuple(arguments.vocab_size)}
    if arguments.recipe != "bpe":
        return {"vocab_sizes": (), "merges": tuple(arguments.merges)}
    others = 256 + len(arguments.special_token)
    return {"vocab_sizes": tuple(others + each for each in arguments.merges)}


def _recipe_options(arguments: Namespace, recipe: Recipe) -> dict[str, Any]:
    """What was given of the recipe's own options; refuses those of other recipes."""
    known = {name for each in RECIPES.values() for name in each.options}
    given = {name: getattr(arguments, name, None) for name in sorted(known)}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in recipe.options:
            homes = " or ".join(each.name for each in RECIPES.values() if name in each.options)
            raise SettingsError(
                f"--{name.replace('_', '-')}: belongs to --recipe {homes}, not {recipe.name}"
            )
    return given


def _with_digits(pretokenizer: str, arguments: Namespace) -> str:
    """The pre-tokenizer with the step of `--digits` before it, if that is given."""
    if arguments.digits is None:
        return pretokenizer
    if arguments.recipe != "bpe":
        raise SettingsError(f"--digits: does not go with --recipe {arguments.recipe}")
    if pretokenizer == "none" or arguments.superbpe_from is not None:
        other = "--pretokenizer none" if pretokenizer == "none" else "--superbpe-from"
        raise SettingsError(
            f"--digits {arguments.digits}: does not go with {other}, where merges cross words; "
            "leave one of them out"
        )
    return f"digits:{arguments.digits}:{pretokenizer}"


def _round_options(
    arguments: Namespace, settings: TrainSettings, beam_options: PipelineOptions
) -> RoundOptions:
    """Options of rounds and sample, as far as they go with the rest."""
    rounds = RoundOptions(
        engine=arguments.engine,
        state_shards=arguments.state_shards,
        budget=arguments.segment_budget,
        shard_cap=arguments.shard_segment_cap,
        rounds_per_job=arguments.rounds_per_job,
        sample_bytes=arguments.sample_bytes,
        sample_seed=arguments.sample_seed,
    )
    if rounds.sample_bytes not in (None, "all") and settings.pretokenizer != "none":
        raise SettingsError(
            f"--sample-bytes {rounds.sample_bytes}: belongs to --pretokenizer none; words are "
            "counted in all of the text"
        )
    if rounds.engine == "rounds" and settings.recipe != "bpe":
        raise SettingsError(
            f"--engine rounds: --recipe {settings.recipe} cannot be trained in rounds; leave "
            "--engine out"
        )
    if rounds.engine == "rounds" and settings.tie_order == "first":
        raise SettingsError(
            "--engine rounds: --tie-order first cannot be had in rounds, where nobody sees the "
            "whole text; choose hf, id or bytes, or leave --engine out"
        )
    if rounds.rounds_per_job > 1 and runner_name(beam_options) == "DaskRunner":
        raise SettingsError(
            f"--rounds-per-job {rounds.rounds_per_job}: on Dask a job starts within "
            "seconds, and its runner may do a step again whose input a later one has removed; "
            "leave --rounds-per-job out"
        )
    return rounds


def _describe_inputs(this: TrainJob, given: CountArtifact | None) -> dict[str, Any]:
    """The input as the training record tells it."""
    if given is not None or this.plan is None:
        return {"counts": given.digest if given else None}
    sample = {"sample": sample_of(this).to_dict()} if this.is_raw else {}
    return {
        **sample,
        "files": len(this.plan.files),
        "bytes": this.plan.total_bytes,
        "first": this.plan.files[0].path,
        "digest": digest_of(input_record(this.plan)),
        "reading": reading_settings_of(this.read),
    }


def _golden_digest(path: str | None) -> str | None:
    if path is None:
        return None
    if not exists(path):
        raise SettingsError(f"--golden {path}: there is no such file")
    return file_sha256(path)


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
