"""Distributed training and encoding on Apache Beam.

    ReadOptions, list_inputs, make_plan            the input files, cut into units of work
    CountSettings, CountWords, WriteCountTable     counting the pre-tokens of units
    TrainSettings, TrainBpe                        training from the counts
    EncodeSettings, EncodeRun, EncodeDocuments     encoding units into shards that
                                                   `beam-bpe verify` and `head` accept
    SpillDocuments, WriteBuckets                   the same in two jobs, for a global shuffle
    EncodeToBatches                                encoding any rows, without files
    ReadTokenShards                                a source: the rows of finished shards
    TokenShards                                    random access to such an output

`examples/own_pipeline.py` is a whole pipeline of your own, from JSON Lines to shards.

A name is imported when it is first used: Beam takes over a second to load, and the command line's
`--help` and `inspect` do not need it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.corpus.listing.inputs import list_inputs
    from pipelines.corpus.plan import make_plan
    from pipelines.corpus.read_options import ReadOptions
    from pipelines.encoding.encode_documents import EncodeDocuments
    from pipelines.encoding.encode_rows import EncodeToBatches
    from pipelines.encoding.encode_run import EncodeRun
    from pipelines.encoding.shuffle_buckets import SpillDocuments, WriteBuckets
    from pipelines.shards.encode_settings import EncodeSettings
    from pipelines.shards.read_token_shards import ReadTokenShards
    from pipelines.shards.token_shards import TokenShards
    from pipelines.training.count_words import CountSettings, CountWords, WriteCountTable
    from pipelines.training.train_bpe import TrainBpe, TrainSettings

__all__ = [
    "CountSettings",
    "CountWords",
    "EncodeDocuments",
    "EncodeRun",
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
    "list_inputs",
    "make_plan",
]

_HOMES = {
    "CountSettings": "pipelines.training.count_words",
    "CountWords": "pipelines.training.count_words",
    "EncodeDocuments": "pipelines.encoding.encode_documents",
    "EncodeRun": "pipelines.encoding.encode_run",
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
    "list_inputs": "pipelines.corpus.listing.inputs",
    "make_plan": "pipelines.corpus.plan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
