"""Distributed training and encoding on Apache Beam.

    ReadOptions, list_inputs, make_plan            the input files, cut into units of work
    CountSettings, CountWords, WriteCountTable     counting the pre-tokens of units
    TrainSettings, TrainBpe                        training from the counts
    EncodeSettings, EncodeDocuments                encoding units into shards
    plan_buckets, SpillDocuments, WriteBuckets     the same in two jobs, for a global shuffle
    EncodeToBatches                                encoding any rows, without files
    ReadTokenShards                                a source: the rows of finished shards
    begin_run, save_copy, find_finished_units,     what makes a folder of shards an output that
    remove_stale_files, write_manifest             `beam-bpe verify` and `head` accept
    code_version                                   of beam-bpe, for the manifest
    TokenShards                                    random access to such an output

A pipeline of your own, from JSON Lines to shards:

    import apache_beam as beam

    from bpe import Tokenizer, get_backend
    from pipelines import (
        CountWords,
        EncodeDocuments,
        EncodeSettings,
        ReadOptions,
        TrainBpe,
        TrainSettings,
        begin_run,
        code_version,
        find_finished_units,
        list_inputs,
        make_plan,
        remove_stale_files,
        save_copy,
        write_manifest,
    )

    # Plan: which bytes of which files make a unit of work.
    read = ReadOptions(text_field="doc.content")
    inputs = list_inputs(["corpus"], read)
    plan = make_plan(inputs, read)

    # Train: one model directory per vocabulary size, here tok/300 and tok/350.
    training = TrainSettings((300, 350), pretokenizer="gpt2")
    with beam.Pipeline() as pipeline:
        (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in plan.units])
            | CountWords(training.counting, read)
            | TrainBpe("tok", training)
        )

    # Encode: mark the folder, put the tokenizer there, make the units that are missing.
    tokenizer = Tokenizer.load("tok/350")
    encoding = EncodeSettings(tokenizer.digest, read)
    begin_run("enc", encoding, plan, overwrite=False)
    save_copy(tokenizer, "tok/350", "enc/__beam-bpe__/tokenizer")
    kept = find_finished_units("enc", encoding, plan)
    remove_stale_files("enc", kept)
    missing = [unit for unit in plan.units if unit.index not in kept]
    with beam.Pipeline() as pipeline:
        (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in missing])
            | EncodeDocuments("enc", encoding)
        )

    # Finish: add up the sidecars of all shards; without a manifest an output is unfinished.
    manifest = write_manifest(
        "enc",
        encoding,
        plan,
        code_version=code_version(),
        backend=get_backend().name,
        listing=inputs.counts,
    )
    print(manifest.totals.documents, "documents,", manifest.totals.tokens, "tokens")

Run again after an interruption, it trains again and encodes only the units that are missing.
Several runs into one folder at once are kept apart as the command does it: call
`pipelines.storage.output_files.prepare_output`, then encode within
`pipelines.storage.output_lock.locked_output`.

The names are imported when they are first used, since Beam takes over a second to load and the
command line's `--help` and `inspect` do without it.
"""

from __future__ import annotations

import importlib
import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.cli.commands.job import code_version
    from pipelines.corpus.listing.inputs import list_inputs
    from pipelines.corpus.plan import make_plan
    from pipelines.corpus.read_options import ReadOptions
    from pipelines.encoding.encode_documents import EncodeDocuments
    from pipelines.encoding.encode_rows import EncodeToBatches
    from pipelines.encoding.resume import begin_run, find_finished_units, remove_stale_files
    from pipelines.encoding.shuffle_buckets import SpillDocuments, WriteBuckets, plan_buckets
    from pipelines.shards.encode_settings import EncodeSettings
    from pipelines.shards.manifest import write_manifest
    from pipelines.shards.read_token_shards import ReadTokenShards
    from pipelines.shards.token_shards import TokenShards
    from pipelines.shards.tokenizer_files import save_copy
    from pipelines.training.count_words import CountSettings, CountWords, WriteCountTable
    from pipelines.training.train_bpe import TrainBpe, TrainSettings

__all__ = [
    "CountSettings",
    "CountWords",
    "EncodeDocuments",
    "EncodeSettings",
    "EncodeToBatches",
    "ReadOptions",
    "ReadTokenShards",
    "SpillDocuments",
    "TokenShards",
    "TrainBpe",
    "TrainSettings",
    "WriteBuckets",
    "WriteCountTable",
    "begin_run",
    "code_version",
    "find_finished_units",
    "list_inputs",
    "make_plan",
    "plan_buckets",
    "remove_stale_files",
    "save_copy",
    "write_manifest",
]

_HOMES = {
    "CountSettings": "pipelines.training.count_words",
    "CountWords": "pipelines.training.count_words",
    "EncodeDocuments": "pipelines.encoding.encode_documents",
    "EncodeSettings": "pipelines.shards.encode_settings",
    "EncodeToBatches": "pipelines.encoding.encode_rows",
    "ReadOptions": "pipelines.corpus.read_options",
    "ReadTokenShards": "pipelines.shards.read_token_shards",
    "SpillDocuments": "pipelines.encoding.shuffle_buckets",
    "TokenShards": "pipelines.shards.token_shards",
    "TrainBpe": "pipelines.training.train_bpe",
    "TrainSettings": "pipelines.training.train_bpe",
    "WriteBuckets": "pipelines.encoding.shuffle_buckets",
    "WriteCountTable": "pipelines.training.count_words",
    "begin_run": "pipelines.encoding.resume",
    "code_version": "pipelines.cli.commands.job",
    "find_finished_units": "pipelines.encoding.resume",
    "list_inputs": "pipelines.corpus.listing.inputs",
    "make_plan": "pipelines.corpus.plan",
    "plan_buckets": "pipelines.encoding.shuffle_buckets",
    "remove_stale_files": "pipelines.encoding.resume",
    "save_copy": "pipelines.shards.tokenizer_files",
    "write_manifest": "pipelines.shards.manifest",
}


class _NoCloudClients(logging.Filter):
    """Drops what Beam says once, on being imported without its Google Cloud extra."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not str(record.msg).startswith("apitools not found"):
            return True
        logging.getLogger().removeFilter(self)
        return False


if "apache_beam" not in sys.modules:
    logging.getLogger().addFilter(_NoCloudClients())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
