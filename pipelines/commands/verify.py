"""`beam-bpe verify`: check a finished output: shards, tokenizer or export."""

from __future__ import annotations

import sys
from argparse import Namespace

from bpe.errors import OutputError
from pipelines.commands import job
from pipelines.count_artifact import COUNTS_MANIFEST, load_counts
from pipelines.counted_nouns import counted
from pipelines.exports.export_check import check_export
from pipelines.folder_kinds import recognize
from pipelines.output_files import exists, join
from pipelines.output_layout import MANIFEST, TOKENIZER_FOLDER
from pipelines.tokenizer_files import find_models, load_copy
from pipelines.verify import verify_output

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.arguments` for the options."""
    job.use_storage_options(arguments)
    directory = arguments.directory
    models = [] if exists(join(directory, MANIFEST)) else find_models(directory)
    if not models:
        _verify_other(directory, full=arguments.full)
    for model in models:
        _verify_model(model)
    if models and exists(join(directory, "counts", COUNTS_MANIFEST)):
        _verify_counts(join(directory, "counts"))
    return 0


def _verify_other(directory: str, *, full: bool) -> None:
    """Check what is no tokenizer.

    Raises:
        OutputError: nothing that can be checked is there.
    """
    place = recognize(directory)
    if place.kind == "export":
        _verify_export(directory)
    elif place.kind in {"nothing", "other", "file"} and place.shards is None:
        raise OutputError(
            f"{directory}: {place.what}; give the --output folder of a beam-bpe encode, train or "
            "export"
        )
    else:
        _verify_shards(directory, full=full)


def _verify_export(directory: str) -> None:
    record = check_export(directory)
    sys.stdout.write(
        f"{directory} is whole: {record.settings.get('to')}, "
        f"{counted(len(record.files), 'file')}, {counted(record.documents, 'document')}, "
        f"{counted(record.tokens, 'token')}\n"
        "checked: each file's presence, size and sha256; not checked: that the files hold the "
        "shards' ids, and other files in the folder\n"
    )


def _verify_shards(directory: str, *, full: bool) -> None:
    done = verify_output(directory, full=full)
    job.tell_lossy(load_copy(join(directory, TOKENIZER_FOLDER)))
    size = "bytes of text, " if done.text_bytes else ""
    lists = counted(done.rejects_files, "list of rejects", "lists of rejects")
    rejects = f"{lists}, " if done.rejects_files else ""
    layout = "padding, " * done.packed + "the split of each document, " * done.split
    unit = "whole document" if done.packed else "row"
    again = nothing = ""
    if done.encoded_again:
        again = f"; {counted(done.encoded_again, unit)} encoded again gave the same ids"
    elif done.rows:
        nothing = f"whether the texts get these ids: no {unit} stands alone" + (
            ", " if full else " in the sample (--full encodes all), "
        )
    passed = (
        f"{counted(done.passed_over, 'row')} of streamed documents that cannot be encoded alone"
        f"{'' if full else ' (--full encodes whole documents)'}, "
        if done.passed_over
        else ""
    )
    divided = (
        f"{counted(done.passed_ids, 'id')} of documents divided among packed rows, not encoded "
        "again, "
        if done.passed_ids
        else ""
    )
    rows = "order of rows, " if done.ordered else ""
    order = "the order of the shuffle, " if done.shuffled else ""
    order += "" if done.ordered else "the order of best-fit's rows, "
    sys.stdout.write(
        f"{directory} is whole: {counted(done.shards, 'shard')}, {counted(done.rows, 'row')}, "
        f"{counted(done.tokens, 'token')}\n"
        f"checked: each shard's sha256, columns, ids, {rows}BOS and EOS, {layout}{size}counts; "
        f"sidecars, totals, settings and their digest, {rejects}the tokenizer and its golden "
        f"texts{again}\n"
        f"not checked: {nothing}{passed}{divided}{order}the input files, and what the manifest "
        "says of plan, program and backend\n"
    )


def _verify_model(directory: str) -> None:
    # Loading checks the hash of each file, the digest and the golden set.
    tokenizer = load_copy(directory, checks_files=True)
    job.tell_lossy(tokenizer)
    sys.stdout.write(
        f"{directory} is whole: {tokenizer.scheme.name}, "
        f"{counted(tokenizer.vocab_size, 'entry', 'entries')}, digest {tokenizer.digest}\n"
        "checked: each file's sha256, the digest, the golden texts; not checked: the training "
        "record\n"
    )


def _verify_counts(directory: str) -> None:
    words = load_counts(directory).table.num_rows
    sys.stdout.write(
        f"{directory} is whole: counts of {counted(words, 'word')}\n"
        "checked: each bucket's sha256, the digest, the number of words and of their occurrences\n"
    )
