"""`beam-bpe head`: the first rows of an encoded folder as text."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from bpe.tokenizer import Tokenizer
from pipelines.cli.commands import job
from pipelines.runners.progress import format_count
from pipelines.shards.manifest import read_manifest
from pipelines.shards.shard_reader import open_shard
from pipelines.shards.shards_of_split import shards_of_split
from pipelines.shards.tokenizer_files import load_copy
from pipelines.storage.escape_control import one_line
from pipelines.storage.output_files import join
from pipelines.storage.output_layout import TOKENIZER_FOLDER
from pipelines.storage.wording import counted

__all__ = ["run"]

_SHOWN_IDS = 12
_SHOWN_CHARACTERS = 160


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    job.use_storage_options(arguments)
    directory = arguments.directory
    manifest = read_manifest(directory, split_option="--split")
    tokenizer = load_copy(join(directory, TOKENIZER_FOLDER))
    shards = manifest.shards
    if arguments.split is not None:
        shards = shards_of_split(directory, manifest, arguments.split, "--split")
    paths = [join(directory, shard.file) for shard in shards]
    for row in _first_rows(paths, manifest.settings.get("pack"), arguments.rows):
        show = _show_packed if "lengths" in row else _show
        sys.stdout.write(show(row, tokenizer))
    return 0


def _show(row: dict[str, Any], tokenizer: Tokenizer) -> str:
    end = "" if row["is_last"] else ", goes on"
    return (
        f"{one_line(row['source'])}  document {one_line(row['document_id'])}  "
        f"part {row['part']}{end}  "
        f"{_show_ids(row['input_ids'], tokenizer)}"
    )


def _show_packed(row: dict[str, Any], tokenizer: Tokenizer) -> str:
    """A packed row: its segments, one below the other, and how much padding follows."""
    filled = sum(row["lengths"])
    padding = len(row["input_ids"]) - filled
    lines = [
        f"row of {counted(filled, 'id')}"
        + (f" and {format_count(padding)} of padding\n" if padding else "\n")
    ]
    start = 0
    for segment, length in enumerate(row["lengths"]):
        place = row["positions"][segment]
        begin = f" from id {format_count(place)}" if place else ""
        end = "" if row["is_last"][segment] else ", goes on"
        lines.append(
            f"{one_line(row['sources'][segment])}  "
            f"document {one_line(row['document_ids'][segment])}{begin}{end}  "
            + _show_ids(row["input_ids"][start : start + length], tokenizer)
        )
        start += length
    return "".join(lines)


def _show_ids(ids: list[int], tokenizer: Tokenizer) -> str:
    shown = " ".join(map(str, ids[:_SHOWN_IDS])) + (" …" if len(ids) > _SHOWN_IDS else "")
    # A token is at least a byte, and a character at most four.
    text = tokenizer.decode_text(ids[: 4 * _SHOWN_CHARACTERS])[:_SHOWN_CHARACTERS]
    return f"{counted(len(ids), 'id')}\n  {shown}\n  {text!r}\n"


def _first_rows(paths: list[str], row_ids: int | None, count: int) -> Iterator[dict[str, Any]]:
    for path in paths:
        with open_shard(path, row_ids) as batches:
            for batch in batches:
                for row in batch.slice(0, count).to_pylist():
                    yield row
                    count -= 1
                if count == 0:
                    return
