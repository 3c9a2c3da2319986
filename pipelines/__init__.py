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

`examples/own_pipeline.py` is a whole pipeline of your own, from JSON Lines to shards.

A name is imported when it is first used: Beam takes over a second to load, and the command line's
`--help` and `inspect` do not need it.
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
    from pipelines.encoding.write_manifest import write_manifest
    from pipelines.shards.encode_settings import EncodeSettings
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
    "write_manifest": "pipelines.encoding.write_manifest",
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
