"""`beam-bpe verify`: check a finished output: shards, tokenizer or export."""

from __future__ import annotations

import sys
from argparse import Namespace

from bpe.errors import OutputError
from pipelines.cli.arguments import UsageError
from pipelines.cli.commands import job
from pipelines.cli.commands.tokenizer_notes import tell_lossy
from pipelines.corpus.listing.input_lists import read_input_lists
from pipelines.corpus.listing.inputs import list_inputs
from pipelines.exports.export_check import check_export
from pipelines.shards.artifact_kind import recognize
from pipelines.shards.manifest import read_manifest
from pipelines.shards.tokenizer_files import find_models, load_copy
from pipelines.storage.output_files import exists, join
from pipelines.storage.output_layout import MANIFEST, TOKENIZER_FOLDER
from pipelines.storage.wording import counted
from pipelines.training.count_artifact import COUNTS_MANIFEST, load_counts
from pipelines.verify.verify_again import EncodedAgain, encode_again, recorded_options
from pipelines.verify.verify_output import Verified, verify_output

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    job.use_storage_options(arguments)
    directory = arguments.directory
    patterns = [*arguments.input, *read_input_lists(arguments.input_list)]
    if arguments.units is not None and not patterns:
        raise UsageError("verify: --units belongs to --input")
    models = [] if exists(join(directory, MANIFEST)) else find_models(directory)
    if not models:
        _verify_other(directory, arguments, patterns)
    elif patterns:
        raise UsageError(f"verify: --input belongs to an output of encode, not to {directory}")
    for model in models:
        _verify_model(model)
    if models and exists(join(directory, "counts", COUNTS_MANIFEST)):
        _verify_counts(join(directory, "counts"))
    return 0


def _verify_other(directory: str, arguments: Namespace, patterns: list[str]) -> None:
    """Check what is no tokenizer.

    Raises:
        OutputError: nothing that can be checked is there.
    """
    place = recognize(directory)
    if place.kind == "export" and patterns:
        raise UsageError(f"verify: --input belongs to an output of encode, not to {directory}")
    if place.kind == "export":
        _verify_export(directory)
    elif place.kind in {"nothing", "other", "file"} and place.shards is None:
        raise OutputError(
            f"{directory}: {place.what}; give the --output folder of a beam-bpe encode, train or "
            "export"
        )
    else:
        _verify_shards(directory, arguments, patterns)


def _verify_export(directory: str) -> None:
    record = check_export(directory)
    sys.stdout.write(
        f"{directory} is whole: {record.settings.get('to')}, "
        f"{counted(len(record.files), 'file')}, {counted(record.documents, 'document')}, "
        f"{counted(record.tokens, 'token')}\n"
        "checked: each file's presence, size and sha256; not checked: that the files hold the "
        "shards' ids, and other files in the folder\n"
    )


def _verify_shards(directory: str, arguments: Namespace, patterns: list[str]) -> None:
    done = verify_output(directory, full=arguments.full)
    tell_lossy(load_copy(join(directory, TOKENIZER_FOLDER)))
    again = _encode_again(directory, arguments, patterns) if patterns else None
    sys.stdout.write(
        f"{directory} is whole: {counted(done.shards, 'shard')}, {counted(done.rows, 'row')}, "
        f"{counted(done.tokens, 'token')}\n"
        f"checked: {_checked(done)}\n"
        + (f"checked: {_compared(again)}\n" if again else "")
        + f"not checked: {_unchecked(done, again, full=arguments.full)}\n"
    )


def _encode_again(directory: str, arguments: Namespace, patterns: list[str]) -> EncodedAgain:
    manifest = read_manifest(directory)
    read = recorded_options(manifest, include=arguments.include, exclude=arguments.exclude)
    inputs = list_inputs(patterns, read)
    return encode_again(directory, manifest, inputs, read, units=arguments.units)


def _checked(done: Verified) -> str:
    size = "bytes of text, " if done.text_bytes else ""
    lists = counted(done.rejects_files, "list of rejects", "lists of rejects")
    rejects = f"{lists}, " if done.rejects_files else ""
    layout = "padding, " * done.packed + "the split of each document, " * done.split
    unit = "whole document" if done.packed else "row"
    again = (
        f"; {counted(done.encoded_again, unit)} encoded again gave the same ids"
        if done.encoded_again
        else ""
    )
    return (
        "the ranges of the input that units read; each shard's sha256, columns, ids, "
        "order of rows, file, place and id of each document, BOS and EOS, "
        f"{layout}{size}counts; "
        f"sidecars, totals, settings and their digest, {rejects}the tokenizer, its files and "
        f"golden texts{again}"
    )


def _compared(again: EncodedAgain) -> str:
    """What was encoded again from the input."""
    which = f"{again.units} of {counted(again.all_units, 'unit')}"
    if again.shards:
        return f"{which} encoded again from the input: {counted(again.shards, 'shard')}, same bytes"
    return f"{which} encoded again from the input: the same rows, before the shuffle"


def _why_none_again(done: Verified, *, full: bool) -> str:
    if not done.reencodes:
        return "the tokenizer's library does not decode to the text that was encoded"
    unit = "whole document" if done.packed else "row"
    return f"no {unit} stands alone{'' if full else ' in the sample (--full looks at all)'}"


def _unchecked(done: Verified, again: EncodedAgain | None, *, full: bool) -> str:
    rest = "what the manifest says of program and backend"
    if again is not None and again.shards and again.units == again.all_units:
        return rest
    items = []
    if again is not None:
        items.append("the units that were not encoded again")
    if done.rows and not done.encoded_again:
        items.append(f"whether the texts get these ids: {_why_none_again(done, full=full)}")
    if done.passed_ids:
        items.append(
            f"{counted(done.passed_ids, 'id')} of documents in several rows, which cannot be "
            "encoded alone"
        )
    items += done.left_out
    if again is None:
        items.append("that the text is that of the input files (--input encodes them again)")
    return ", ".join([*items, f"and {rest}"])


def _verify_model(directory: str) -> None:
    # Loading checks the hash of each file, the digest and the golden set.
    tokenizer = load_copy(directory, checks_files=True)
    tell_lossy(tokenizer)
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
