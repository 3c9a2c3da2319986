"""The options of the command line: names, types and help texts.

Nothing here imports Beam, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import difflib
import shlex
from typing import Any, NoReturn

from bpe.recipes.registry import RECIPES
from bpe.version import __version__
from pipelines.cli.argument_types import (
    parse_budget,
    parse_folder,
    parse_sample,
    parse_size,
    parse_vocab_sizes,
    whole_number,
)
from pipelines.cli.encode_arguments import add_encode, add_plan
from pipelines.cli.input_arguments import add_input, add_overwrite, add_special_text
from pipelines.cli.output_arguments import add_export, add_head, add_inspect, add_verify
from pipelines.cli.text_arguments import add_decode, add_encode_text
from pipelines.runners.exit_codes import EXIT_CODES_NOTE
from pipelines.storage.wording import shown_value
from pipelines.training.presets import PRESETS
from pipelines.training.rounds.options import (
    ENGINES,
    MOST_ROUNDS_PER_JOB,
    MOST_STATE_SHARDS,
    SegmentBudget,
)

__all__ = ["UsageError", "make_parser"]

_BEAM_NOTE = (
    "All other options go to Apache Beam: --runner=PrismRunner, DaskRunner, FlinkRunner, "
    "DataflowRunner …; --direct_running_mode=multi_processing; --direct_num_workers=8. "
    "Without --runner, the job runs in this process with a thread per core."
)


class UsageError(Exception):
    """A command line that cannot be read; the text says why (exit code 2)."""


def _add_train(parser: argparse.ArgumentParser) -> None:
    size = parser.add_mutually_exclusive_group().add_argument
    size(
        "--vocab-size",
        type=parse_vocab_sizes,
        metavar="N[,N…]",
        help="size of the vocabulary: 256 bytes, merges and special tokens (32k is 32,000, 32Ki "
        "is 32,768); one training makes several sizes, with a folder for each",
    )
    size(
        "--merges",
        type=parse_vocab_sizes,
        metavar="N[,N…]",
        help="how many merges to make, in place of --vocab-size",
    )
    add = parser.add_argument
    add(
        "--recipe",
        choices=tuple(RECIPES),
        help="kind of vocabulary (default: bpe, byte-level BPE)",
    )
    add(
        "--output",
        type=parse_folder,
        required=True,
        metavar="DIR",
        help="folder of the tokenizer and its counts",
    )
    add(
        "--pretokenizer",
        metavar="SCHEME",
        help="gpt2 (default), cl100k, o200k, llama3, qwen2, deepseek-v3, qwen3.5, tekken, "
        "starcoder, bloom, kimi, whitespace, superbpe (merges cross words within a line), none "
        "(merges cross everything), or regex:PATTERN",
    )
    add(
        "--digits",
        choices=("single", "left3", "right3"),
        help="set numbers apart before the pre-tokenizer: each digit (single), or three of them "
        "from the left or from the right of a number",
    )
    _add_merge_rules(parser)
    _add_recipe_options(parser)
    _add_train_extras(parser)
    add_overwrite(parser)
    add_input(parser)


def _add_merge_rules(parser: argparse.ArgumentParser) -> None:
    """Which merges are made, by themselves or as published; None where they are not given."""
    add = parser.add_argument
    add(
        "--tie-order",
        choices=tuple(dict.fromkeys(o for each in RECIPES.values() for o in each.tie_orders)),
        help="which of two equally frequent pairs is merged first (default: hf, as tokenizers)",
    )
    add(
        "--min-frequency",
        type=whole_number(),
        metavar="N",
        help="stop when no pair occurs N times (default: 2)",
    )
    add(
        "--max-token-bytes",
        type=whole_number(),
        metavar="N",
        help="never make a token longer than N bytes",
    )
    add(
        "--preset",
        choices=tuple(PRESETS),
        help="settings of a published recipe; beam-bpe presets shows what each sets. A size, "
        "special tokens and options that are given besides count",
    )
    add(
        "--extend",
        type=parse_folder,
        metavar="DIR|FILE",
        help="go on from this tokenizer of byte-level BPE, as --tokenizer of encode: merges and "
        "ids stay, and --vocab-size counts its tokens too",
    )
    add(
        "--superbpe-from",
        type=whole_number(most=2**32),
        metavar="N",
        help="train in two stages: N merges inside words, then merges across words; a token has at "
        "most four words, and never a colon and then a space",
    )


def _add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Options of single recipes; None where they are not given."""
    add = parser.add_argument_group("other recipes than bpe").add_argument
    add(
        "--end-mark",
        choices=("attached", "separate"),
        help="sennrich: the mark of a word's end belongs to its last character (default, "
        "subword-nmt 0.2), or is a symbol of its own (the paper, subword-nmt 0.1)",
    )
    add(
        "--limit-alphabet",
        type=whole_number(),
        metavar="N",
        help="wordpiece: keep the N most frequent characters; words with others are not trained on",
    )
    add(
        "--max-word-chars",
        type=whole_number(),
        metavar="N",
        help="wordpiece: a longer word is [UNK] (default: 100)",
    )
    _add_unigram_options(parser)


def _add_unigram_options(parser: argparse.ArgumentParser) -> None:
    """Options of sentencepiece's trainer, under its own names."""
    add = parser.add_argument_group("recipe unigram, as sentencepiece has them").add_argument
    for name, help_text in (
        ("--byte-fallback", "pieces for all bytes, for characters that are new (takes 256 pieces)"),
        ("--split-by-unicode-script", "no piece crosses from one script to another (default: yes)"),
        ("--split-by-number", "no piece has both digits and letters (default: yes)"),
        ("--split-digits", "each digit is a piece"),
    ):
        add(name, action=argparse.BooleanOptionalAction, default=None, help=help_text)
    add(
        "--user-defined-symbol",
        dest="user_defined_symbols",
        action="append",
        metavar="TEXT",
        help="a text that is one piece wherever it stands; may be repeated",
    )
    add(
        "--max-sentencepiece-length",
        type=whole_number(2, 512),
        metavar="N",
        help="most characters of a piece (default: 16)",
    )
    add(
        "--seed-sentencepiece-size",
        type=whole_number(),
        metavar="N",
        help="how many pieces training starts from (default: 1,000,000)",
    )
    add(
        "--num-threads",
        type=whole_number(most=1024),
        metavar="N",
        help="threads of training (default: 1); another number can give other pieces",
    )
    add(
        "--max-words",
        type=whole_number(),
        metavar="N",
        help="train on the N most frequent words (default: all)",
    )


def _add_train_extras(parser: argparse.ArgumentParser) -> None:
    """Special tokens, counts to start from, golden texts, memory."""
    add = parser.add_argument
    add(
        "--special-token",
        action="append",
        default=[],
        metavar="TOKEN",
        help="add a special token, such as '<|endoftext|>'; may be repeated",
    )
    add_special_text(parser)
    add(
        "--from-counts",
        type=parse_folder,
        metavar="DIR|FILE",
        help="train on the counts of an earlier run (OUTPUT/counts), or on an Arrow IPC file with "
        "the columns word and count (give --pretokenizer too: the file does not name it)",
    )
    add(
        "--golden",
        type=parse_folder,
        metavar="FILE",
        help="texts to store with the tokenizer, with their ids; every load checks them",
    )
    add(
        "--driver-memory",
        type=parse_size,
        metavar="SIZE",
        help="train in rounds if training on the driver needs more than this (default: half of "
        "this machine's memory)",
    )
    _add_rounds(parser)


def _add_rounds(parser: argparse.ArgumentParser) -> None:
    """Training in merge rounds, and samples for training without a pre-tokenizer."""
    add = parser.add_argument_group("training without a pre-tokenizer, and in rounds").add_argument
    add(
        "--sample-bytes",
        type=parse_sample,
        metavar="SIZE|all",
        help="--pretokenizer none: train on a sample of about this size, drawn evenly from all of "
        "the text (default: 1GiB, or all of a smaller text)",
    )
    add(
        "--sample-seed",
        type=whole_number(-(2**63)),
        default=0,
        metavar="N",
        help="seed of the sample (default: 0)",
    )
    add(
        "--engine",
        choices=ENGINES,
        default="auto",
        help="where to train: on the driver, or in rounds over all workers; the merges are the "
        "same (default: auto, on the driver if its memory allows)",
    )
    add(
        "--state-shards",
        type=whole_number(most=MOST_STATE_SHARDS),
        metavar="N",
        help="rounds: spread the state over about N files (default: by its size)",
    )
    add(
        "--segment-budget",
        type=parse_budget,
        default=SegmentBudget(),
        metavar="SIZE|PERCENT%",
        help="rounds: the most to send to the driver in a round, as a size or a share of the "
        "text; a larger budget makes fewer rounds (default: 1%%, at least 1MiB)",
    )
    add(
        "--shard-segment-cap",
        type=parse_size,
        metavar="SIZE",
        help="rounds: the most that one shard sends (default: the budget, at most 8MiB)",
    )
    add(
        "--rounds-per-job",
        type=whole_number(most=MOST_ROUNDS_PER_JOB),
        default=1,
        metavar="R",
        help="rounds: chain R rounds in one pipeline, for runners that take minutes to start a job "
        "(default: 1)",
    )


_STORAGE_NOTE = "Apache Beam's options for storage work too: --s3_region_name=…, --hdfs_host=…"


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """No options."""
    del parser


_COMMANDS = {
    "train": ("learn a vocabulary from a corpus", _add_train, _BEAM_NOTE),
    "encode": ("turn a corpus into Arrow shards of token ids", add_encode, _BEAM_NOTE),
    "verify": ("check a finished output against its manifest", add_verify, _STORAGE_NOTE),
    "export": ("write an encoded folder in another trainer's format", add_export, _STORAGE_NOTE),
    "presets": ("show the presets of train, and what each sets", _add_nothing, None),
    "plan": ("show what a job would read, without running it", add_plan, _STORAGE_NOTE),
    "head": ("show the first rows of an encoded folder as text", add_head, _STORAGE_NOTE),
    "inspect": ("show a tokenizer, or how it cuts a text into tokens", add_inspect, None),
    "encode-text": ("turn standard input into token ids", add_encode_text, None),
    "decode": ("turn token ids on standard input back into text", add_decode, None),
}
BEAM_COMMANDS = frozenset(name for name, (_, _, more) in _COMMANDS.items() if more == _BEAM_NOTE)
"""Commands that pass unknown options to Beam."""
STORAGE_COMMANDS = frozenset(
    name for name, (_, _, more) in _COMMANDS.items() if more == _STORAGE_NOTE
)
"""Commands that run no job, but take Beam's options for its file systems."""
PRINTING_COMMANDS = frozenset({"decode", "encode-text", "head", "inspect", "plan", "presets"})
"""Commands that only print."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but refuse a second value of an option that takes one."""
        self._words = list(args or ())
        parsed, rest = super().parse_known_args(args, namespace)
        self._refuse_second_value(rest)
        if "vocab_size" in parsed:
            self._need_size(parsed)
        return parsed, rest

    def _need_size(self, parsed: argparse.Namespace) -> None:
        """Raise `UsageError` for `train` without a size, which some presets have."""
        has_size = parsed.preset is not None and PRESETS[parsed.preset].has_size
        if parsed.vocab_size is None and parsed.merges is None and not has_size:
            self.error("one of the arguments --vocab-size --merges is required")

    def _refuse_second_value(self, rest: list[str]) -> None:
        """Raise `UsageError` for `--special-token A B`, whose B belongs to nothing."""
        words = self._words
        for index, word in enumerate(words):
            if word.startswith("-") or words.count(word) > rest.count(word):
                continue
            given = words[max(0, index - 2) : index]
            if given and given[-1].startswith("--") and "=" in given[-1]:
                given = given[-1].split("=", 1)
            action = self._option_string_actions.get(given[0]) if len(given) > 1 else None
            if action is None or action.nargs is not None:
                continue
            option, value = given[0], shlex.quote(given[1])
            remedy = "quote a value with blanks"
            if isinstance(action.default, list):  # it may be repeated
                remedy = f"write {option} {value} {option} {shlex.quote(word)}"
            self.error(f"{option} takes one value, but {shown_value(word)} follows; {remedy}")

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`; names a misspelt option that stands for a required one."""
        if message.startswith(("the following arguments are req", "one of the arguments")):
            for word in self._words:
                option = word.split("=", 1)[0]
                close = difflib.get_close_matches(option, self._option_string_actions, n=1)
                if option.startswith("--") and option not in self._option_string_actions and close:
                    raise UsageError(f"{option}: unknown option; did you mean {close[0]}?")
        command = self.prog.removeprefix("beam-bpe").strip()
        place = f"{command}: " if command else ""
        raise UsageError(f"{place}{message.removeprefix('argument ')}")


def make_parser() -> argparse.ArgumentParser:
    """The parser of `beam-bpe`, with a subparser for each command; raises `UsageError`."""
    parser = _Parser(
        prog="beam-bpe",
        description="Exact byte-level BPE training and tokenization of large corpora on Beam.",
        epilog="Sizes take units: 64MB is 64,000,000 bytes, 64MiB is 67,108,864. "
        f"Run a command again to resume it. {EXIT_CODES_NOTE}",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"beam-bpe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_arguments, more_options) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=" ".join(filter(None, (more_options, EXIT_CODES_NOTE))),
            allow_abbrev=False,
        )
        add_arguments(command)
    return parser
