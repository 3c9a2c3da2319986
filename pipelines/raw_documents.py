"""Train without a pre-tokenizer on the driver: merges may cross anything but document ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe.backend import get_backend
from bpe.counting import apply_special_text
from bpe.cut_points import CutFinder
from bpe.errors import BpeError, SettingsError
from bpe.schemes import get_scheme
from bpe.special_tokens import SpecialTokens
from bpe.tokenizer import Tokenizer
from bpe.training import train_raw
from pipelines.inputs import ReadOptions
from pipelines.output_folder import delete_rejects
from pipelines.plan import Plan, Unit
from pipelines.progress import format_bytes
from pipelines.read_documents import read_unit
from pipelines.rejects import Rejects, check_limit
from pipelines.special_text import refuse_special_text
from pipelines.train_bpe import TrainSettings, raw_memory, truncate_to_sizes

__all__ = ["read_raw_documents", "train_raw_sizes"]

# Text usually takes up three to four times its compressed size.
_UNPACKED = 4


def read_raw_documents(
    plan: Plan, read: ReadOptions, settings: TrainSettings, output: str
) -> tuple[pa.ChunkedArray, dict[str, Any]]:
    """All documents of a plan, whole and in order; with `allow` cut at special tokens.

    Args:
        plan: what to read.
        read: how.
        settings: the special tokens, and what their text means.
        output: folder for the lists of rejected rows; those of an earlier attempt are removed.

    Returns:
        The documents (large_binary), and totals: documents and bytes read, rejects and accepted
        anomalies by name, and special_text: how often each special token is spelled out.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop.
        InputError: a special token in a document where the policy is to reject.
    """
    finder = CutFinder(get_scheme("none"))
    specials = SpecialTokens({token: i for i, token in enumerate(settings.special_tokens)})
    documents = size = 0
    rejected, accepted, hits = Counter[str](), Counter[str](), Counter[str]()
    texts: list[pa.LargeBinaryArray] = []
    delete_rejects(output)
    for unit in plan.units:
        rejects = Rejects(unit, read)
        for batch in read_unit(unit, read, finder, rejects):
            # A scheme without cuts leaves each document in one piece.
            documents += batch.num_rows
            size += pc.sum(pc.binary_length(batch["text"])).as_py()
            hits.update(specials.count(batch["text"]))
            texts.append(_apply_special_text(batch, settings, unit))
        rejects.write(output)
        rejected.update(rejects.counts)
        accepted.update(rejects.accepted)
    check_limit(rejected, read.max_bad_records, output)
    totals = {
        "documents": documents,
        "bytes": size,
        "rejects": dict(sorted(rejected.items())),
        "accepted": dict(sorted(accepted.items())),
        "special_text": dict(sorted(hits.items())),
    }
    return pa.chunked_array(texts, pa.large_binary()), totals


def _apply_special_text(
    batch: pa.RecordBatch, settings: TrainSettings, unit: Unit
) -> pa.LargeBinaryArray:
    try:
        texts, _ = apply_special_text(batch["text"], settings.special_text, settings.special_tokens)
    except BpeError as error:
        if settings.special_text == "reject":
            specials = SpecialTokens({token: i for i, token in enumerate(settings.special_tokens)})
            refuse_special_text(specials, batch, unit)
        first, last = batch["document_id"][0], batch["document_id"][-1]
        raise type(error)(f"{batch['source'][0]}, documents {first} to {last}: {error}") from error
    return texts


def train_raw_sizes(
    plan: Plan,
    read: ReadOptions,
    settings: TrainSettings,
    record: Mapping[str, Any],
    *,
    output: str,
    memory: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[int, Tokenizer], dict[str, Any]]:
    """Read the corpus into memory and train on it.

    Args:
        plan: what to read.
        read: how.
        settings: what decides the merges; the pre-tokenizer is `none`.
        record: stored as each tokenizer's training record.
        output: folder for the lists of rejected rows.
        memory: refuse what takes more, in bytes.
        progress: called with merges made and merges wanted, now and then.

    Returns:
        The tokenizer of each size that was asked for, and totals; see `read_raw_documents`.

    Raises:
        SettingsError: the corpus is too large.
    """
    unpacked = sum(
        file.size * (_UNPACKED if file.compression != "none" or file.format == "parquet" else 1)
        for file in plan.files
    )
    needed = raw_memory(unpacked, get_backend().name)
    if needed > memory:
        raise SettingsError(
            f"training without a pre-tokenizer on {format_bytes(unpacked)} of text takes about "
            f"{format_bytes(needed)} of memory, and --driver-memory allows {format_bytes(memory)}; "
            "allow more, or give less input"
        )
    documents, totals = read_raw_documents(plan, read, settings, output)
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
