"""Distributed training and encoding on Apache Beam.

    CountWords, WriteCountTable, TrainBpe     training (`pipelines.count_words`, `.train_bpe`)
    EncodeDocuments                           encoding (`pipelines.encode_documents`)

The names are imported when they are first used, since Beam takes over a second to load and the
command line's `--help` and `inspect` do without it.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["CountWords", "EncodeDocuments", "TrainBpe", "WriteCountTable"]

_HOMES = {
    "CountWords": "pipelines.count_words",
    "EncodeDocuments": "pipelines.encode_documents",
    "TrainBpe": "pipelines.train_bpe",
    "WriteCountTable": "pipelines.count_words",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
