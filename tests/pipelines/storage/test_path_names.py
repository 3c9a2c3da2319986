"""A path is a name, whatever characters it holds: what has another is neither read nor lost."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import SettingsError
from pipelines.corpus.listing.input_overlap import refuse_overlap
from pipelines.corpus.listing.inputs import InputList, ReadOptions, list_inputs
from pipelines.shards.token_shards import TokenShards
from tests.pipelines.conftest import ROOT

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]

QUICK = ["r[1]", "r*"]
NAMES = [
    *QUICK,
    *("*", "[x]", "r?", "r{1,a}", "!r1", "r[!a]", "~", "~root", "#r", "r%31", "r&1", "r+1", "-r"),
    *(" r 1 ", "r\n1", "r[1]\n*", unicodedata.normalize("NFC", "é"), "e\u0301", "gs:", "r[", "r]["),
]
NEIGHBOURS = ["r1", "ra", "x", "r", "wild", "rr", "r[1", "1"]
"""Names that the others match, decode or normalize to."""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders for each kind of path, of which `here` is the working directory."""
    for name in ("here", "in", "tok", "out", "npy"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def fill(folder: Path, name: str, text: str) -> None:
    """An input folder of that name with one file of that name."""
    (folder / name).mkdir()
    (folder / name / f"{name}.txt").write_text(text)


def check_every_use_of_a_name(name: str, places: Path, run: Run, tree_bytes: Tree) -> None:
    def done(*arguments: object) -> Any:
        outcome = run(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    def surround(folder: Path) -> dict[str, bytes]:
        """Copies of what has the name, under other names."""
        for other in NEIGHBOURS:
            if other != name:
                shutil.copytree(folder / name, folder / other)
        return tree_bytes(folder)

    fill(places / "in", name, "the theatre and the hand\n" * 9)
    for other in NEIGHBOURS:
        fill(places / "in", other, f"{other} is another\n" * 7)
    kept = {}
    # The folder, from another one; relative, so that a name may begin with a dash.
    source, train = f"../in/{name}", ("train", "--vocab-size=270")
    done(*train, f"--input={source}", f"--output=../tok/{name}")
    assert (places / "tok" / name / "tokenizer.json").is_file()
    counts = f"--from-counts=../tok/{name}/counts"
    done(*train, counts, f"--output={name}")
    shutil.rmtree(places / "here" / name)
    kept["tok"] = surround(places / "tok")
    done(*train, f"--input={source}", f"--output=../tok/{name}", "--overwrite")
    encode = ("encode", f"--tokenizer=../tok/{name}", f"--output=../out/{name}")
    done(*encode, f"--input={source}/*.txt")
    kept["out"] = surround(places / "out")
    done(*encode, f"--input={source}/{name}.txt", "--overwrite")
    if "\n" not in name:
        listed = places / "in" / name / f"_{name}"
        listed.write_text(f"{source}/*.txt\n")
        done(*encode, f"--input-list={listed}", "--overwrite")
        again = done(*encode, f"--input={source}")
        assert "nothing to do" in again.err
    export = ("export", "--to=npy", f"--output=../npy/{name}", "--", f"../out/{name}")
    done(*export)
    kept["npy"] = surround(places / "npy")
    done(*export[:2], "--overwrite", *export[2:])
    for folder in ("tok", "out", "npy"):
        done("verify", f"../{folder}/{name}")
        assert tree_bytes(places / folder) == kept[folder]
    done("head", f"../out/{name}")
    done("inspect", f"../tok/{name}")
    [document] = [TokenShards(f"../out/{name}").document(number) for number in (0,)]
    assert len(document)


@pytest.mark.parametrize("name", QUICK)
def test_a_name_with_pattern_characters_is_a_name_everywhere(
    name: str, places: Path, run: Run, tree_bytes: Tree
) -> None:
    check_every_use_of_a_name(name, places, run, tree_bytes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES[len(QUICK) :])
def test_any_name_is_a_name_everywhere(name: str, places: Path, run: Run, tree_bytes: Tree) -> None:
    check_every_use_of_a_name(name, places, run, tree_bytes)


@pytest.mark.parametrize("name", NAMES)
def test_an_input_of_any_name_is_read_alone(
    name: str, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(places / "in", name, "mine")
    for other in NEIGHBOURS:
        fill(places / "in", other, "another")
    (places / "in" / name / "deep").mkdir()
    (places / "in" / name / "deep" / "b.txt").write_text("deep")
    folder = places / "in" / name
    monkeypatch.chdir(places / "in")
    expected = {str(folder / f"{name}.txt"), str(folder / "deep" / "b.txt")}
    for given, count in [
        (name, 2),
        (f"{name}/", 2),
        (str(folder), 2),
        (f"file://{folder}", 2),
        (f"{name}/*.txt", 1),
        (f"{folder}/**", 2),
        (f"{name}/**/*.txt", 1),
        (f"{name}/*/[b].txt", 1),
        (f"{name}/{name}.txt", 1),
    ]:
        inputs = list_inputs([given], ReadOptions())
        assert {file.path for file in inputs.files} <= expected
        assert len(inputs.files) == count, given
    monkeypatch.chdir(folder)
    for given in (".", "*", "**/*.txt", "../" + name):
        assert {file.path for file in list_inputs([given], ReadOptions()).files} <= expected


def test_a_pattern_that_nothing_has_for_its_name_is_one(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("r1", "r2", "ra"):
        fill(places / "in", name, name)
    monkeypatch.chdir(places / "in")

    def sources(given: str) -> list[str]:
        return [file.source for file in list_inputs([given], ReadOptions()).files]

    assert sources("r[1-9]/*.txt") == ["r1/r1.txt", "r2/r2.txt"]
    assert sources("r?/r[!1-9].txt") == ["ra/ra.txt"]
    assert list_inputs(["r[1-9]/*.txt"], ReadOptions()).notes == ()
    # Now something has that name.
    fill(places / "in", "r[1-9]", "mine")
    assert sources("r[1-9]/*.txt") == ["r[1-9].txt"]
    [note] = list_inputs(["r[1-9]/*.txt"], ReadOptions()).notes
    assert note == f"{places}/in/r[1-9] exists, and is taken as a name, not as a pattern"


def test_an_output_beside_a_pattern_is_seen_to_be_input(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inputs(given: str) -> InputList:
        return list_inputs([given], ReadOptions(input_format="text"))

    fill(places / "in", "r[1]", "mine")
    fill(places / "in", "r1", "another")
    monkeypatch.chdir(places / "in")
    refuse_overlap(inputs("r[1]"), "r1")
    refuse_overlap(inputs("r[1]/**"), "r1/out")
    for given in ("r[1]", "r[1]/**", "**", "*/*"):
        with pytest.raises(SettingsError, match="when the command runs again"):
            refuse_overlap(inputs(given), "r[1]/out" if given != "*/*" else "out")


def test_an_output_that_cannot_be_made_leaves_nothing(places: Path, run: Run) -> None:
    """`out[1]` was refused, and a probe stayed there."""
    fill(places / "in", "a", "the hand")
    output = places / "out" / "out[1]"
    done = run("train", "--vocab-size=258", "--input", places / "in" / "a", "--output", output)
    assert done.code == 0, done.err
    assert not list(output.rglob("_*"))


def test_a_line_feed_ends_a_line_of_an_input_list(places: Path, run: Run) -> None:
    fill(places / "in", "r\n1", "mine")
    listed = places / "list"
    listed.write_text(f"{places}/in/r\n1\n")
    refused = run("plan", "--input-list", listed)
    assert refused.code == 1
    assert f"no file matches {places}/in/r;" in refused.err
    assert run("plan", "--input", places / "in" / "r\n1").code == 0
    help_text = " ".join(run("plan", "--help").out.split())
    assert "give a name with a line feed to --input" in help_text


def test_only_the_file_layer_calls_what_expands_patterns() -> None:
    call = re.compile(r"FileSystems\.(delete|match|rename|copy|create|mkdirs|exists)\b|\bglob\b\(")
    sources = [*ROOT.joinpath("pipelines").rglob("*.py"), *ROOT.joinpath("bpe").rglob("*.py")]
    assert [path.name for path in sources if call.search(path.read_text())] == ["output_files.py"]
