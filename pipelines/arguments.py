"""The command line's options: what each is called, takes and means.

Nothing here imports Beam, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import re

from bpe.errors import SettingsError
from bpe.version import __version__
from pipelines.read_options import INPUT_FORMATS, parse_separator

__all__ = ["EXPORT_FORMATS", "UsageError", "make_parser", "parse_size"]

EXPORT_FORMATS = ("hf", "megatron", "nanogpt", "llmc", "datatrove", "mds", "litdata", "npy")
"""What `export --to` takes; `pipelines.exports` has a class for each."""

_UNITS = {
    "": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")
_BEAM_NOTE = (
    "Every other option is handed to Apache Beam: --runner=PrismRunner, DaskRunner, FlinkRunner, "
    "DataflowRunner …; --direct_running_mode=multi_processing; --direct_num_workers=8. "
    "Without --runner the job runs in this process with a thread per core."
)


class UsageError(Exception):
    """The command line cannot be understood; the text says why (exit code 2)."""


def parse_size(text: str) -> int:
    """A number of bytes with an optional unit: '64MB' is 64,000,000; '64MiB' is 67,108,864.

    Raises:
        argparse.ArgumentTypeError: not a number, an unknown unit, or less than one byte.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found or found[2].lower().removesuffix("b") + "b" not in _UNITS | {"b": 1}:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500000, 64MB or 1GiB")
    unit = found[2].lower()
    factor = _UNITS.get(unit) or _UNITS.get(f"{unit}b") or 1
    size = int(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is at least one byte")
    return size


def parse_vocab_sizes(text: str) -> list[int]:
    """One vocabulary size or several with commas, in ascending order: '512,1024' -> [512, 1024].

    Raises:
        argparse.ArgumentTypeError: something else.
    """
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor numbers with commas between them"
        ) from None


def _separator(text: str) -> bytes:
    try:
        return parse_separator(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _fraction(text: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1, such as 0.01")
    return fraction


def _folder(text: str) -> str:
    """A path or address as the file layer takes it: `file:///a/b` is the local /a/b."""
    return text.removeprefix("file://")


def _add_input(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    add = group.add_argument
    add(
        "--input",
        nargs="+",
        action="extend",
        metavar="GLOB",
        default=[],
        help="files, folders or patterns, quoted; .gz, .zst, .bz2 and .xz are read as what they "
        "hold",
    )
    add(
        "--input-list",
        type=_folder,
        nargs="+",
        action="extend",
        metavar="FILE",
        default=[],
        help="files that name inputs as --input does, one a line",
    )
    add(
        "--input-format",
        choices=INPUT_FORMATS,
        default="auto",
        help="auto: .jsonl, .ndjson, .csv, .tsv, .parquet, .arrow and .feather by name, everything "
        "else text (a file is one document); lines: a line is a document",
    )
    add(
        "--document-separator",
        type=_separator,
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
        type=parse_size,
        default=4 << 20,
        metavar="SIZE",
        help="uncompressed files are cut into ranges of this size (default: 4MiB)",
    )
    add(
        "--max-row-bytes",
        type=parse_size,
        default=256 << 20,
        metavar="SIZE",
        help="a row longer than this is a bad record (default: 256MiB)",
    )
    _add_policies(group)


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
    add("--max-bad-records", type=int, metavar="N", help="stop once more than N rows are skipped")
    add(
        "--empty",
        choices=("keep", "drop"),
        default="keep",
        help="documents without text: keep as rows without ids (default), or leave out",
    )


def _add_special_text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--special-text",
        choices=("text", "allow", "reject"),
        default="text",
        help="special tokens spelled out in documents: ordinary text (default), the special token, "
        "or an error",
    )


def _add_overwrite(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--overwrite", action="store_true", help="start again in a used folder")


def _add_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--vocab-size",
        type=parse_vocab_sizes,
        required=True,
        metavar="N[,N…]",
        help="entries of the vocabulary: 256 bytes + merges + special tokens; several sizes give "
        "one folder each from one training",
    )
    add(
        "--output",
        type=_folder,
        required=True,
        metavar="DIR",
        help="folder of the tokenizer and its counts",
    )
    add(
        "--pretokenizer",
        metavar="SCHEME",
        help="gpt2 (default), cl100k, o200k, llama3, qwen2, whitespace, none (merges cross "
        "everything), or regex:PATTERN",
    )
    add(
        "--tie-order",
        choices=("hf", "id", "bytes", "first"),
        default="hf",
        help="which of two equally frequent pairs is merged first (default: hf, as tokenizers)",
    )
    add(
        "--min-frequency",
        type=int,
        default=2,
        metavar="N",
        help="stop when no pair occurs N times (default: 2)",
    )
    add("--max-token-bytes", type=int, metavar="N", help="make no token longer than N bytes")
    _add_train_extras(parser)
    _add_overwrite(parser)
    _add_input(parser)


def _add_train_extras(parser: argparse.ArgumentParser) -> None:
    """Special tokens, and what else goes into a training or bounds it."""
    add = parser.add_argument
    add(
        "--special-token",
        action="append",
        default=[],
        metavar="TOKEN",
        help="add a special token, such as '<|endoftext|>'; may be repeated",
    )
    _add_special_text(parser)
    add(
        "--from-counts",
        type=_folder,
        metavar="DIR|FILE",
        help="train on the counts of an earlier run (OUTPUT/counts), or on an Arrow IPC file with "
        "columns word and count (give --pretokenizer: the file does not name it)",
    )
    add(
        "--golden",
        type=_folder,
        metavar="FILE",
        help="texts whose ids are stored with the tokenizer and checked whenever it is loaded",
    )
    add(
        "--driver-memory",
        type=parse_size,
        metavar="SIZE",
        help="refuse a training that needs more than this (default: half of this machine's)",
    )


def _add_encode(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--tokenizer",
        type=_folder,
        required=True,
        metavar="DIR|FILE",
        help="a trained folder, a .tiktoken file, a tokenizer.json, or a folder with vocab.json "
        "and merges.txt",
    )
    add("--pretokenizer", metavar="SCHEME", help="the scheme of a file that does not name it")
    add("--output", type=_folder, required=True, metavar="DIR", help="folder of the shards")
    add("--append-eos", metavar="TOKEN|ID", help="put this token after each document")
    add("--prepend-bos", metavar="TOKEN|ID", help="put this token before each document")
    add(
        "--shard-bytes",
        type=parse_size,
        default=256 << 20,
        metavar="SIZE",
        help="begin another shard after so much text of a unit (default: 256MiB)",
    )
    add(
        "--max-row-tokens",
        type=int,
        default=1 << 24,
        metavar="N",
        help="a longer document continues in the next row (default: 2^24)",
    )
    _add_special_text(parser)
    _add_overwrite(parser)
    _add_layout(parser)
    _add_input(parser)


def _add_layout(parser: argparse.ArgumentParser) -> None:
    """How the encoded documents are laid out: packed, shuffled, split, compressed."""
    add = parser.add_argument_group("layout").add_argument
    add(
        "--pack",
        type=int,
        metavar="N",
        help="rows of exactly N ids, with the documents' borders in columns beside",
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
        help="concat: fill the last row of each unit of the plan up (default), or leave it out",
    )
    add("--pad-id", metavar="TOKEN|ID", help="fills rows up (default: that of --append-eos)")
    add(
        "--shuffle",
        choices=("none", "shard", "global"),
        default="none",
        help="order of documents: of the input (default), random within each shard, or random "
        "over the whole input (needs as much space again while it works)",
    )
    add(
        "--split",
        metavar="NAME=SHARE,…",
        help="divide documents by a hash of their id, such as train=0.99,validation=0.01; each "
        "split is a folder below --output",
    )
    add("--seed", type=int, default=0, metavar="N", help="of --shuffle and --split (default: 0)")
    add(
        "--compression",
        choices=("none", "lz4", "zstd"),
        default="none",
        help="of the shards' buffers (default: none, which can be mapped into memory as it is)",
    )


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    add = parser.add_argument
    add("--sample-rows", type=int, default=3, metavar="N", help="documents to show (default: 3)")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", type=_folder, metavar="DIR", help="an encoded or a trained folder"
    )
    parser.add_argument("--full", action="store_true", help="encode every row again, not a sample")


def _add_export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", type=_folder, metavar="DIR", help="an encoded folder")
    add("--to", required=True, choices=EXPORT_FORMATS, help="whose format; see the README")
    add("--output", type=_folder, required=True, metavar="DIR", help="folder of the new files")
    add("--append-eos", metavar="TOKEN|ID", help="put this token after each document")
    add("--prepend-bos", metavar="TOKEN|ID", help="put this token before each document")
    add(
        "--dtype",
        choices=("uint16", "uint32", "int32", "int64"),
        help="integer type of the ids (default: the smallest that the format has for this "
        "vocabulary; mds with --block-size: int32)",
    )
    add(
        "--block-size",
        type=_positive,
        metavar="N",
        help="litdata: block_size of its TokensLoader (required); mds: samples of N ids each "
        "instead of documents",
    )
    add(
        "--tokens-per-file",
        type=_positive,
        metavar="N",
        help="llmc: ids in a file (default: 100000000); datatrove: begin another file after so "
        "many (default: one file)",
    )
    add(
        "--val-fraction",
        type=_fraction,
        metavar="F",
        help="nanogpt, llmc: hold out this part of the documents for validation",
    )
    add("--name", help="megatron, llmc: first part of the files' names (default: tokens)")
    _add_overwrite(parser)


def _add_head(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=_folder, metavar="DIR", help="an encoded folder")
    parser.add_argument("--rows", type=int, default=5, metavar="N", help="rows (default: 5)")


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "tokenizer", type=_folder, metavar="TOKENIZER", help="as for encode --tokenizer"
    )
    parser.add_argument("--pretokenizer", metavar="SCHEME", help="as for encode")
    parser.add_argument("--text", help="show how this text is cut into tokens")
    parser.add_argument(
        "--count", type=int, default=20, metavar="N", help="merges and tokens to show (default: 20)"
    )


_COMMANDS = {
    "train": ("learn a vocabulary from a corpus", _add_train, True),
    "encode": ("turn a corpus into Arrow shards of token ids", _add_encode, True),
    "verify": ("check a finished output against its manifest", _add_verify, False),
    "export": ("write an encoded folder in another trainer's format", _add_export, False),
    "plan": ("show what a job would read, without running it", _add_plan, False),
    "head": ("show the first rows of an encoded folder as text", _add_head, False),
    "inspect": ("look into a tokenizer", _add_inspect, False),
}
BEAM_COMMANDS = frozenset(name for name, (_, _, beam) in _COMMANDS.items() if beam)
"""Commands that hand options which they do not know to Beam."""


def make_parser() -> argparse.ArgumentParser:
    """The parser of `beam-bpe`, with one subparser per command."""
    parser = argparse.ArgumentParser(
        prog="beam-bpe",
        description="Exact byte-level BPE training and tokenization of large corpora on Beam.",
        epilog="Sizes take units: 64MB is 64,000,000 bytes, 64MiB is 67,108,864. "
        "The same command again resumes. Exit codes: 0 done, 1 error, 2 wrong usage.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"beam-bpe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_arguments, takes_beam_options) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=_BEAM_NOTE if takes_beam_options else None,
            allow_abbrev=False,
        )
        add_arguments(command)
    return parser
