"""A folder that is not what a command wants is told by name, with what to give instead."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.cli import command_line
from tests.pipelines.conftest import Run


def _run(*arguments: object) -> None:
    assert command_line.main([str(each) for each in arguments]) == 0


@pytest.fixture(scope="module")
def places(tiny: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Outputs of all commands, finished and not."""
    root = tmp_path_factory.mktemp("places")
    source = root / "text.txt"
    source.write_bytes(tiny.read_bytes()[:20_000])
    shutil.copytree(model_dir, root / "model")
    train = ("train", "--input", source, "--output")
    _run(*train, root / "trained", "--vocab-size", 300)
    _run(*train, root / "sizes", "--vocab-size", "280,300")
    shutil.copytree(root / "trained", root / "half-trained")
    (root / "half-trained" / "config.json").unlink()
    encode = ("encode", "--input", source, "--tokenizer", model_dir, "--output")
    _run(*encode, root / "tokens", "--document-separator", r"\n\n", "--split", "train=0.5,test=0.5")
    _run(*encode, root / "many" / "a")
    _run(*encode, root / "many" / "b")
    shutil.copytree(root / "many" / "a", root / "half")
    (root / "half" / "__beam-bpe__/manifest.json").unlink()
    _run("export", root / "many" / "a", "--to", "npy", "--output", root / "export")
    (root / "empty").mkdir()
    (root / "other").mkdir()
    (root / "other" / "notes.txt").write_text("x")
    yield root
    shutil.rmtree(root)


# place: (what is found there, what to give where shards are wanted, ... where a tokenizer is)
PLACES = {
    "missing": ("is not there", "give the --output folder of a beam-bpe encode", None),
    "text.txt": ("is a file", "give the --output folder of a beam-bpe encode", None),
    "tokens/__beam-bpe__/manifest.json": ("is a file", "give {root}/tokens", None),
    "half": (
        "is an output of beam-bpe encode that is not finished",
        "run the same encode command again, which finishes it",
        "give {root}/half/__beam-bpe__/tokenizer",
    ),
    "tokens/train": (
        "is the split train of an output",
        "give {root}/tokens{split}",
        "give a tokenizer: the output of beam-bpe train",
    ),
    "tokens/__beam-bpe__/tokenizer": ("is a tokenizer", "give {root}/tokens", None),
    "many": (
        "is no output itself, but holds some: {root}/many/a, {root}/many/b",
        "give one of these",
        "give a tokenizer",
    ),
    "export": ("is an output of beam-bpe export", "give {root}/many/a", "give a tokenizer"),
    "trained": (
        "is a tokenizer",
        "give the --output folder of a beam-bpe encode; beam-bpe inspect shows a tokenizer",
        None,
    ),
    "sizes": (
        "holds tokenizers of several sizes",
        "give the --output folder of a beam-bpe encode; beam-bpe inspect shows a tokenizer",
        None,
    ),
    "half-trained": (
        "is an output of beam-bpe train that is not finished",
        "run the same train command again, which finishes it",
        "run the same train command again, which finishes it",
    ),
    "trained/counts": (
        "is a table of counts from beam-bpe train",
        "give the --output folder of a beam-bpe encode",
        "give {root}/trained",
    ),
    "empty": ("holds no output of beam-bpe", "give the --output folder of a beam-bpe", None),
    "other": ("holds no output of beam-bpe, but notes.txt", "give the --output folder of", None),
    "tokens": (
        "is an output of beam-bpe encode",
        None,
        "give {root}/tokens/__beam-bpe__/tokenizer",
    ),
}
CASES = [
    (command, place)
    for command in ("head", "verify", "export", "inspect", "encode")
    for place in PLACES
    if PLACES[place][1 if command in {"head", "verify", "export"} else 2] is not None
    # Tokenizers and exports are checked as they are.
    and not (
        command == "verify"
        and place in {"trained", "sizes", "tokens/__beam-bpe__/tokenizer", "export"}
    )
]


@pytest.mark.parametrize(("command", "place"), CASES)
def test_a_wrong_folder_is_named_with_what_to_give(
    command: str, place: str, places: Path, tmp_path: Path, run: Run
) -> None:
    path = places / place
    others = {
        "export": ("--to", "npy", "--output", tmp_path / "out"),
        "encode": ("--input", places / "text.txt", "--output", tmp_path / "out"),
    }
    given = ("--tokenizer", path) if command == "encode" else (path,)
    refused = run(command, *given, *others.get(command, ()))
    what, shards, tokenizer = PLACES[place]
    give = shards if command in {"head", "verify", "export"} else tokenizer
    assert refused.code == 1
    assert refused.err.startswith(f"error: {path}: {what}".replace("{root}", str(places)))
    split = " with --split train" if command in {"head", "export"} else ""
    expected = f"; {give}".replace("{root}", str(places)).replace("{split}", split)
    if command == "verify" and place in {"missing", "text.txt", "empty", "other"}:
        expected = "; give the --output folder of a beam-bpe encode, train or export"
    assert expected in refused.err
    assert refused.err.count("\n") == 1
    assert not refused.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["cut", "cut to nothing", "flipped", "removed"])
def test_head_names_a_damaged_shard(damage: str, places: Path, tmp_path: Path, run: Run) -> None:
    output = tmp_path / "out"
    shutil.copytree(places / "many" / "a", output)
    shard = output / "shard-00000-000.arrow"
    data = bytearray(shard.read_bytes())
    if damage == "flipped":
        data[-40:-20] = bytes(20)
    else:
        del data[0 if damage == "cut to nothing" else 3000 :]
    shard.unlink() if damage == "removed" else shard.write_bytes(data)
    refused = run("head", output)
    assert refused.code == 1
    assert refused.err.startswith(f"error: {shard}: ")
    assert ("is missing" if damage == "removed" else "is damaged") in refused.err
    assert "beam-bpe verify" in refused.err
    assert "fault of beam-bpe" not in refused.err
    assert refused.err.count("\n") == 1


def test_a_pair_of_files_that_is_taken_as_gpt2_is_said_to_be(
    places: Path, tmp_path: Path, run: Run
) -> None:
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(places / "model" / name, tmp_path / name)
    guessed = run("inspect", tmp_path, "--text", "and")
    assert guessed.code == 0
    assert guessed.err.count("\n") == 1
    assert "is taken as gpt2" in guessed.err
    assert "--pretokenizer" in guessed.err
    given = run("inspect", tmp_path, "--text", "and", "--pretokenizer", "gpt2")
    assert (given.code, given.out, given.err) == (0, guessed.out, "")
    assert run("inspect", places / "model", "--text", "and").err == ""


def test_an_export_is_verified_by_its_record(places: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "out"
    made = ("export", places / "many" / "a", "--to", "npy", "--output", folder)
    assert run(*made).code == 0
    whole = run("verify", folder)
    assert whole.code == 0
    assert f"{folder} is whole: npy, 2 files, 1 document" in whole.out
    tokens = folder / "tokens.npy"
    data = tokens.read_bytes()
    damages = {
        "its sha256 is": data[:-1] + bytes([data[-1] ^ 1]),
        f"has {len(data) - 1:d} bytes": data[:-1],
        "is missing": None,
    }
    for expected, content in damages.items():
        tokens.unlink() if content is None else tokens.write_bytes(content)
        damaged = run("verify", folder)
        assert damaged.code == 1
        assert damaged.err.startswith(f"error: {tokens}: {expected}")
        assert damaged.err.count("\n") == 1
    (folder / "export.json").unlink()
    assert "is not finished" in run("verify", folder).err
    assert run(*made).code == 0
    assert run("verify", folder).code == 0
