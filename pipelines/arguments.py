"""The command line's options: what each is called, takes and means.

Nothing here imports Beam, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse

from bpe.errors import SettingsError
from bpe.version import __version__
from pipelines.argument_types import parse_budget, parse_sample, parse_size, parse_vocab_sizes
from pipelines.presets import PRESETS
from pipelines.read_options import parse_separator
from pipelines.rounds.options import ENGINES, SegmentBudget

__all__ = ["UsageError", "make_parser", "parse_size", "parse_vocab_sizes"]

_BEAM_NOTE = (
    "Every other option is handed to Apache Beam: --runner=PrismRunner, DaskRunner, FlinkRunner, "
    "DataflowRunner …; --direct_running_mode=multi_processing; --direct_num_workers=8. "
    "Without --runner the job runs in this process with a thread per core."
)


class UsageError(Exception):
    """The command line cannot be understood; the text says why (exit code 2)."""


def _separator(text: str) -> bytes:
    try:
        return parse_separator(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _folder(text: str) -> str:
    """A path or address as the file layer takes it: `file:///a/b` is the local /a/b."""
    return text.removeprefix("file://")


def _add_input(parser: argparse.ArgumentParser, *, required: bool) -> None:
    group = parser.add_argument_group("input")
    add = group.add_argument
    add(
        "--input",
        nargs="+",
        action="extend",
        metavar="GLOB",
        required=required,
        default=[],
        help="files or patterns, quoted; .gz and .zst are read as what they hold",
    )
    add(
        "--input-format",
        choices=("auto", "text", "lines", "jsonl"),
        default="auto",
        help="auto: .jsonl and .ndjson by name, everything else text (a file is one document); "
        "lines: a line is a document",
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
        help="JSONL: the field with the text, dots for nested ones (default: text)",
    )
    add("--id-field", metavar="NAME", help="JSONL: the field with the document's id")
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
        help="which of two equally frequent pairs is merged first (default: hf, as tokenizers)",
    )
    add(
        "--min-frequency",
        type=int,
        metavar="N",
        help="stop when no pair occurs N times (default: 2)",
    )
    add("--max-token-bytes", type=int, metavar="N", help="make no token longer than N bytes")
    add(
        "--preset",
        choices=tuple(PRESETS),
        help="settings by the name of what they reproduce: feste (no pre-tokenizer, tie order "
        "bytes, no minimum frequency), superbpe (with --superbpe-from: the published patterns)",
    )
    add(
        "--superbpe-from",
        type=int,
        metavar="N",
        help="train in two stages: N merges inside words, then merges across them, of at most "
        "four words and without a colon and a space in it",
    )
    _add_train_extras(parser)
    _add_overwrite(parser)
    _add_input(parser, required=False)


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
        help="train in rounds what needs more than this on the driver (default: half of this "
        "machine's)",
    )
    _add_rounds(parser)


def _add_rounds(parser: argparse.ArgumentParser) -> None:
    """Training in merge rounds, and the sample that training without a pre-tokenizer takes."""
    add = parser.add_argument_group("training without a pre-tokenizer, and in rounds").add_argument
    add(
        "--sample-bytes",
        type=parse_sample,
        metavar="SIZE|all",
        help="--pretokenizer none: train on about so much of the text, drawn evenly from all of it "
        "(default: all up to 1GiB, and 1GiB of more)",
    )
    add("--sample-seed", type=int, default=0, metavar="N", help="draw another sample (default: 0)")
    add(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="where merges are chosen: on the driver, or in rounds over all workers, which gives "
        "the same merges (default: on the driver if its memory allows)",
    )
    add(
        "--state-shards",
        type=int,
        metavar="N",
        help="rounds: spread the state over about N files (default: by its size)",
    )
    add(
        "--segment-budget",
        type=parse_budget,
        default=SegmentBudget(),
        metavar="SIZE|PERCENT%",
        help="rounds: send so much to the driver a round, also as a share of the text; more makes "
        "fewer rounds (default: 1%%, at least 1MiB)",
    )
    add(
        "--shard-segment-cap",
        type=parse_size,
        metavar="SIZE",
        help="rounds: let no shard send more (default: the budget, at most 8MiB)",
    )
    add(
        "--rounds-per-job",
        type=int,
        default=1,
        metavar="R",
        help="rounds: chain R rounds in one pipeline, for runners where starting a job takes "
        "minutes (default: 1)",
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
    _add_input(parser, required=True)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_input(parser, required=True)
    add = parser.add_argument
    add("--sample-rows", type=int, default=3, metavar="N", help="documents to show (default: 3)")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", type=_folder, metavar="DIR", help="an encoded or a trained folder"
    )
    parser.add_argument("--full", action="store_true", help="encode every row again, not a sample")


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
