"""What `beam-bpe train` prints when it is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.cli.commands.train_job import TrainJob
from pipelines.runners.progress import format_count
from pipelines.storage.wording import counted
from pipelines.training.train_bpe import TrainSettings, model_directories

__all__ = ["print_summary"]

_STOP_REASONS = {
    "min_frequency": "no pair left occurs {} (--min-frequency)",
    "exhausted": "no pair is left to merge",
}


def print_summary(
    this: TrainJob,
    models: Mapping[int, Tokenizer],
    totals: Mapping[str, Any],
    seconds: float,
    *,
    text_read: bool,
) -> None:
    """Print what was read, what was learned, and where it is.

    Args:
        this: the command.
        models: tokenizers by the size that was asked for.
        totals: of what was counted or read; values that are not known are left out.
        seconds: that the command took.
        text_read: whether it read the text itself, rather than counts that were there.
    """
    settings = this.settings
    size = totals.get("bytes", 0)
    lines = job.limit_lines(this.read.limit)
    if "documents" in totals:
        lines.append(f"documents        {format_count(totals['documents'])}")
        lines.append(job.text_line(size))
    if "sampled_bytes" in totals:
        sampled = totals["sampled_bytes"]
        share = f"{100 * sampled / max(1, size):.3g} %"
        lines.append(f"trained on       {counted(sampled, 'byte')} of it ({share})")
    if "words" in totals:
        # Of SuperBPE, only the counts of the second stage are at hand whatever was kept.
        stage = " (second stage)" if settings.superbpe_from is not None else ""
        lines.append(f"pre-tokens       {format_count(totals['occurrences'])}{stage}")
        lines.append(f"distinct         {format_count(totals['words'])}")
    if totals.get("rejects"):
        reasons = ", ".join(f"{reason} {count}" for reason, count in totals["rejects"].items())
        lines.append(f"rejected         {reasons} (see {this.rejects_folder})")
    lines += job.accepted_lines(totals.get("accepted", {}), this.listing)
    lines += _special_text_lines(settings, totals)
    directories = model_directories(this.output, models)
    for wanted, model in models.items():
        lines.append(f"vocabulary       {format_count(model.vocab_size)}  {directories[wanted]}")
        why = _STOP_REASONS.get(str(model.training.get("stop_reason")))
        if why is not None:
            why = why.format(counted(settings.min_frequency, "time"))
            lines.append(f"stopped early    {format_count(wanted)} were asked for, but {why}")
    lines.append(job.seconds_line(seconds, size if text_read else None))
    sys.stdout.write("\n".join(lines) + "\n")


def _special_text_lines(settings: TrainSettings, totals: Mapping[str, Any]) -> list[str]:
    meaning = "as ordinary text" if settings.special_text == "text" else "where documents were cut"
    hits = totals.get("special_text", {})
    lines = job.special_text_lines(hits, meaning)
    unknown = [token for token in settings.special_tokens if token not in hits]
    if unknown:
        lines.append(f"special text     not known for {unknown[0]!r}: counted without it")
    return lines
