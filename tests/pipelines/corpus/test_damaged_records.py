"""Damaged files of an output folder: repaired where that is safe, else named with the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
WRONG = ["null", "{}", "[]", '{"version": 1}', "{", ""]


@pytest.fixture
def encode(tmp_path: Path, model_dir: Path) -> list[Any]:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "the hand"}\n{"text": 3}\n' * 20)
    return [
        *("encode", "--input", source, "--tokenizer", model_dir, "--range-bytes", 300),
        *("--on-bad-record", "skip", "--output", tmp_path / "out"),
    ]


@pytest.fixture
def train(tmp_path: Path) -> list[Any]:
    source = tmp_path / "a.txt"
    source.write_text("the theatre and the hand\n" * 20)
    return ["train", "--input", source, "--vocab-size", 270, "--output", tmp_path / "out"]


def is_one_message(err: str) -> bool:
    return "Traceback" not in err and err.count("error:") == 1


@pytest.mark.parametrize("content", WRONG)
def test_a_damaged_run_record_of_an_encoding_is_named(
    content: str, encode: list[Any], tmp_path: Path, run: Run
) -> None:
    assert run(*encode).code == 0
    record = tmp_path / "out" / "__beam-bpe__/run.json"
    record.write_text(content)
    refused = run(*encode)
    assert refused.code == 1
    assert is_one_message(refused.err)
    assert str(record) in refused.err
    assert "--overwrite" in refused.err
    assert run(*encode, "--overwrite").code == 0


@pytest.mark.parametrize("content", WRONG)
def test_a_damaged_manifest_is_made_again_from_the_shards(
    content: str, encode: list[Any], tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    assert run(*encode).code == 0
    before = tree_bytes(output)
    (output / "__beam-bpe__/manifest.json").write_text(content)
    for command in ("verify", "head"):
        refused = run(command, output)
        assert refused.code == 1
        assert is_one_message(refused.err)
        assert "manifest.json" in refused.err
        assert "run the encode command again" in refused.err
    again = run(*encode)
    assert again.code == 0, again.err
    assert "manifest.json" in again.err
    assert tree_bytes(output) == before


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda folder: (folder / "shard-00001-000.arrow").unlink(), "shard-00001-000.arrow"),
        (lambda folder: (folder / "shard-00000-000.arrow").write_bytes(b"ARR"), "shard-00000-000"),
        (
            lambda folder: (folder / "__beam-bpe__/sidecars/shard-00001-000.arrow.json").unlink(),
            "00001-000.arrow.json",
        ),
        (
            lambda folder: (folder / "__beam-bpe__/rejects" / "unit-00001.jsonl").unlink(),
            "unit-00001.jsonl",
        ),
        (
            lambda folder: (folder / "__beam-bpe__/tokenizer" / "merges.txt").write_text(""),
            "tokenizer",
        ),
        (lambda folder: (folder / "__beam-bpe__/tokenizer" / "config.json").unlink(), "tokenizer"),
    ],
)
def test_a_finished_folder_that_lost_something_is_not_taken_for_finished(
    damage: Callable[[Path], Any],
    named: str,
    encode: list[Any],
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    output = tmp_path / "out"
    assert run(*encode).code == 0
    before = tree_bytes(output)
    damage(output)
    again = run(*encode)
    assert again.code == 0, again.err
    assert "nothing to do" not in again.err
    assert named in again.err
    assert tree_bytes(output) == before


@pytest.mark.parametrize("content", WRONG)
def test_a_damaged_run_record_of_a_training_is_named(
    content: str, train: list[Any], tmp_path: Path, run: Run
) -> None:
    assert run(*train).code == 0
    record = tmp_path / "out" / "run.json"
    record.write_text(content)
    refused = run(*train)
    assert refused.code == 1
    assert is_one_message(refused.err)
    assert str(record) in refused.err
    assert "--overwrite" in refused.err


@pytest.mark.parametrize("content", WRONG)
def test_a_damaged_count_manifest_is_named(
    content: str, train: list[Any], tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    assert run(*train).code == 0
    manifest = output / "counts" / "manifest.json"
    manifest.write_text(content)
    (output / "config.json").unlink()
    elsewhere = [*train[:1], "--from-counts", output / "counts", *train[3:5]]
    for command in (train, [*elsewhere, "--output", tmp_path / "other"]):
        refused = run(*command)
        assert refused.code == 1
        assert is_one_message(refused.err)
        assert str(manifest) in refused.err
        assert "--overwrite" in refused.err
    assert run(*train, "--overwrite").code == 0
    assert run("verify", output).code == 0


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config.json", lambda config: config.update(training={"inputs": None, "settings": 3})),
        ("config.json", lambda config: config.update(format="of another program")),
    ],
)
def test_a_damaged_model_is_named_with_the_way_out(
    file: str, change: Callable[[Any], Any], train: list[Any], tmp_path: Path, run: Run
) -> None:
    assert run(*train).code == 0
    path = tmp_path / "out" / file
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))
    refused = run(*train)
    assert refused.code == 1
    assert is_one_message(refused.err)
    assert str(path) in refused.err
    assert "--overwrite" in refused.err
    assert run(*train, "--overwrite").code == 0
