"""What a command leaves alone in its output folder, and the folders that it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
HEX = "0123456789abcdef" * 2


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("the theatre and the hand\n" * 20)
    return folder / "a.txt"


@pytest.fixture
def commands(source: Path, model_dir: Path, tmp_path: Path) -> dict[str, list[Any]]:
    """The command lines of train, encode and export, into the same folder."""
    output = ["--input", source, "--output", tmp_path / "out"]
    return {
        "train": ["train", "--vocab-size", 270, *output],
        "sizes": ["train", "--vocab-size", "260,270", *output],
        "encode": ["encode", "--tokenizer", model_dir, *output],
        "export": ["export", tmp_path / "tokens", "--to", "npy", *output[2:]],
    }


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    return path


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train", "vocab.json"),
        ("train", "thesis.tex"),
        ("train", "_temporary/notes.txt"),
        ("train", "counts/bucket-list.txt"),
        ("train", "counts/bucket-00000.arrow"),
        ("train", "counts/rejects/unit-list.jsonl"),
        ("train", "d2/sub/n.txt"),
        ("sizes", "270/vocab.json"),
        ("encode", "__beam-bpe__/manifest.json"),
        ("encode", "_temporary/notes.txt"),
        ("encode", "__beam-bpe__/tokenizer/vocab.json"),
        ("encode", "__beam-bpe__/rejects/unit-00000.jsonl"),
        ("encode", "d2/sub/n.txt"),
        ("encode", ".git/config"),
        ("encode", f"sub/_probe.{HEX}"),
        ("export", "d2/sub/n.txt"),
    ],
)
def test_a_folder_with_files_of_others_is_refused_and_left_alone(
    command: str,
    name: str,
    commands: dict[str, list[Any]],
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    if command == "export":
        encode = [*commands["encode"][:-1], tmp_path / "tokens"]
        assert run(*encode).code == 0
    mine = put(tmp_path / "out" / name)
    refused = run(*commands[command])
    assert refused.code == 1
    assert str(mine.relative_to(tmp_path / "out")) in refused.err
    assert "--overwrite" in refused.err
    assert tree_bytes(tmp_path / "out") == {name: b"mine"}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("train", ["thesis.tex", "counts/bucket-list.txt", "counts/_temporary/x", "_temporary/x"]),
        (
            "encode",
            ["thesis.tex", "__beam-bpe__/rejects/x.jsonl", "shard-list.arrow", "_temporary/x"],
        ),
    ],
)
def test_overwriting_replaces_only_what_the_command_makes(
    command: str, names: list[str], commands: dict[str, list[Any]], tmp_path: Path, run: Run
) -> None:
    mine = [put(tmp_path / "out" / name) for name in names]
    done = run(*commands[command], "--overwrite")
    assert done.code == 0, done.err
    assert [path.read_text() for path in mine] == ["mine"] * len(mine)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train", "config.json"),
        ("train", "300/vocab.json"),
        ("train", "counts/bucket-00000.arrow"),
        ("encode", "shard-00000-000.arrow"),
        ("encode", "train/shard-00000-000.arrow"),
        ("encode", "__beam-bpe__/tokenizer/vocab.json"),
        ("export", "tokens.npy"),
    ],
)
def test_overwriting_needs_a_record_that_the_command_made_the_files(
    command: str,
    name: str,
    commands: dict[str, list[Any]],
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    if command == "export":
        assert run(*commands["encode"][:-1], tmp_path / "tokens").code == 0
    put(tmp_path / "out" / name)
    refused = run(*commands[command], "--overwrite")
    assert refused.code == 1
    assert f"would replace: {name}; move these files away" in refused.err
    assert tree_bytes(tmp_path / "out") == {name: b"mine"}


@pytest.mark.parametrize("command", ["train", "encode"])
def test_what_a_killed_start_leaves_is_no_file_of_others(
    command: str, commands: dict[str, list[Any]], tmp_path: Path, run: Run
) -> None:
    put(tmp_path / "out" / "_temporary" / f"run.json.{HEX}")
    put(tmp_path / "out" / f"_probe.{HEX}")
    done = run(*commands[command])
    assert done.code == 0, done.err
    assert not (tmp_path / "out" / "_temporary").exists()


@pytest.mark.parametrize(("first", "second"), [("train", "encode"), ("encode", "train")])
def test_train_and_encode_do_not_share_a_folder(
    first: str,
    second: str,
    commands: dict[str, list[Any]],
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    assert run(*commands[first]).code == 0
    before = tree_bytes(tmp_path / "out")
    for overwrite in ([], ["--overwrite"]):
        refused = run(*commands[second], *overwrite)
        assert refused.code == 1
        assert f"beam-bpe {first}" in refused.err
    assert tree_bytes(tmp_path / "out") == before


def test_a_training_killed_while_it_wrote_the_model_goes_on(
    commands: dict[str, list[Any]], tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    assert run(*commands["train"]).code == 0
    before = tree_bytes(output)
    (output / "config.json").unlink()
    (output / "tokenizer.json").unlink()
    assert run(*commands["train"]).code == 0
    assert tree_bytes(output) == before


HOLDER = """
import sys, time
from pipelines.storage.output_lock import locked_output
with locked_output(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(120)
"""


@pytest.mark.parametrize("command", ["train", "encode"])
def test_a_second_run_into_one_folder_is_refused_until_the_first_has_died(
    command: str, commands: dict[str, list[Any]], tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(output)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            refused = run(*commands[command])
        finally:
            holder.send_signal(signal.SIGKILL)
    assert refused.code == 1
    assert str(output) in refused.err
    assert f"process {holder.pid}" in refused.err
    done = run(*commands[command])
    assert done.code == 0, done.err
    assert not [path for path in output.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("command", ["train", "encode"])
def test_input_inside_the_output_is_refused(
    command: str, commands: dict[str, list[Any]], tmp_path: Path, run: Run, source: Path
) -> None:
    line = [each if each != tmp_path / "out" else source.parent for each in commands[command]]
    refused = run(*line)
    assert refused.code == 1
    assert str(source) in refused.err
    assert f"--output {source.parent}" in refused.err
    assert "narrower --input" in refused.err
    assert [path.name for path in source.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("pattern", ["", "**", "**/*", "*/*"])
def test_an_output_that_would_be_read_as_input_is_refused(
    pattern: str, model_dir: Path, source: Path, run: Run
) -> None:
    inputs = [str(source.parent / pattern) if pattern else source.parent]
    if pattern.endswith("/*"):
        put(source.parent / "more" / "b.txt")
    output = source.parent / "out"
    command = ("encode", "--tokenizer", model_dir, "--input", *inputs, "--output", output)
    refused = run(*command)
    assert refused.code == 1
    assert f"--output {output}" in refused.err
    assert str(inputs[0]) in refused.err
    assert not output.exists()


@pytest.mark.parametrize(("pattern", "folder"), [("*", "out"), ("**", "_out"), ("*.txt", "out")])
def test_an_output_below_the_input_that_is_never_read_is_fine(
    pattern: str, folder: str, model_dir: Path, source: Path, run: Run
) -> None:
    inputs = source.parent / pattern
    command = ("encode", "--tokenizer", model_dir, "--input", inputs)
    command = (*command, "--output", source.parent / folder)
    assert run(*command).code == 0
    again = run(*command)
    assert "nothing to do" in again.err


@pytest.mark.parametrize("command", ["train", "encode"])
def test_a_file_url_names_a_local_folder(
    command: str, commands: dict[str, list[Any]], tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    line = [each if each != output else f"file://{output}" for each in commands[command]]
    done = run(*line)
    assert done.code == 0, done.err
    name = "run.json" if command == "train" else "__beam-bpe__/run.json"
    assert json.loads((output / name).read_bytes())["command"] == command
    assert run("verify", f"file://{output}").code == 0


def test_a_run_that_failed_at_once_is_not_in_the_way_of_the_right_one(
    model_dir: Path, tmp_path: Path, run: Callable[..., Any]
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": {"en": "the hand"}}\n')
    output = tmp_path / "out"
    command = ("encode", "--input", tmp_path / "a.jsonl", "--tokenizer", model_dir)
    failed = run(*command, "--output", output)
    assert failed.code == 1
    assert (output / "__beam-bpe__/run.json").exists()
    done = run(*command, "--output", output, "--text-field", "text.en")
    assert done.code == 0, done.err
    assert run("verify", output).code == 0
    other = run(*command, "--output", output, "--text-field", "text.de")
    assert other.code != 0
    assert "other settings" in other.err


def test_foreign_files_are_counted_and_the_first_are_named(
    commands: dict[str, list[Any]], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(tmp_path / "out" / "deep" / f"{number}.txt")
    refused = run(*commands["encode"])
    assert refused.code == 1
    named = "holds 5 files and was not begun by this command: deep/0.txt, deep/1.txt, deep/2.txt"
    assert f"{named} and 2 others; choose an empty folder" in refused.err
    monkeypatch.setattr("pipelines.storage.output_folder._MOST_LISTED", 4)
    refused = run(*commands["encode"])
    assert "the folder holds more than " in refused.err
    assert "and others; choose" in refused.err


@pytest.mark.parametrize("command", ["train", "encode", "export"])
def test_the_parent_of_outputs_is_refused_even_to_be_overwritten(
    command: str, commands: dict[str, list[Any]], tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    assert run(*commands["train"][:-1], output / "tok").code == 0
    assert run(*commands["encode"][:-1], output / "enc").code == 0
    shutil.copytree(output / "enc", tmp_path / "tokens")
    before = tree_bytes(output)
    for overwrite in ([], ["--overwrite"]):
        refused = run(*commands[command], *overwrite)
        assert refused.code == 1
        assert f"--output {output}: is no output itself, but holds some: enc, tok;" in refused.err
        assert f"such as {output}/NAME" in refused.err
    assert tree_bytes(output) == before


def test_an_empty_tree_is_an_empty_folder(
    commands: dict[str, list[Any]], tmp_path: Path, run: Run
) -> None:
    (tmp_path / "out" / "a" / "b").mkdir(parents=True)
    done = run(*commands["encode"])
    assert done.code == 0, done.err


LEFT = {
    "train": ["_temporary", "counts/_temporary"],
    "sizes": ["_temporary", "270/_temporary", "counts/_temporary"],
    "encode": ["_temporary"],
    "export": ["_temporary"],
}


@pytest.mark.parametrize("record", ["finished", "unfinished"])
@pytest.mark.parametrize("command", LEFT)
def test_what_a_run_was_killed_before_it_removed_goes_with_the_next(
    command: str,
    record: str,
    commands: dict[str, list[Any]],
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    """Unit reports of a count table stayed for ever once its manifest was there."""
    if command == "export":
        assert run(*commands["encode"][:-1], tmp_path / "tokens").code == 0
    output = tmp_path / "out"
    assert run(*commands[command]).code == 0
    before = tree_bytes(output)
    for folder in LEFT[command]:
        put(output / folder / f"x.{HEX}")
        if folder.startswith("counts/"):
            put(output / folder / "unit-00003.json")
    if record == "unfinished":
        last = {
            "train": "config.json",
            "sizes": "270/config.json",
            "encode": "__beam-bpe__/manifest.json",
            "export": "export.json",
        }
        (output / last[command]).unlink()
    assert run(*commands[command]).code == 0
    assert tree_bytes(output) == before
    assert not list(output.rglob("_temporary"))
