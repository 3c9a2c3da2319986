"""Train without a pre-tokenizer on the driver: merges may cross anything but document ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bpe.backend import get_backend
from bpe.cut_points import CutFinder
from bpe.errors import SettingsError
from bpe.schemes import get_scheme
from bpe.tokenizer import Tokenizer
from bpe.training import train_raw
from pipelines.inputs import ReadOptions
from pipelines.plan import Plan
from pipelines.progress import format_bytes
from pipelines.read_documents import read_unit
from pipelines.rejects import Rejects
from pipelines.train_bpe import TrainSettings, raw_memory, truncate_to_sizes

__all__ = ["read_whole_documents", "train_raw_sizes"]

# Text usually takes up three to four times its compressed size.
_UNPACKED = 4


def read_whole_documents(plan: Plan, read: ReadOptions) -> Iterator[bytes]:
    """All documents of a plan, whole, in order.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop.
    """
    finder = CutFinder(get_scheme("none"))
    pieces: list[bytes] = []
    for unit in plan.units:
        for batch in read_unit(unit, read, finder, Rejects(unit, read)):
            texts = batch["text"].to_pylist()
            for text, is_last in zip(texts, batch["is_last"].to_pylist(), strict=True):
                pieces.append(text)
                if is_last:
                    yield b"".join(pieces)
                    pieces = []


def train_raw_sizes(
    plan: Plan,
    read: ReadOptions,
    settings: TrainSettings,
    record: Mapping[str, Any],
    *,
    memory: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[int, Tokenizer], dict[str, Any]]:
    """Read the corpus into memory and train on it.

    Args:
        plan: what to read.
        read: how.
        settings: what decides the merges; the pre-tokenizer is `none`.
        record: stored as each tokenizer's training record.
        memory: refuse what takes more, in bytes.
        progress: called with merges made and merges wanted, now and then.

    Returns:
        The tokenizer of each size that was asked for, and totals (documents, bytes).

    Raises:
        SettingsError: the corpus is too large, or special tokens in text are to cut documents,
            which raw training does not do yet.
    """
    if settings.special_text != "text":
        raise SettingsError(
            f"--special-text {settings.special_text}: with --pretokenizer none special tokens in "
            "documents are ordinary text; leave the option out"
        )
    unpacked = sum(
        file.size * (1 if file.compression == "none" else _UNPACKED) for file in plan.files
    )
    needed = raw_memory(unpacked, get_backend().name)
    if needed > memory:
        raise SettingsError(
            f"training without a pre-tokenizer on {format_bytes(unpacked)} of text takes about "
            f"{format_bytes(needed)} of memory, and --driver-memory allows {format_bytes(memory)}; "
            "allow more, or give less input"
        )
    documents = list(read_whole_documents(plan, read))
    totals = {"documents": len(documents), "bytes": sum(map(len, documents))}
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
