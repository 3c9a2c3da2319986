"""The command line's frame: sizes, usage errors, exit codes, quick start-up."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.version import __version__
from pipelines.cli import command_line
from pipelines.cli.argument_types import parse_size, parse_vocab_sizes
from pipelines.cli.arguments import make_parser
from pipelines.runners.progress import format_bytes
from pipelines.storage.wording import counted

Run = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500000", 500_000),
        ("64MB", 64_000_000),
        ("64MiB", 67_108_864),
        ("64 mb", 64_000_000),
        ("1.5GiB", 3 << 29),
        ("2k", 2000),
        ("1TB", 10**12),
        ("7B", 7),
    ],
)
def test_sizes_take_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-5", "5 apples", "0", "0.2", "1e6", "64Mi B"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_size(text)


@given(st.sets(st.integers(1, 10**6), min_size=1))
def test_vocabulary_sizes_are_sorted_and_distinct(sizes: set[int]) -> None:
    text = ",".join(map(str, [*sizes, *sizes]))
    assert parse_vocab_sizes(text) == sorted(sizes)


def test_vocabulary_sizes_take_thousands() -> None:
    assert parse_vocab_sizes("32Ki,1k, 32k,1000") == [1000, 32_000, 32_768]


@pytest.mark.parametrize("text", ["k", "32K", "1.5k", "32kb", "5000000k", "-1k", "0", "1,,2"])
def test_what_is_no_vocabulary_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_vocab_sizes(text)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "COMMAND"),
        (["nosuch"], "nosuch"),
        (["train", "--output", "x"], "--vocab-size"),
        (["train", "--vocab-size", "many", "--output", "x"], "'many'"),
        (["train", "--vocab-size", "9", "--output", "x", "--range-bytes", "1 mile"], "'1 mile'"),
        (["encode", "--input", "x"], "--tokenizer"),
        (["verify", "x", "--runner=PrismRunner"], "--runner=PrismRunner"),
        (["plan", "--input", "x", "--document-separator", ""], "--document-separator"),
        (["train", "--vocab-size", "300", "--output", "x", "--vocabsize", "9"], "--vocab-size"),
        (["train", "--vocab-size", "300", "--output", "x", "--nonsense=1"], "--nonsense=1"),
        (
            ["train", "--vocab-size", "9", "--special-token", "<a>", "<b>", "<c>", "--output", "x"],
            "'<b>' follows; write --special-token '<a>' --special-token '<b>'; see",
        ),
        (
            ["train", "--special-token=A", "B", "--vocab-size", "9", "--output", "x"],
            "write --special-token A --special-token B; see",
        ),
        (
            ["encode", "--tokenizer", "my", "file", "--input", "x", "--output", "x"],
            "--tokenizer takes one value, but 'file' follows; quote a value with blanks; see",
        ),
        (["inspect", "--count", "3", "one", "two"], "unknown argument two"),
    ],
)
def test_wrong_usage_is_named_and_gives_exit_code_2(
    arguments: list[str], expected: str, run: Run
) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert expected in outcome.err
    assert outcome.err.startswith("beam-bpe")
    assert outcome.err.endswith("--help\n")
    assert outcome.err.count("\n") == 1


def test_options_are_not_abbreviated() -> None:
    """An abbreviation of ours could be an option of Beam's."""
    arguments, rest = make_parser().parse_known_args(
        ["encode", "--input", "x", "--tokenizer", "t", "--output", "o", "--shard=1"]
    )
    assert rest == ["--shard=1"]
    assert arguments.shard_bytes == 256 << 20


def test_the_version_is_that_of_the_library(run: Run) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out) == (0, f"beam-bpe {__version__}\n")


def test_a_folder_of_several_sizes_is_told_from_a_tokenizer(
    tmp_path: Path, model_dir: Path, run: Run
) -> None:
    for size in ("300", "1000"):
        shutil.copytree(model_dir, tmp_path / "tok" / size)
    (tmp_path / "tok" / "counts").mkdir()
    refused = run("inspect", tmp_path / "tok")
    assert refused.code == 1
    folder = tmp_path / "tok"
    assert refused.err == (
        f"error: {folder} holds several sizes: give one of {folder}/300, {folder}/1000\n"
    )


@pytest.mark.parametrize(
    "command",
    ["train", "encode", "verify", "plan", "head", "inspect", "encode-text", "decode"],
)
def test_every_command_explains_itself(command: str, run: Run) -> None:
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert outcome.out.startswith(f"usage: beam-bpe {command}")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], {"apache_beam", "pyarrow", "numpy"}),
        (["train", "--help"], {"apache_beam", "pyarrow", "numpy"}),
        (["inspect", "MODEL", "--text", "the and"], {"apache_beam"}),
    ],
)
def test_commands_import_only_what_they_need(
    arguments: list[str], absent: set[str], model_dir: Path
) -> None:
    filled = [str(model_dir) if each == "MODEL" else each for each in arguments]
    code = (
        "import sys\nfrom pipelines.cli import command_line\n"
        f"try:\n    command_line.main({filled!r})\nexcept SystemExit:\n    pass\n"
        f"sys.exit(not {absent!r}.isdisjoint(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_commands_do_without_pandas_and_leave_it_to_others() -> None:
    pytest.importorskip("pandas")
    code = (
        "import gc, sys\nfrom pipelines.cli.quick_imports import import_command\n"
        "import_command('encode')\nimport pyarrow as pa\npa.array([1, None])\n"
        "assert 'pandas' not in sys.modules\nassert gc.isenabled() and gc.get_freeze_count()\n"
        "import pandas\nassert pandas.DataFrame({'a': [1]}).size == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_inspect_shows_pieces_merges_and_long_tokens(model_dir: Path, run: Run) -> None:
    pieces = run("inspect", model_dir, "--text", "the and")
    assert pieces.code == 0
    assert "'he'" in pieces.out
    special = run("inspect", model_dir, "--text", "a<|endoftext|>", "--special-text", "allow")
    assert special.out.splitlines() == [
        "2 tokens: 64 261",
        "      64  'a'",
        "     261  '<|endoftext|>'",
    ]
    overview = run("inspect", model_dir, "--count", 3)
    assert "' ' + 't' = ' t'" in overview.out
    assert "'<|endoftext|>' = 261" in overview.out
    assert "4 bytes  ' the'" in overview.out


def test_inspect_finds_tokens(model_dir: Path, run: Run) -> None:
    he, special = "     257  'he'", "     261  '<|endoftext|>'"
    assert run("inspect", model_dir, "--find", "he").out.splitlines() == [he, "     258  ' the'"]
    assert run("inspect", model_dir, "--find", "end").out.splitlines() == [special]
    assert run("inspect", model_dir, "--find", "\udcff").out.splitlines() == [r"     187  b'\xff'"]
    assert run("inspect", model_dir, "--find", "no such").out == ""
    shown = run("inspect", model_dir, "--all").out.splitlines()
    assert len(shown) == 262
    assert shown[0] == "       0  '!'"
    assert shown[257:] == [he, "     258  ' the'", *shown[259:261], special]


def test_inspect_shows_one_token(model_dir: Path, run: Run) -> None:
    assert run("inspect", model_dir, "--id", 258).out.splitlines() == [
        "     258  ' the'  4 bytes",
        "merge of rank 2: 256 + 257, ' t' + 'he'",
    ]
    assert run("inspect", model_dir, "--id", 261).out.splitlines() == [
        "     261  '<|endoftext|>'  13 bytes",
        "special token",
    ]
    refused = run("inspect", model_dir, "--id", 262)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: id 262 is no id of this vocabulary (262 ids, ")
    assert run("inspect", model_dir, "--id", 1, "--all").code == 2
    assert "--find: '' is empty" in run("inspect", model_dir, "--find", "").err


def test_plan_shows_files_units_and_documents(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "first words"}\n{"text": "others"}\n')
    (tmp_path / "_hidden.txt").write_text("x")
    outcome = run("plan", "--input", tmp_path / "*")
    assert outcome.code == 0, outcome.err
    assert "a.jsonl" in outcome.out
    assert "'first words'" in outcome.out
    assert "_hidden.txt" in outcome.err


def test_head_shows_rows_as_text(model_dir: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("the and\nanother\n")
    output = tmp_path / "out"
    command = ("encode", "--input", source, "--input-format", "lines", "--tokenizer", model_dir)
    assert run(*command, "--output", output).code == 0
    shown = run("head", output, "--rows", 1)
    assert "'the and'" in shown.out
    assert "another" not in shown.out


def test_an_error_of_ours_is_one_line_and_exit_code_1(tmp_path: Path, run: Run) -> None:
    outcome = run("head", tmp_path)
    assert outcome.code == 1
    assert outcome.err.startswith("error: ")
    assert "holds no output of beam-bpe" in outcome.err
    assert outcome.err.count("\n") == 1


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    codes: list[int] = []
    monkeypatch.setattr(command_line, "run", interrupt)
    monkeypatch.setattr(command_line.os, "_exit", codes.append)
    command_line.main([])
    assert codes == [130]
    assert "same command again" in capsys.readouterr().err


def test_nouns_agree_with_their_numbers(tmp_path: Path, model_dir: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("a")
    output, given = tmp_path / "out", ("--input", source, "--tokenizer", model_dir)
    layout = ("--pack", 2, "--pad-id", 0, "--split", "x=1")
    missing = tmp_path / "b.txt"
    missing.write_text("b")
    told = [
        run("encode", *given, "--output", output),
        run("verify", output),
        run("head", output),
        run("encode", *given, *layout, "--output", tmp_path / "packed"),
        run("verify", tmp_path / "packed"),
        run("head", tmp_path / "packed"),
        run("export", output, "--to", "hf", "--output", tmp_path / "hf"),
        run("inspect", model_dir, "--text", "a"),
        run("inspect", model_dir, "--count", 1),
        run("plan", "--input", source),
        run("train", "--input", source, "--vocab-size", 300, "--output", tmp_path / "tok"),
        run("verify", tmp_path / "tok"),
        run("encode", "--input", missing, "--tokenizer", model_dir, "--output", output),
    ]
    assert [each.code for each in told] == [0] * (len(told) - 1) + [1], told
    text = "".join(each.out + each.err for each in told)
    assert not re.findall(r"(?<![\d.,])1 (?:[a-z-]+s|\S+\(s\))\b", text)
    assert "1 shard, 1 row, 1 token\n" in text
    assert "was 1 file, now 1; " in text


def test_counted_nouns() -> None:
    assert [counted(each, "row") for each in (0, 1, 2, 12345)] == [
        *("0 rows", "1 row", "2 rows", "12,345 rows")
    ]
    assert counted(2, "entry", "entries") == "2 entries"
    assert [format_bytes(each) for each in (0, 1, 2)] == ["0 bytes", "1 byte", "2 bytes"]
