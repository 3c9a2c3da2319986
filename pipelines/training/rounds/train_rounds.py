"""Training in merge rounds from beginning to end: state, rounds, tokenizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from bpe.backends.values import MergeList, MergeRules
from bpe.tokenizer import Tokenizer
from bpe.training import make_rules, make_tokenizer
from pipelines.corpus.settings import digest_of
from pipelines.runners.progress import format_bytes
from pipelines.storage.output_files import join
from pipelines.storage.wording import counted
from pipelines.training.rounds.checkpoints import ROUNDS_FOLDER
from pipelines.training.rounds.options import RoundOptions, estimate_rounds
from pipelines.training.rounds.round_loop import Rounds, run_rounds
from pipelines.training.rounds.round_results import tokens_after
from pipelines.training.rounds.setup import RoundSetup, ShardTask
from pipelines.training.rounds.state_source import (
    RunJob,
    StateSize,
    StateSource,
    ensure_files,
    make_state,
)
from pipelines.training.train_bpe import TrainSettings, truncate_to_sizes
from schemas import RoundSummary

__all__ = ["RoundsJob", "driver_memory", "train_in_rounds"]

_FEWEST_BUCKETS, _MOST_BUCKETS = 4, 32
# Pairs that reach the driver in a round: several times what any budget makes heavy.
_PAIRS_ON_DRIVER = 1 << 19
# Bytes of memory that the driver's simulation takes per byte of segments, and its least.
_SIMULATION_BYTES, _DRIVER_LEAST = 64, 200 << 20
# A state that is so many times larger than expected: what it will take is said again.
_FAR_OFF = 1.5


@dataclass(frozen=True)
class RoundsJob:
    """How a command trains in rounds.

    Attributes:
        output: folder of the command.
        options: of the rounds.
        settings: what decides the merges.
        run_job: runs a pipeline.
        note: tells the user a sentence.
        report: tells the user of a round that is done.
    """

    output: str
    options: RoundOptions
    settings: TrainSettings
    run_job: RunJob
    note: Callable[[str], None]
    report: Callable[[RoundSummary], None]


def train_in_rounds(
    job: RoundsJob, source: StateSource, record: Mapping[str, Any]
) -> tuple[dict[int, Tokenizer], dict[str, Any]]:
    """Train on sharded state; goes on where an earlier run of the same command stopped.

    Args:
        job: how.
        source: what the state is made of.
        record: stored as each tokenizer's training record, with the table of rounds added.

    Returns:
        The tokenizer of each size that was asked for, and totals of what was read.

    Raises:
        BpeError: of any kind; what is done is kept, and the same command goes on from it.
    """
    folder, settings = join(job.output, ROUNDS_FOLDER), job.settings
    rules = _make_rules(settings)
    initial, was_there = make_state(
        source,
        folder=folder,
        output=job.output,
        settings=settings.to_dict(),
        run_job=job.run_job,
        begin=lambda: job.note(_describe(job, source.expected, rules)),
    )
    size = StateSize.of(initial.state_files)
    setup = _make_setup(job, folder, rules, size, digest_of(initial.settings))
    if was_there:
        job.note(f"resuming: kept the state in {folder}, and the rounds that are done")
    if was_there or _outgrew(source.expected, size):
        job.note(_describe(job, size, rules))
    result = run_rounds(
        Rounds(
            setup=setup,
            tasks=[ShardTask(i, each.file) for i, each in enumerate(initial.state_files)],
            run_job=job.run_job,
            ensure_initial_state=lambda: ensure_files(
                source, initial, folder, job.run_job, job.note
            ),
            report=job.report,
            rounds_per_job=job.options.rounds_per_job,
        )
    )
    largest = make_tokenizer(
        _merge_list(result.merges, result.stop_reason, settings.tie_order),
        vocab_size=settings.vocab_sizes[-1],
        rules=rules,
        pretokenizer=settings.pretokenizer,
        special_tokens=settings.special_tokens,
        training_record={
            **record,
            "totals": initial.totals,
            "rounds": [asdict(each) for each in result.rounds],
        },
    )
    return truncate_to_sizes(largest, settings.vocab_sizes), initial.totals


def _make_rules(settings: TrainSettings) -> MergeRules:
    return make_rules(
        settings.vocab_sizes[-1],
        settings.tie_order,
        settings.min_frequency,
        settings.special_tokens,
        settings.max_token_bytes,
        **settings.limits,
    )


def _make_setup(
    job: RoundsJob, folder: str, rules: MergeRules, size: StateSize, settings_digest: str
) -> RoundSetup:
    buckets = max(_FEWEST_BUCKETS, min(_MOST_BUCKETS, size.shards))
    budget = job.options.budget.of(size.tokens)
    return RoundSetup(
        folder=folder,
        rules=rules,
        shards=size.shards,
        buckets=buckets,
        kept_pairs=_PAIRS_ON_DRIVER // buckets,
        budget=budget,
        shard_cap=job.options.cap_of(budget),
        settings_digest=settings_digest,
    )


def _outgrew(expected: StateSize, size: StateSize) -> bool:
    """Whether the state is larger than was said before it was made, as packed files may be."""
    return size.tokens > _FAR_OFF * expected.tokens


def driver_memory(budget: int) -> int:
    """About how many bytes the driver of rounds takes, with a budget of so many of segments."""
    return _DRIVER_LEAST + budget * _SIMULATION_BYTES


def _describe(job: RoundsJob, size: StateSize, rules: MergeRules) -> str:
    """What is to be expected, in a sentence."""
    budget = job.options.budget.of(size.tokens)
    rounds = estimate_rounds(budget, size.tokens, rules.max_merges)
    memory = driver_memory(budget)
    wide = 2 if job.settings.vocab_sizes[-1] > 1 << 16 else 1
    return (
        f"training in rounds: about {counted(rounds, 'round')} over "
        f"{counted(size.shards, 'shard')}, with "
        f"{format_bytes(budget)} of segments each; files in {join(job.output, ROUNDS_FOLDER)} take "
        f"up to {format_bytes(2 * wide * size.bytes)}, the driver about {format_bytes(memory)} of "
        "memory"
    )


def _merge_list(merges: pa.Table, stop_reason: str, tie_order: str) -> MergeList:
    tokens = tokens_after(merges, tie_order)
    lefts, rights = merges["left"].to_pylist(), merges["right"].to_pylist()
    pairs = [(tokens[left], tokens[right]) for left, right in zip(lefts, rights, strict=True)]
    return MergeList(pairs, merges["count"].to_pylist(), stop_reason)
