"""`beam-bpe head`: the first rows of an encoded folder as text."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pipelines.manifest import read_manifest
from pipelines.output_files import join, open_for_reading
from pipelines.progress import format_count
from pipelines.tokenizer_files import TOKENIZER_FOLDER, load_copy

__all__ = ["run"]

_SHOWN_IDS = 12
_SHOWN_CHARACTERS = 160


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.arguments` for the options."""
    directory = arguments.directory
    manifest = read_manifest(directory)
    tokenizer = load_copy(join(directory, TOKENIZER_FOLDER))
    paths = [join(directory, shard.file) for shard in manifest.shards]
    for row in _first_rows(paths, arguments.rows):
        ids = row["input_ids"]
        shown = " ".join(map(str, ids[:_SHOWN_IDS])) + (" …" if len(ids) > _SHOWN_IDS else "")
        # A token is at least a byte, and a character at most four.
        text = tokenizer.decode_text(ids[: 4 * _SHOWN_CHARACTERS])[:_SHOWN_CHARACTERS]
        end = "" if row["is_last"] else ", goes on"
        sys.stdout.write(
            f"{row['source']}  document {row['document_id']}  part {row['part']}{end}  "
            f"{format_count(len(ids))} ids\n  {shown}\n  {text!r}\n"
        )
    return 0


def _first_rows(paths: list[str], count: int) -> Iterator[dict[str, Any]]:
    for path in paths:
        with open_for_reading(path) as file:
            reader = pa.ipc.open_file(file)
            for index in range(reader.num_record_batches):
                for row in reader.get_batch(index).slice(0, count).to_pylist():
                    if count == 0:
                        return
                    yield row
                    count -= 1
