"""Options of `beam-bpe encode` and `beam-bpe plan`."""

from __future__ import annotations

import argparse

from pipelines.cli.argument_types import parse_cut_size, parse_folder, parse_split, whole_number
from pipelines.cli.input_arguments import add_input, add_overwrite, add_special_text

__all__ = ["add_encode", "add_plan"]


def add_encode(parser: argparse.ArgumentParser) -> None:
    """Tokenizer, output, BOS and EOS, rows, layout, inputs."""
    add = parser.add_argument
    add(
        "--tokenizer",
        type=parse_folder,
        required=True,
        metavar="DIR|FILE",
        help="a trained folder, a .tiktoken file, a tokenizer.json, a folder with vocab.json and "
        "merges.txt, or a preset of bytes: bytes, byt5, blt or hnet",
    )
    add("--pretokenizer", metavar="SCHEME", help="scheme of a tokenizer file that does not name it")
    add("--output", type=parse_folder, required=True, metavar="DIR", help="folder of the shards")
    add("--append-eos", metavar="TOKEN|ID", help="put this token after each document")
    add("--prepend-bos", metavar="TOKEN|ID", help="put this token before each document")
    add(
        "--shard-bytes",
        type=parse_cut_size,
        default=256 << 20,
        metavar="SIZE",
        help="start another shard after this much text of a unit (default: 256MiB, at least 1KiB)",
    )
    add(
        "--max-row-tokens",
        type=whole_number(most=2**31 - 1),
        default=1 << 24,
        metavar="N",
        help="longest row; a longer document continues in the next row (default: 2^24)",
    )
    add_special_text(parser)
    add_overwrite(parser)
    _add_layout(parser)
    add_input(parser)


def _add_layout(parser: argparse.ArgumentParser) -> None:
    """Layout of the encoded documents: packed, shuffled, split, compressed."""
    add = parser.add_argument_group("layout").add_argument
    add(
        "--pack",
        type=whole_number(most=2**26),
        metavar="N",
        help="make rows of exactly N ids; other columns hold the borders of documents",
    )
    add(
        "--pack-mode",
        choices=("concat", "best-fit", "pad"),
        help="concat: one document after another, cut where a row is full (default); best-fit: "
        "whole documents where they fit best; pad: each document in rows of its own",
    )
    add(
        "--pack-tail",
        choices=("pad", "drop"),
        help="concat: pad the last row of each unit of the plan (default), or leave it out",
    )
    add("--pad-id", metavar="TOKEN|ID", help="token that pads rows (default: that of --append-eos)")
    add(
        "--shuffle",
        choices=("none", "shard", "global"),
        default="none",
        help="order of documents: as in the input (default), random within each shard, or random "
        "over the whole input (needs the output's size again on storage while it works)",
    )
    add(
        "--split",
        type=parse_split,
        default=(),
        metavar="NAME=SHARE,…",
        help="divide documents by a hash of their id, for example train=0.99,validation=0.01; each "
        "split gets a folder below --output",
    )
    add(
        "--seed",
        type=whole_number(-(2**63)),
        default=0,
        metavar="N",
        help="seed of --shuffle and --split (default: 0)",
    )
    add(
        "--compression",
        choices=("none", "lz4", "zstd"),
        default="none",
        help="compression of the shards' buffers (default: none; such shards can be mapped into "
        "memory)",
    )


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Inputs, and how many documents to show."""
    add_input(parser)
    add = parser.add_argument
    add(
        "--sample-rows",
        type=whole_number(),
        default=3,
        metavar="N",
        help="number of documents to show (default: 3)",
    )
