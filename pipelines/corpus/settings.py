"""Settings of a run as plain values, and their digest.

Only what decides the output belongs in: never the backend, the runner or its workers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bpe.errors import OutputError
from pipelines.corpus.read_options import NULL_TEXT, ReadOptions

__all__ = ["digest_of", "reading_settings", "refuse_rejects", "refused_rejects"]

_POLICIES = ("on_bad_record", "on_bad_file", "max_bad_records", "nulls")
# What the patterns choose is in the list of inputs, which is recorded and compared itself.
_LISTING = ("include", "exclude", "limit")
# The names under which rejects count files and rows of their damaged parts; see
# `pipelines.corpus.rejects`.
_OF_FILES = ("bad_file", "bad_part")


def reading_settings(read: ReadOptions) -> dict[str, Any]:
    """The reading options that decide what a good input gives.

    The policies for nulls and bad rows and files are left out, so that a run that stopped at a bad
    row can go on with `--on-bad-record=skip`; see `refused_rejects` for the other direction. But
    `--nulls=empty` adds documents.
    """
    left_out = _POLICIES + _LISTING
    settings = {name: value for name, value in read.to_settings().items() if name not in left_out}
    # Left out where they have no effect, so that outputs from before these keep their digest.
    settings |= {"nulls": "empty"} if read.nulls == "empty" else {}
    return settings | ({} if read.limit is None else {"limit": read.limit})


def refused_rejects(rejects: Mapping[str, int], read: ReadOptions) -> bool:
    """Whether rows or files were set aside at which this run is to stop."""
    files = sum(rejects.get(name, 0) for name in _OF_FILES)
    nulls = rejects.get(NULL_TEXT, 0)
    rows = sum(rejects.values()) - files - nulls
    return (
        (files > 0 and read.on_bad_file == "fail")
        or (rows > 0 and read.on_bad_record == "fail")
        or (nulls > 0 and read.null_policy == "fail")
    )


def refuse_rejects(holds: str, rejects: Mapping[str, int], read: ReadOptions) -> None:
    """Raise an OutputError if what a folder holds left out rows or files that this run may not."""
    if refused_rejects(rejects, read):
        raise OutputError(
            f"{holds} left out bad rows or files ({rejects}); give --on-bad-record=skip or "
            "--on-bad-file=skip to accept that, or --overwrite"
        )


def digest_of(value: Any) -> str:
    """SHA-256 (hexadecimal) of a JSON value in its canonical spelling."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
