"""Options of the commands that read a finished output: verify, export, head, inspect."""

from __future__ import annotations

import argparse

from pipelines.cli.argument_types import parse_folder, parse_fraction, parse_text, whole_number
from pipelines.cli.input_arguments import add_listing, add_overwrite

__all__ = ["EXPORT_FORMATS", "add_export", "add_head", "add_inspect", "add_verify"]

EXPORT_FORMATS = ("hf", "megatron", "nanogpt", "llmc", "datatrove", "mds", "litdata", "npy")
"""What `export --to` takes; `pipelines.exports` has a class for each."""


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Which folder, and how thoroughly."""
    parser.add_argument(
        "directory",
        type=parse_folder,
        metavar="DIR",
        help="output of encode, train or export",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="encode every row that stands alone again, not a sample",
    )
    group = parser.add_argument_group(
        "encoding again",
        "Give the input of encode: its units are encoded again in a temporary folder (TMPDIR), and "
        "each shard must have the same bytes.",
    )
    add_listing(group)
    group.add_argument(
        "--units",
        type=whole_number(),
        metavar="N",
        help="encode only N units again, spread over the input (default: all)",
    )


def add_export(parser: argparse.ArgumentParser) -> None:
    """Which folder, which format, and the options of each format."""
    add = parser.add_argument
    add("directory", type=parse_folder, metavar="DIR", help="output of encode")
    add("--to", required=True, choices=EXPORT_FORMATS, help="format to write")
    add("--output", type=parse_folder, required=True, metavar="DIR", help="folder of the export")
    add("--append-eos", metavar="TOKEN|ID", help="put this token after each document")
    add("--prepend-bos", metavar="TOKEN|ID", help="put this token before each document")
    add(
        "--split",
        metavar="NAME",
        help="split to export, of an output of encode --split (nanogpt and llmc: by default train, "
        "with validation or val as the validation side)",
    )
    add(
        "--dtype",
        choices=("uint16", "uint32", "int32", "int64"),
        help="integer type of the ids (default: the smallest of the format that fits the "
        "vocabulary; mds with --block-size: int32)",
    )
    add(
        "--block-size",
        type=whole_number(),
        metavar="N",
        help="litdata: block_size of its TokensLoader (required); mds: samples of N ids, not "
        "documents",
    )
    add(
        "--tokens-per-file",
        type=whole_number(),
        metavar="N",
        help="llmc: ids in a file (default: 100000000); datatrove: start another file after N ids "
        "(default: one file)",
    )
    add(
        "--val-fraction",
        type=parse_fraction,
        metavar="F",
        help="nanogpt, llmc: share of the documents for validation",
    )
    add("--name", help="megatron, llmc: prefix of the files' names (default: tokens)")
    add_overwrite(parser)


def add_head(parser: argparse.ArgumentParser) -> None:
    """Which folder, which split of it, and how many rows."""
    parser.add_argument("directory", type=parse_folder, metavar="DIR", help="output of encode")
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="split to show, of an output of encode --split (default: the first that has rows)",
    )
    parser.add_argument(
        "--rows", type=whole_number(), default=5, metavar="N", help="number of rows (default: 5)"
    )


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Which tokenizer, and what to show."""
    parser.add_argument(
        "tokenizer", type=parse_folder, metavar="TOKENIZER", help="as for encode --tokenizer"
    )
    parser.add_argument("--pretokenizer", metavar="SCHEME", help="as for encode")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--text", help="text to cut into tokens")
    shown.add_argument(
        "--find",
        type=parse_text,
        metavar="TEXT",
        help="show the tokens that contain TEXT, with their ids",
    )
    shown.add_argument(
        "--id",
        type=whole_number(0),
        metavar="N",
        help="show the token with this id, and the merges that make it",
    )
    shown.add_argument("--all", action="store_true", help="show every token, by id")
    parser.add_argument(
        "--special-text",
        choices=("text", "allow"),
        default="text",
        help="text of a special token in --text: ordinary text (default), or the special token",
    )
    parser.add_argument(
        "--count",
        type=whole_number(),
        default=20,
        metavar="N",
        help="number of merges and tokens to show (default: 20)",
    )
