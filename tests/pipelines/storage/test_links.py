"""No file is read, written or removed after a symbolic link that lies in a folder of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import BpeError, OutputError
from pipelines.cli import command_line
from pipelines.shards.token_shards import TokenShards
from pipelines.storage.output_files import join, list_files, write_atomically

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished output of each command, with every kind of file."""
    root = tmp_path_factory.mktemp("outputs")
    text = "the theatre and the hand\n" * 30
    (root / "in.jsonl").write_text("".join(f'{{"text": "{line}"}}\n' for line in text.split("\n")))
    with (root / "in.jsonl").open("a") as file:
        file.write("bad\n")
    for line in command_lines(root).values():
        assert command_line.main(line) == 0
    return root


def command_lines(root: Path) -> dict[str, list[str]]:
    given = [f"--input={root}/in.jsonl", "--on-bad-record=skip"]
    encode = ["encode", *given, f"--tokenizer={root}/tok/270"]
    shuffled = ["--shuffle=global", "--split=train=0.5,test=0.5"]
    return {
        "tok": ["train", *given, "--vocab-size=260,270", f"--output={root}/tok"],
        "enc": [*encode, f"--output={root}/enc"],
        "global": [*encode, *shuffled, f"--output={root}/global"],
        "npy": ["export", f"{root}/enc", "--to=npy", f"--output={root}/npy"],
    }


OWN = "__beam-bpe__"
PLACES = {
    "tok": ["run.json", "counts", "counts/manifest.json", "counts/bucket-00003.arrow", "270"],
    "enc": [
        *("shard-00000-000.arrow", OWN, f"{OWN}/run.json", f"{OWN}/manifest.json"),
        *(f"{OWN}/tokenizer", f"{OWN}/sidecars", f"{OWN}/rejects"),
    ],
    "global": ["train", f"{OWN}/units/unit-00000.json", f"{OWN}/tokenizer/vocab.json"],
    "npy": ["run.json", "export.json"],
}
UNREAD = {
    "verify": {"tok": ["run.json", "counts/bucket-00003.arrow", "270"], "enc": [f"{OWN}/run.json"]},
    "head": {"enc": [f"{OWN}/{each}" for each in ("run.json", "rejects", "sidecars")]},
    "export": {
        "enc": [f"{OWN}/{each}" for each in ("run.json", "rejects", "sidecars", "tokenizer")]
    },
}
"""What the commands that read do not look at, or not by this name."""


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, places in PLACES.items() for place in places]
)
def test_a_link_in_an_output_is_not_followed(
    name: str, place: str, outputs: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output, away = tmp_path / "out", tmp_path / "away"
    shutil.copytree(outputs / name, output)
    away.mkdir()
    link = output / place
    link.rename(away / "x")
    link.symlink_to(away / "x")
    before = tree_bytes(away)
    for command in ("verify", "head", "export") if name == "enc" else ("verify",):
        other = ["--to=npy", f"--output={tmp_path}/npy"] if command == "export" else []
        outcome = run(command, output, *other)
        if place not in UNREAD[command].get(name, []):
            assert outcome.code == 1, command
            assert f"{link}: is a symbolic link" in outcome.err
    line = [*command_lines(outputs)[name][:-1], f"--output={output}"]
    for overwrite in ([], ["--overwrite"]):
        outcome = run(*line, *overwrite)
        # The link is named, or not looked at, or a new file is in its place.
        named = "is a symbolic link" in outcome.err or "nothing to do" in outcome.err
        assert named or not link.is_symlink(), outcome.err
        assert tree_bytes(away) == before


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
@pytest.mark.parametrize("name", ["tok", "enc", "npy"])
def test_the_lock_is_not_written_through_a_link(
    name: str, kind: str, outputs: Path, tmp_path: Path, run: Run
) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    output = tmp_path / "out"
    output.mkdir()
    lock = output / ".beam-bpe.lock"
    if kind == "hard":
        lock.hardlink_to(precious)
    else:
        lock.symlink_to("../precious")
    line = [*command_lines(outputs)[name][:-1], f"--output={output}"]
    for overwrite in ([], ["--overwrite"]):
        outcome = run(*line, *overwrite)
        assert outcome.code == 1
        assert f"{lock}: is a {kind} link" in outcome.err
    assert precious.read_bytes() == b"precious"
    assert os.listdir(output) == [lock.name]


@pytest.mark.parametrize(
    "place",
    ["_temporary", OWN, f"{OWN}/units", f"{OWN}/tokenizer", "train", f"{OWN}/shuffle", "x/y"],
)
def test_a_new_output_writes_behind_no_link(
    place: str, outputs: Path, tmp_path: Path, run: Run
) -> None:
    away, output = tmp_path / "away", tmp_path / "out"
    away.mkdir()
    link = output / place
    link.parent.mkdir(parents=True)
    link.symlink_to(away)
    line = [*command_lines(outputs)["global"][:-1], f"--output={output}"]
    refused = run(*line)
    assert refused.code == 1
    assert place in refused.err
    assert not os.listdir(away)
    run(*line, "--overwrite")
    assert not os.listdir(away)


def test_the_output_itself_may_be_a_link(
    outputs: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    root = tmp_path / "root"
    shutil.copytree(outputs / "enc", root)
    link = tmp_path / "link"
    link.symlink_to(root)
    before = tree_bytes(root)
    line = [*command_lines(outputs)["enc"][:-1], f"--output={link}"]
    for more in ([], ["--overwrite"]):
        assert run(*line, *more).code == 0
    assert tree_bytes(root) == before
    for command in (["verify"], ["head"]):
        assert run(*command, link).code == 0
    assert len(TokenShards(str(link))) == len(TokenShards(str(outputs / "enc")))


@pytest.mark.parametrize("place", [OWN, f"{OWN}/manifest.json", "shard-00000-000.arrow"])
def test_token_shards_follow_no_link(place: str, outputs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "enc"
    shutil.copytree(outputs / "enc", folder)
    (folder / place).rename(tmp_path / "away")
    (folder / place).symlink_to(tmp_path / "away")
    with pytest.raises(OutputError, match=f"{place}: is a symbolic link.*cp -RL"):
        TokenShards(str(folder))[0]


def test_names_do_not_lead_out_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for name in ("../x", "a/../../x", "..", "a\0b"):
        with pytest.raises(OutputError, match="leads out of this folder"):
            join(str(folder), name)
        with pytest.raises(OutputError, match="leads out of this folder"):
            join("gs://bucket/out", *name.replace("\0", "/../").split("/"))
    assert join(str(folder), "/etc/passwd").startswith(f"{folder}/")


def test_links_are_listed_but_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to("a")
    assert list_files(str(tmp_path)) == {"a": 5, "b": 1}
    with pytest.raises(BpeError, match=r"b: is a symbolic link"):
        write_atomically(str(tmp_path), "b/c.json", b"")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="pipe: is a pipe"):
        join(str(tmp_path), "pipe")
