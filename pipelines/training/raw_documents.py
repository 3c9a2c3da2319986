"""Train without a pre-tokenizer on the driver: merges may cross anything but document ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from bpe.backends.process_memory import give_back_memory
from bpe.tokenizer import Tokenizer
from bpe.training import train_raw
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Plan, unpacked_guess
from pipelines.corpus.rejects import Rejects, check_rejects
from pipelines.corpus.unit_reports import UnitReport
from pipelines.storage.output_folder import delete_rejects
from pipelines.training.rounds.options import Sample
from pipelines.training.rounds.raw_sequences import RawReading, read_sequences
from pipelines.training.rounds.sequence_builder import SequenceBuilder, divide
from pipelines.training.train_bpe import TrainSettings, truncate_to_sizes

__all__ = ["read_raw_documents", "text_bytes", "train_raw_sizes"]


def text_bytes(plan: Plan) -> int:
    """How much text a plan holds; an estimate where it is compressed, or in JSON."""
    return sum(map(unpacked_guess, plan.files))


def read_raw_documents(
    plan: Plan, read: ReadOptions, settings: TrainSettings, output: str, sample: Sample
) -> tuple[pa.LargeBinaryArray, dict[str, Any]]:
    """The documents of a plan, whole and in order; with `allow` cut at special tokens.

    Args:
        plan: what to read.
        read: how.
        settings: the special tokens, and what their text means.
        output: folder for the lists of rejected rows; those of an earlier attempt are removed.
        sample: which part to take.

    Returns:
        The documents that hold any text, and totals: documents and bytes read, bytes sampled,
        rejects and accepted anomalies by name, and special_text: how often each special token is
        spelled out.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop.
        InputError: a special token in a document where the policy is to reject.
    """
    how = RawReading(read, settings.special_tokens, settings.special_text, sample)
    report = UnitReport.start()
    builder = SequenceBuilder()
    delete_rejects(output)
    for unit in plan.units:
        rejects = Rejects(unit, read)
        for found in read_sequences(unit, how, rejects, report):
            if sample.first_bytes is None:
                builder.add(found)
                continue
            builder.add(divide(found, sample.first_bytes - builder.size)[0])
            if builder.size == sample.first_bytes:
                break
        rejects.write(output)
        report.take(rejects)
        if builder.size == sample.first_bytes:
            break
    # A sample may end before its first document does.
    check_rejects(report.rejects, read, output, left=report.documents or report.bytes)
    report.kept_bytes = builder.size
    return builder.take().to_binary(), describe_totals(report, sample)


def describe_totals(report: UnitReport, sample: Sample) -> dict[str, Any]:
    """Totals of raw text as a training record and the summary tell them."""
    described: dict[str, Any] = {
        "documents": report.documents,
        "bytes": report.bytes,
        "rejects": report.rejects,
        "accepted": report.accepted,
        "special_text": report.special_text,
    }
    return described if sample.is_whole else {**described, "sampled_bytes": report.kept_bytes}


def train_raw_sizes(
    plan: Plan,
    read: ReadOptions,
    settings: TrainSettings,
    *,
    record: Mapping[str, Any],
    output: str,
    sample: Sample,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[int, Tokenizer], dict[str, Any]]:
    """Read the corpus, or a sample of it, into memory and train on it.

    Args:
        plan: what to read.
        read: how.
        settings: what decides the merges; the pre-tokenizer is `none`.
        record: stored as each tokenizer's training record.
        output: folder for the lists of rejected rows.
        sample: which part to take.
        progress: called with merges made and merges wanted, now and then.

    Returns:
        The tokenizer of each size that was asked for, and totals; see `read_raw_documents`.
    """
    documents, totals = read_raw_documents(plan, read, settings, output, sample)
    # Training takes all that the driver has.
    give_back_memory()
    largest = train_raw(
        documents,
        settings.vocab_sizes[-1],
        tie_order=settings.tie_order,
        min_frequency=settings.min_frequency,
        special_tokens=settings.special_tokens,
        max_token_bytes=settings.max_token_bytes,
        progress=progress,
        training_record={**record, "totals": totals},
    )
    return truncate_to_sizes(largest, settings.vocab_sizes), totals
