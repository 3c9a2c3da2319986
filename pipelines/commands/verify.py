"""`beam-bpe verify`: check a finished output, shards or tokenizer."""

from __future__ import annotations

import sys
from argparse import Namespace

from pipelines.count_artifact import load_counts
from pipelines.manifest import MANIFEST
from pipelines.output_files import exists, join
from pipelines.progress import format_count
from pipelines.tokenizer_files import is_finished_model, load_copy
from pipelines.verify import verify_output

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.arguments` for the options."""
    directory = arguments.directory
    if is_finished_model(directory) and not exists(join(directory, MANIFEST)):
        _verify_model(directory)
        return 0
    done = verify_output(directory, full=arguments.full)
    sys.stdout.write(
        f"{directory} is whole: {format_count(done.shards)} shards, {format_count(done.rows)} "
        f"rows, {format_count(done.tokens)} tokens; {format_count(done.encoded_again)} rows "
        "encoded again gave the same ids\n"
    )
    return 0


def _verify_model(directory: str) -> None:
    # Loading checks the hash of each file, the digest and the golden set.
    tokenizer = load_copy(directory)
    counts = join(directory, "counts")
    words = ""
    if exists(join(counts, MANIFEST)):
        words = f"; counts of {format_count(load_counts(counts).table.num_rows)} words"
    sys.stdout.write(
        f"{directory} is whole: {tokenizer.scheme.name}, {format_count(tokenizer.vocab_size)} "
        f"entries, digest {tokenizer.digest}{words}\n"
    )
