"""Options that several commands share: which inputs, how they are read, whose the output is."""

from __future__ import annotations

import argparse

from pipelines.cli.argument_types import (
    parse_cut_size,
    parse_document_separator,
    parse_folder,
    parse_pattern,
    parse_size,
    whole_number,
)
from pipelines.corpus.read_options import INPUT_FORMATS

__all__ = ["add_input", "add_listing", "add_overwrite", "add_special_text"]


def add_input(parser: argparse.ArgumentParser) -> None:
    """Which files are read, and as what."""
    group = parser.add_argument_group("input")
    add = group.add_argument
    add_listing(group)
    add(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="auto: by the file's name (.jsonl, .ndjson, .csv, .tsv, .parquet, .pq, .arrow, "
        ".feather, .arrows), else text, a file being one document; names and contents of other "
        "formats (.json, .pdf, …) are refused; lines: a line is a document",
    )
    add(
        "--document-separator",
        type=parse_document_separator,
        metavar="TEXT",
        help=r"text files hold several documents, each ended by TEXT (escapes as in '\n\n')",
    )
    add(
        "--text-field",
        default="text",
        metavar="NAME",
        help="rows: the field or column with the text, dots for nested ones (default: text)",
    )
    add("--id-field", metavar="NAME", help="rows: the field or column with the document's id")
    add(
        "--range-bytes",
        type=parse_cut_size,
        default=4 << 20,
        metavar="SIZE",
        help="uncompressed files are cut into ranges of this size (default: 4MiB, at least 1KiB)",
    )
    add(
        "--max-row-bytes",
        type=parse_size,
        default=256 << 20,
        metavar="SIZE",
        help="a row longer than this is a bad record (default: 256MiB)",
    )
    add(
        "--limit",
        type=whole_number(),
        metavar="N",
        help="for trial runs: read only the first N documents, in the order of files; they are the "
        "same for every runner and number of workers",
    )
    _add_policies(group)


def add_listing(group: argparse._ArgumentGroup) -> None:
    """Which files are read."""
    add = group.add_argument
    add(
        "--input",
        type=parse_pattern,
        nargs="+",
        action="extend",
        metavar="GLOB",
        default=[],
        help="files, folders or patterns, quoted; what exists is a name, even with * ? [ in it; "
        ".gz, .zst, .bz2 and .xz are read as what they hold",
    )
    add(
        "--input-list",
        type=parse_folder,
        nargs="+",
        action="extend",
        metavar="FILE",
        default=[],
        help="files that name inputs as --input does, one a line, relative paths from the current "
        "folder; empty lines are passed over, comments there are none; a name with a line feed "
        "in it cannot be listed: give it to --input",
    )
    for name, what in (("include", "read only"), ("exclude", "leave out")):
        add(
            f"--{name}",
            action="append",
            default=[],
            metavar="GLOB",
            help=f"of the files that --input names, {what} those that match GLOB; may be repeated. "
            "A GLOB without / is compared with the file's name, one with / with its path below the "
            "input's fixed part; ** crosses folders",
        )


def _add_policies(group: argparse._ArgumentGroup) -> None:
    """What happens to bad rows and files, and to empty documents."""
    add = group.add_argument
    add(
        "--on-bad-record",
        choices=("fail", "skip"),
        default="fail",
        help="a row that cannot be read: stop (default), or skip and list it in rejects/",
    )
    add(
        "--on-bad-file",
        choices=("fail", "skip"),
        default="fail",
        help="a file that cannot be read: stop (default), or skip and list it in rejects/",
    )
    add(
        "--max-bad-records",
        type=whole_number(0),
        metavar="N",
        help="stop once the whole run has skipped more than N rows, a bad file being one more",
    )
    add(
        "--nulls",
        choices=("fail", "skip", "empty"),
        help="a row whose text is null: stop, skip and list it in rejects/ (not one of "
        "--max-bad-records), or take it as an empty document (default: as --on-bad-record)",
    )
    add(
        "--empty",
        choices=("keep", "drop"),
        default="keep",
        help="documents without text: keep as rows without ids (default), or leave out",
    )


def add_special_text(parser: argparse.ArgumentParser) -> None:
    """What special tokens in the text mean."""
    parser.add_argument(
        "--special-text",
        choices=("text", "allow", "reject"),
        default="text",
        help="special tokens spelled out in documents: ordinary text (default), the special token, "
        "or an error",
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Whether a used folder is started again."""
    parser.add_argument("--overwrite", action="store_true", help="start again in a used folder")
