"""Unigram from a count table: seeds counted on the workers, then trained on the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from bpe.pretokenizing.schemes import get_scheme
from bpe.recipes.unigram import most_seeds, select_words, train_with_seeds
from bpe.recipes.unigram_seeds import TrainingWords
from bpe.tokenizer import Tokenizer
from bpe.training import read_counts
from pipelines.cli.commands import job
from pipelines.cli.commands.train_job import TrainJob
from pipelines.storage.output_files import join
from pipelines.storage.wording import counted
from pipelines.training.count_seeds import CountSeeds, SeedRules, clear_seeds, read_seeds

__all__ = ["SEEDS_FOLDER", "train_unigram"]

SEEDS_FOLDER = "seeds"
"""Sub-folder of the output for seeds, while it works."""

_WORDS_PER_BUCKET = 50_000
_FEWEST_BUCKETS, _MOST_BUCKETS = 8, 256


def train_unigram(
    this: TrainJob,
    files: Sequence[tuple[str, str, str]],
    table: pa.Table,
    record: Mapping[str, Any],
) -> dict[int, Tokenizer]:
    """Count seeds and train each size.

    Args:
        this: the command.
        files: of the count table: folder, name and sha256.
        table: all of it.
        record: the beginning of each tokenizer's training record.

    Raises:
        SettingsError: sentencepiece does not train by these settings.
        CountTableError: no word is left to train on.
    """
    settings = this.settings.of_recipe
    words, counts, _ = read_counts(table, get_scheme(settings.pretokenizer))
    chosen = select_words(words, counts, settings)
    if chosen.left_out_words:
        job.note(
            f"note: {counted(chosen.left_out_words, 'word')} with "
            f"{counted(chosen.left_out_uses, 'use')} left out of training"
        )
    rules = SeedRules(
        longest=settings.options["max_sentencepiece_length"],
        lowest=_lowest(chosen),
        most=most_seeds(chosen, settings),
    )
    folder = join(this.output, SEEDS_FOLDER)
    clear_seeds(folder)
    wanted = len(chosen.words) // _WORDS_PER_BUCKET
    buckets = min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, wanted))
    this.run_job(
        "seeds",
        lambda pipeline: (
            pipeline
            | beam.Create([json.dumps(file) for file in files])
            | CountSeeds(folder, rules, buckets)
        ),
    )
    seeds = read_seeds(folder, rules.most)
    return train_with_seeds(
        chosen, seeds, settings, training_record={"recipe": settings.recipe, **record}
    )


def _lowest(chosen: TrainingWords) -> tuple[int, bytes]:
    """Count of the rarest words, and the last of these by bytes."""
    least = pc.min(chosen.counts).as_py()
    rarest = chosen.words.filter(pc.equal(chosen.counts, least))
    # Words are ascending by bytes.
    return least, rarest[-1].as_py().encode()
