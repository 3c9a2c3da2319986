"""Options that several commands share: inputs, reading, special text, overwriting."""

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
    """Which files to read, and how."""
    group = parser.add_argument_group("input")
    add = group.add_argument
    add_listing(group)
    add(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="auto: by the file's name (.jsonl, .ndjson, .csv, .tsv, .parquet, .pq, .arrow, "
        ".feather, .arrows), otherwise text; other formats (.json, .pdf, …) are refused by name "
        "or content. text: a file is a document. lines: a line is a document",
    )
    add(
        "--document-separator",
        type=parse_document_separator,
        metavar="TEXT",
        help=r"text files hold several documents; TEXT ends each (escapes as in '\n\n')",
    )
    add(
        "--text-field",
        default="text",
        metavar="NAME",
        help="rows: field or column with the text; dots for nested fields (default: text)",
    )
    add("--id-field", metavar="NAME", help="rows: field or column with the document's id")
    add(
        "--range-bytes",
        type=parse_cut_size,
        default=4 << 20,
        metavar="SIZE",
        help="cut uncompressed files into ranges of this size (default: 4MiB, at least 1KiB)",
    )
    add(
        "--max-row-bytes",
        type=parse_size,
        default=256 << 20,
        metavar="SIZE",
        help="longest row; a longer one is a bad record (default: 256MiB)",
    )
    add(
        "--limit",
        type=whole_number(),
        metavar="N",
        help="trial run: read only the first N documents, in the order of files; every runner and "
        "number of workers reads the same",
    )
    _add_policies(group)


def add_listing(group: argparse._ArgumentGroup) -> None:
    """Which files to read."""
    add = group.add_argument
    add(
        "--input",
        type=parse_pattern,
        nargs="+",
        action="extend",
        metavar="GLOB",
        default=[],
        help="files, folders or patterns (quote them); a path that exists is a name, even with * ? "
        "[ in it; .gz, .zst, .bz2 and .xz files are unpacked",
    )
    add(
        "--input-list",
        type=parse_folder,
        nargs="+",
        action="extend",
        metavar="FILE",
        default=[],
        help="files that list inputs, one a line, as for --input; relative paths start at the "
        "current folder; empty lines are skipped; comments are not supported; give a name with a "
        "line feed to --input",
    )
    for name, what in (("include", "read only"), ("exclude", "leave out")):
        add(
            f"--{name}",
            action="append",
            default=[],
            metavar="GLOB",
            help=f"of the files that --input names, {what} those that match GLOB; may be repeated. "
            "A GLOB without / is compared with the file's name; one with / is compared with the "
            "path below the input's fixed part, and ** crosses folders",
        )


def _add_policies(group: argparse._ArgumentGroup) -> None:
    """What to do with bad rows, bad files, nulls and empty documents."""
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
        help="stop once the whole run has skipped more than N rows; a bad file counts as one",
    )
    add(
        "--nulls",
        choices=("fail", "skip", "empty"),
        help="a row whose text is null: stop, skip and list it in rejects/ (it does not count for "
        "--max-bad-records), or take it as an empty document (default: as --on-bad-record)",
    )
    add(
        "--empty",
        choices=("keep", "drop"),
        default="keep",
        help="documents without text: keep them as rows without ids (default), or leave them out",
    )


def add_special_text(parser: argparse.ArgumentParser) -> None:
    """What the text of a special token means."""
    parser.add_argument(
        "--special-text",
        choices=("text", "allow", "reject"),
        default="text",
        help="text of a special token in a document: ordinary text (default), the special token, "
        "or an error",
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Whether to replace an earlier output."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the output of an earlier run"
    )
