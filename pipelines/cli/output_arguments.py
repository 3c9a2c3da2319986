"""Options of the commands that take a finished output: verify, export, head, inspect."""

from __future__ import annotations

import argparse

from pipelines.cli.argument_types import parse_folder, parse_fraction, whole_number
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
        help="an encoded, a trained or an exported folder",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="encode the text of every row again that stands alone, not of a sample",
    )
    group = parser.add_argument_group(
        "encoding again",
        "With the input of encode, its units are encoded again in a temporary folder (TMPDIR), and "
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
    """Which folder, to which format, and the options of single formats."""
    add = parser.add_argument
    add("directory", type=parse_folder, metavar="DIR", help="an encoded folder")
    add("--to", required=True, choices=EXPORT_FORMATS, help="whose format; see the README")
    add("--output", type=parse_folder, required=True, metavar="DIR", help="folder of the new files")
    add("--append-eos", metavar="TOKEN|ID", help="put this token after each document")
    add("--prepend-bos", metavar="TOKEN|ID", help="put this token before each document")
    add(
        "--split",
        metavar="NAME",
        help="export this split of an output of encode --split (nanogpt, llmc: without it, train, "
        "with validation or val as what is held out)",
    )
    add(
        "--dtype",
        choices=("uint16", "uint32", "int32", "int64"),
        help="integer type of the ids (default: the smallest that the format has for this "
        "vocabulary; mds with --block-size: int32)",
    )
    add(
        "--block-size",
        type=whole_number(),
        metavar="N",
        help="litdata: block_size of its TokensLoader (required); mds: samples of N ids each "
        "instead of documents",
    )
    add(
        "--tokens-per-file",
        type=whole_number(),
        metavar="N",
        help="llmc: ids in a file (default: 100000000); datatrove: begin another file after so "
        "many (default: one file)",
    )
    add(
        "--val-fraction",
        type=parse_fraction,
        metavar="F",
        help="nanogpt, llmc: hold out this part of the documents for validation",
    )
    add("--name", help="megatron, llmc: first part of the files' names (default: tokens)")
    add_overwrite(parser)


def add_head(parser: argparse.ArgumentParser) -> None:
    """Which folder, which split of it, and how many rows."""
    parser.add_argument("directory", type=parse_folder, metavar="DIR", help="an encoded folder")
    parser.add_argument(
        "--split",
        metavar="NAME",
        help="of an output of encode --split, show this split (default: the first that has rows)",
    )
    parser.add_argument(
        "--rows", type=whole_number(), default=5, metavar="N", help="rows (default: 5)"
    )


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Which tokenizer, and what to show of it."""
    parser.add_argument(
        "tokenizer", type=parse_folder, metavar="TOKENIZER", help="as for encode --tokenizer"
    )
    parser.add_argument("--pretokenizer", metavar="SCHEME", help="as for encode")
    parser.add_argument("--text", help="show how this text is cut into tokens")
    parser.add_argument(
        "--special-text",
        choices=("text", "allow"),
        default="text",
        help="what special tokens in --text mean, as for encode (default: text)",
    )
    parser.add_argument(
        "--count",
        type=whole_number(),
        default=20,
        metavar="N",
        help="merges and tokens to show (default: 20)",
    )
