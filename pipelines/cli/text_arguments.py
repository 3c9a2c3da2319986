"""Options of the commands between standard input and output: encode-text and decode."""

from __future__ import annotations

import argparse

from pipelines.cli.argument_types import parse_folder, parse_size
from pipelines.cli.input_arguments import add_special_text

__all__ = ["add_decode", "add_encode_text"]


def add_encode_text(parser: argparse.ArgumentParser) -> None:
    """Which tokenizer, and what a document is."""
    _add_tokenizer(parser)
    add_special_text(parser)
    parser.add_argument(
        "--lines",
        action="store_true",
        help="each line, without its line feed, is a document, and gives a line of ids (default: "
        "all of standard input is one document)",
    )
    parser.add_argument(
        "--pieces",
        action="store_true",
        help="print pieces in place of ids, as subword-nmt does: 'piece@@ piece'; of a tokenizer "
        "that train --recipe sennrich made",
    )
    _add_limit(parser, "most text to keep in memory; a document of most tokenizers may be longer")


def add_decode(parser: argparse.ArgumentParser) -> None:
    """Which tokenizer, and what ends a document."""
    _add_tokenizer(parser)
    parser.add_argument(
        "--lines",
        action="store_true",
        help="write a line feed after each line of ids: the inverse of encode-text --lines "
        "(default: nothing stands between documents)",
    )
    _add_limit(parser, "most text of ids to keep in memory, where a tokenizer needs a whole line")


def _add_tokenizer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokenizer",
        type=parse_folder,
        required=True,
        metavar="DIR|FILE",
        help="as for encode: a trained folder, or a tokenizer file",
    )
    parser.add_argument("--pretokenizer", metavar="SCHEME", help="as for encode")


def _add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--max-row-bytes",
        type=parse_size,
        default=256 << 20,
        metavar="SIZE",
        help=f"{what} (default: 256MiB)",
    )
