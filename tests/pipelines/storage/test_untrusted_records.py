"""Names and numbers in the files of an output are checked before anything is read or removed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import schemas
from bpe.errors import BpeError
from pipelines.cli import command_line
from pipelines.exports.export_check import check_export
from pipelines.shards.manifest import read_manifest, read_sidecar, read_unit_record
from pipelines.shards.read_token_shards import ReadTokenShards
from pipelines.shards.token_shards import TokenShards
from pipelines.shards.tokenizer_files import load_copy
from pipelines.storage import output_layout, record_checks
from pipelines.storage.output_folder import read_run
from pipelines.training.count_artifact import load_counts
from pipelines.training.rounds import round_loop
from pipelines.training.rounds.checkpoints import (
    read_count_record,
    read_initial_record,
    read_segments_record,
)
from pipelines.training.rounds.state_files import read_state

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
Path_ = tuple[str | int, ...]

TEXTS = ["../x", "/etc/passwd", "a/../../b", "", "a\0b", "n" * 5000, "\x1b[31mred\n"]
NUMBERS = ["-1", str(2**63), "1" + "0" * 400, "1" + "0" * 5000, "1.5", "true", "1e400"]
NAMES = {"file", "split", "rejects_file", "name"}
OUTSIDE = ("x", "b", "victim", "secret")
SMALL = ("--range-bytes", 3000, "--append-eos", 261)


def encode(source: Path, model: Path, output: Path, *options: object) -> int:
    arguments = ("encode", "--input", source, "--tokenizer", model, "--output", output)
    return command_line.main([str(each) for each in (*arguments, *options)])


@pytest.fixture(scope="module")
def box(tiny: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs of each command, and beside them what a hostile name would lead to."""
    folder = tmp_path_factory.mktemp("box")
    lines = tiny.read_bytes()[:6000].decode().split("\n")
    rows = [json.dumps({"text": line}) for line in lines] + ["no JSON"]
    (folder / "a.jsonl").write_text("\n".join(rows) + "\n")
    skip = (*SMALL, "--on-bad-record", "skip")
    split = ("--split", "train=0.5,test=0.5", "--shuffle", "global")
    assert encode(folder / "a.jsonl", model_dir, folder / "plain", *skip) == 0
    assert encode(folder / "a.jsonl", model_dir, folder / "divided", *skip, *split) == 0
    export = ("export", folder / "plain", "--to", "npy", "--output", folder / "exported")
    assert command_line.main([str(each) for each in export]) == 0
    text = folder / "a.txt"
    text.write_bytes(tiny.read_bytes()[:9000])
    train = ("train", "--input", text, "--vocab-size", 300, "--output", folder / "trained")
    assert command_line.main([str(each) for each in train]) == 0
    _leave_rounds(text, folder / "rounds")
    shutil.copytree(folder / "plain", folder / "victim")
    shutil.copytree(folder / "plain", folder / "secret")
    for name in ("x", "b"):
        shutil.copyfile(folder / "plain/shard-00000-000.arrow", folder / name)
    (folder / "plain/a").mkdir()
    (folder / "divided/a").mkdir()
    return folder


class _StoppedError(Exception):
    """Ends a training between two rounds."""


def _leave_rounds(text: Path, output: Path) -> None:
    """A training that stopped after two rounds."""

    def stop(*arguments: Any, original: Any = round_loop._run_segments) -> None:
        if arguments[1] == 2:
            raise _StoppedError
        original(*arguments)

    command = ("train", "--input", text, "--vocab-size", 310, "--output", output)
    options = ("--pretokenizer", "none", "--engine", "rounds", "--state-shards", 3)
    budget = ("--segment-budget", "2kB")
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(_StoppedError):
        patch.setattr(round_loop, "_run_segments", stop)
        command_line.main([str(each) for each in (*command, *options, *budget)])
    assert (output / "rounds/r002-count.json").exists()


_opened: list[str] = []
_watching = [False]


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching[0] and (event == "open" or event.startswith(("os.", "shutil."))):
        _opened.extend(os.fsdecode(each) for each in arguments if isinstance(each, str | bytes))


sys.addaudithook(_note)


@pytest.fixture
def watched(box: Path, monkeypatch: pytest.MonkeyPatch, tree_bytes: Tree) -> Iterator[None]:
    """Fails if the test opens or changes what lies beside the outputs."""
    map_file = pa.memory_map

    def map_and_note(path: str, *arguments: Any) -> Any:
        _opened.append(str(path))
        return map_file(path, *arguments)

    before = {name: (box / name).is_file() or tree_bytes(box / name) for name in OUTSIDE}
    monkeypatch.setattr(pa, "memory_map", map_and_note)
    _opened.clear()
    _watching[0] = True
    yield
    _watching[0] = False
    reached = {os.path.abspath(each) for each in _opened if "\0" not in each}
    forbidden = [str(box / name) for name in OUTSIDE] + ["/etc/passwd"]
    assert not [each for each in reached if each.startswith(tuple(forbidden))]
    after = {name: (box / name).is_file() or tree_bytes(box / name) for name in OUTSIDE}
    assert before == after


def places(value: Any, kind: type, place: Path_ = ()) -> Iterator[Path_]:
    """Places of all values of a kind; of lists, in the first element alone."""
    if type(value) is kind:
        yield place
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, kind, (*place, name))
    elif isinstance(value, list) and value:
        yield from places(value[0], kind, (*place, 0))


def original(value: Any, place: Path_) -> Any:
    for step in place:
        value = value[step]
    return value


@contextlib.contextmanager
def changed(path: Path, place: Path_, text: str) -> Iterator[None]:
    """A JSON file with another value, spelled in JSON, in one place."""
    before = path.read_bytes()
    value = json.loads(before)
    inner = value
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = "here comes the value"
    path.write_text(json.dumps(value).replace('"here comes the value"', text))
    try:
        yield
    finally:
        path.write_bytes(before)


def check_message(text: str) -> None:
    assert "Traceback" not in text
    assert "fault of beam-bpe" not in text
    assert len(text) < 6000
    assert "\0" not in text
    assert "\x1b" not in text


def read_all(output: Path) -> None:
    """What a program does with an output of encode."""
    split = None if output.name == "plain" else "train"
    for _ in TokenShards(output, split):
        pass
    ReadTokenShards(str(output))


OWN = output_layout.OWN_FOLDER
SIDECAR = "shard-00000-000.arrow.json"
ROUNDS = "rounds/rounds"


def read_rounds(box: Path) -> None:
    folder = str(box / ROUNDS)
    for number in range(2):
        assert read_count_record(folder, number)
        assert read_segments_record(folder, number)
    initial = read_initial_record(folder)
    assert initial
    read_state(f"{folder}/state", min(p.name for p in (box / ROUNDS / "state").glob("*.arrow")))


def error_of(reader: Callable[[Path], Any], box: Path) -> str | None:
    """The text of the reader's error, if it has one."""
    try:
        reader(box)
    except BpeError as error:
        return str(error)
    return None


READERS: dict[str, Callable[[Path], Any]] = {
    f"plain/{OWN}/manifest.json": lambda box: read_all(box / "plain"),
    f"divided/{OWN}/manifest.json": lambda box: read_all(box / "divided"),
    f"plain/{OWN}/run.json": lambda box: read_run(str(box / "plain"), "encode"),
    f"plain/{OWN}/sidecars/{SIDECAR}": lambda box: read_sidecar(
        str(box / "plain"), f"{OWN}/sidecars/{SIDECAR}"
    ),
    f"divided/{OWN}/sidecars/test/{SIDECAR}": lambda box: read_sidecar(
        str(box / "divided"), f"{OWN}/sidecars/test/{SIDECAR}"
    ),
    f"divided/{OWN}/units/unit-00000.json": lambda box: read_unit_record(str(box / "divided"), 0),
    "exported/export.json": lambda box: check_export(str(box / "exported")),
    "exported/run.json": lambda box: read_run(str(box / "exported"), "export"),
    "trained/counts/manifest.json": lambda box: load_counts(str(box / "trained/counts")),
    "trained/run.json": lambda box: read_run(str(box / "trained"), "train"),
    f"plain/{OWN}/tokenizer/config.json": lambda box: load_copy(
        str(box / "plain" / OWN / "tokenizer")
    ),
    f"{ROUNDS}/initial.json": read_rounds,
    f"{ROUNDS}/r000-count.json": read_rounds,
    f"{ROUNDS}/r001-segments.json": read_rounds,
}


# Of config.json, the names alone: `tests/bpe/formats/test_model_directory.py` has the rest.
CASES = [
    (name, kind)
    for name in READERS
    for kind in (str, int, float)
    if kind is str or not name.endswith("config.json")
]


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_changed_value_is_refused_or_does_nothing(name: str, kind: type, box: Path) -> None:
    path = box / name
    record = json.loads(path.read_bytes())
    assert list(places(record, str))
    for place in places(record, kind):
        for text in map(json.dumps, TEXTS) if kind is str else NUMBERS:
            with changed(path, place, text):
                said = error_of(READERS[name], box)
            if said is None and text == json.dumps(original(record, place)):
                continue
            if said is None:
                assert place[-1] not in NAMES, (place, text)
                continue
            if "config.json" not in name:
                check_message(said)
            assert str(box / name.split("/", maxsplit=1)[0]) in said


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("name", [f"plain/{OWN}/manifest.json", f"divided/{OWN}/manifest.json"])
def test_commands_refuse_names_that_are_not_ours(
    name: str, box: Path, tmp_path: Path, run: Run
) -> None:
    output = box / name.split("/", maxsplit=1)[0]
    record = json.loads((box / name).read_bytes())
    fields = [place for place in places(record, str) if place[-1] in NAMES]
    assert len(fields) >= 2
    for number, place in enumerate(fields):
        text = json.dumps(TEXTS[number % 3])
        for command in (
            ("verify", output),
            ("head", output),
            ("export", output, "--to", "npy", "--output", tmp_path / "exported"),
        ):
            with changed(box / name, place, text):
                done = run(*command)
            assert done.code == 1, (command, place)
            check_message(done.err)
            field = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
            assert f"{box / name}: {field[1:]} is {json.loads(text)!a}" in done.err


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("name", ["../victim", "a/../../victim", "/etc"])
def test_splits_of_a_changed_record_remove_nothing_outside(
    name: str, box: Path, model_dir: Path, tmp_path: Path, run: Run, capfd: Any
) -> None:
    output = tmp_path / "out"
    shutil.copytree(box / "plain", tmp_path / "victim")
    shutil.copytree(box / "plain", output)
    (output / "a").mkdir(exist_ok=True)
    record = json.loads((output / OWN / "run.json").read_bytes())
    record["settings"]["splits"] = [[name, "1"]]
    (output / OWN / "run.json").write_text(json.dumps(record))
    before = sorted((tmp_path / "victim").iterdir())
    done = run("verify", output)
    assert done.code == 1
    assert f"{output / OWN / 'run.json'}: settings.splits[0][0] is {name!r}" in done.err
    skip = (*SMALL, "--on-bad-record", "skip")
    assert encode(box / "a.jsonl", model_dir, output, *skip) == 1
    assert "--overwrite" in capfd.readouterr().err
    assert encode(box / "a.jsonl", model_dir, output, *skip, "--overwrite") == 0
    assert sorted((tmp_path / "victim").iterdir()) == before


@pytest.mark.usefixtures("watched")
def test_a_shard_of_another_folder_is_not_read(box: Path, run: Run) -> None:
    path = box / "plain" / OWN / "manifest.json"
    with changed(path, ("shards", 0, "file"), '"../secret/shard-00000-000.arrow"'):
        for command in ("head", "verify"):
            done = run(command, box / "plain")
            assert done.code == 1
            assert "shards[0].file is '../secret/shard-00000-000.arrow'" in done.err
        with pytest.raises(BpeError, match="shard-00000-000"):
            TokenShards(box / "plain")
        with pytest.raises(BpeError, match="shard-00000-000"):
            ReadTokenShards(str(box / "plain"))


def test_a_deep_record_is_damaged(box: Path) -> None:
    path = box / "plain" / OWN / "manifest.json"
    deep = "[" * 100_000 + "]" * 100_000
    with changed(path, ("settings",), deep), pytest.raises(BpeError, match="is damaged"):
        read_manifest(str(box / "plain"))


def test_every_record_has_a_check() -> None:
    records = {
        each
        for each in vars(schemas).values()
        if is_dataclass(each) and "version" in each.__dataclass_fields__
    }
    assert records <= record_checks._NAMES.keys()


def test_counts_that_overflow_together_are_refused(box: Path) -> None:
    path = box / "plain" / OWN / "manifest.json"
    most = str(2**63 - 1)
    with changed(path, ("shards", 0, "rows"), most), pytest.raises(BpeError, match="sum of rows"):
        read_manifest(str(box / "plain"))


def test_settings_keep_a_negative_seed() -> None:
    record = msgspec.json.encode(
        {"command": "encode", "settings": {"seed": -5}, "inputs": [], "version": 1}
    )
    found = msgspec.json.decode(record, type=schemas.RunRecord)
    record_checks.check_record(found, "run.json", remedy="")
