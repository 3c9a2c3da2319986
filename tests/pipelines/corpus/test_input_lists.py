"""Files that list inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import SettingsError
from pipelines.corpus.listing.input_lists import read_input_lists

Run = Callable[..., Any]


def test_lines_are_taken_as_they_stand(tmp_path: Path) -> None:
    first, second = tmp_path / "a.list", tmp_path / "b.list"
    first.write_bytes(b"\xef\xbb\xbfone *.txt\r\n\n #two \n  \ncaf\xe9")
    second.write_bytes(b"gs://b/**\n")
    assert read_input_lists([str(first), str(second)]) == [
        "one *.txt",
        " #two ",
        os.fsdecode(b"caf\xe9"),
        "gs://b/**",
    ]


@pytest.mark.parametrize("content", [None, b"", b"\n \n\r\n", b"a\0b"])
def test_a_list_that_lists_nothing_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.list"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"--input-list .*a\.list: "):
        read_input_lists([str(path)])


@pytest.mark.parametrize("command", ["train", "encode", "plan"])
def test_every_command_takes_lists(
    command: str, tmp_path: Path, model_dir: Path, run: Run, tree_bytes: Callable[[Path], Any]
) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (folder / name).write_text(f"the hand and the head {name}\n" * 5)
    list_ = tmp_path / "a.list"
    list_.write_text(f"{folder}/sub/*\n{folder}/a.txt\n")
    how = {"train": ["--vocab-size", 300], "encode": ["--tokenizer", model_dir], "plan": []}
    done = {}
    inputs = {
        "list": ["--input-list", list_, "--input", folder / "b.txt"],
        "input": ["--input", folder],
    }
    for name, given in inputs.items():
        output = [] if command == "plan" else ["--output", tmp_path / name]
        done[name] = run(command, *given, *how[command], *output)
        assert done[name].code == 0, done[name].err
    if command == "plan":
        assert done["list"].out == done["input"].out
        assert "3 files" in done["list"].out
    elif command == "encode":
        shards = [tree_bytes(tmp_path / name)["shard-00000-000.arrow"] for name in inputs]
        assert shards[0] == shards[1]
    else:
        assert (tmp_path / "list" / "merges.txt").read_bytes() == (
            tmp_path / "input" / "merges.txt"
        ).read_bytes()


@pytest.mark.parametrize("command", ["encode", "plan"])
def test_no_input_is_wrong_usage(command: str, tmp_path: Path, model_dir: Path, run: Run) -> None:
    options = ["--tokenizer", model_dir, "--output", tmp_path] if command == "encode" else []
    refused = run(command, *options)
    assert refused.code == 2
    assert "--input or --input-list" in refused.err
