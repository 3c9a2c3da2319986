"""`beam-bpe verify` finds outputs that were changed together with all their hashes and counts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.formats.model_directory import CONFIG_NAME
from pipelines.storage.output_layout import MANIFEST, TOKENIZER_FOLDER, sidecar_of
from tests.pipelines.tampered_outputs import forge_rows, seal, tamper

Run = Callable[..., Any]
Shards = list[list[dict[str, Any]]]
Encoded = Callable[..., Path]

ENCODE = ("--input-format", "lines", "--range-bytes", 2000)
PACK = ("--pack", 32, "--pad-id", 0, "--pack-mode", "best-fit")


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of two files."""
    folder = tmp_path_factory.mktemp("corpus")
    text = tiny.read_bytes()
    (folder / "a.txt").write_bytes(text[:6000])
    (folder / "b.txt").write_bytes(text[6000:9000])
    return folder


def other_source(shards: Shards) -> None:
    for rows in shards:
        for row in rows:
            row["source"] = "c.txt"


def source_of_another_unit(shards: Shards) -> None:
    shards[0][3]["source"] = "b.txt"


def far_id(shards: Shards) -> None:
    shards[0][1]["document_id"] = "0:99999999"


def same_id(shards: Shards) -> None:
    shards[0][1]["document_id"] = shards[0][0]["document_id"]


def swapped_ids(shards: Shards) -> None:
    rows = shards[0]
    rows[2]["document_id"], rows[3]["document_id"] = rows[3]["document_id"], rows[2]["document_id"]


def row_of_another_unit(shards: Shards) -> None:
    shards[1].insert(0, shards[0].pop())


def row_of_a_later_unit(shards: Shards) -> None:
    shards[0].append(shards[1].pop(0))


def repeated_row(shards: Shards) -> None:
    shards[0].append(shards[0][2])


def repeated_row_at_once(shards: Shards) -> None:
    shards[0].insert(3, shards[0][2])


def moved_row(shards: Shards) -> None:
    shards[0].append(shards[0].pop(0))


def row_of_another_bucket(shards: Shards) -> None:
    shards[1].append(shards[0].pop())


def lost_piece(shards: Shards) -> None:
    """A row with nothing but the midst of a document."""
    for rows in shards:
        for at, row in enumerate(rows):
            if row["is_first"] == [False] and row["is_last"] == [False]:
                del rows[at]
                return
    pytest.fail("no such row")


def repeated_piece(shards: Shards) -> None:
    for rows in shards:
        for at, row in enumerate(rows):
            if row["is_first"] == [False] and row["is_last"] == [False]:
                rows.insert(at, row)
                return
    pytest.fail("no such row")


def repeated_segments(shards: Shards) -> None:
    rows = shards[0]
    at = next(at for at, row in enumerate(rows) if all(row["is_first"]) and all(row["is_last"]))
    rows.append(rows[at])


GLOBAL = ("--shuffle", "global", "--shard-bytes", 3000)
TEXT = ("--input-format", "text")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "change", "expected"),
    [
        ((), other_source, "is from 'c.txt', which is no input of its unit"),
        ((), source_of_another_unit, "is from 'b.txt', which is no input of its unit"),
        ((), far_id, "has the id '0:99999999', and stands at "),
        ((), same_id, "has the id '0:0', and stands at "),
        ((), swapped_ids, ", and stands at "),
        ((), row_of_another_unit, "which its unit does not read"),
        ((), row_of_a_later_unit, "which its unit does not read"),
        (("--shuffle", "shard"), repeated_row, "it is there twice, or was moved"),
        (("--shuffle", "shard"), repeated_row_at_once, "it is there twice, or was moved"),
        (("--shuffle", "shard", "--shard-bytes", 500), moved_row, "is there twice, or was moved"),
        (GLOBAL, repeated_row_at_once, "it is there twice, or was moved"),
        (GLOBAL, moved_row, "it is there twice, or was moved"),
        (GLOBAL, row_of_another_bucket, "belongs into another bucket than 1"),
        ((*PACK, *TEXT), lost_piece, "lacks ids: its segments cover 0 to "),
        ((*PACK, *TEXT), repeated_piece, "repeats ids from "),
        (PACK, repeated_segments, "it is there twice, or was moved"),
        ((*PACK, "--shuffle", "shard"), repeated_segments, "it is there twice, or was moved"),
        ((*PACK, *GLOBAL), repeated_segments, "it is there twice, or was moved"),
    ],
)
def test_rows_that_contradict_their_places_are_found(
    options: tuple[object, ...],
    change: Callable[[Shards], None],
    expected: str,
    copied: Encoded,
    run: Run,
) -> None:
    output = copied(*options)
    assert run("verify", output).code == 0
    forge_rows(output, change)
    done = run("verify", output)
    assert done.code == 1
    assert expected in done.err
    assert ".arrow: " in done.err


@pytest.mark.parametrize("units", [1, 2])
def test_an_output_without_its_last_units_is_found(units: int, copied: Encoded, run: Run) -> None:
    output = copied()
    shards = json.loads((output / MANIFEST).read_bytes())["shards"]
    for shard in shards[-units:]:
        (output / shard["file"]).unlink()
        (output / sidecar_of(shard["file"])).unlink()

    def lose(manifest: Any) -> None:
        del manifest["shards"][-units:]

    tamper(output, lose)
    seal(output)
    done = run("verify", output)
    assert done.code == 1
    assert "b.txt: is read up to byte " in done.err
    assert "units are lost" in done.err


@pytest.mark.parametrize(
    "change",
    [
        lambda inputs: inputs[0].update(start=1),
        lambda inputs: inputs[0].update(end=inputs[0]["end"] - 1),
        lambda inputs: inputs.append(dict(inputs[0])),
        lambda inputs: inputs.clear(),
    ],
)
def test_ranges_that_leave_gaps_are_found(
    change: Callable[[Any], Any], copied: Encoded, run: Run
) -> None:
    output = copied()
    tamper(output, lambda manifest: change(manifest["shards"][1]["inputs"]))
    done = run("verify", output)
    assert done.code == 1
    assert f"{output / MANIFEST}: " in done.err
    assert "lost" in done.err


def rehash(model: Path, name: str) -> None:
    config = json.loads((model / CONFIG_NAME).read_bytes())
    config["files"][name] = hashlib.sha256((model / name).read_bytes()).hexdigest()
    (model / CONFIG_NAME).write_text(json.dumps(config))


def cut_merges(model: Path) -> None:
    path = model / "tokenizer.json"
    content = json.loads(path.read_bytes())
    del content["model"]["merges"][2:]
    path.write_text(json.dumps(content))
    rehash(model, path.name)


def empty_golden(model: Path) -> None:
    (model / "golden.jsonl").write_bytes(b"")
    rehash(model, "golden.jsonl")


def shorten_golden(model: Path) -> None:
    path = model / "golden.jsonl"
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    rehash(model, path.name)


def other_config(model: Path) -> None:
    path = model / CONFIG_NAME
    path.write_text(path.read_text().replace('"vocab_size": 262', '"vocab_size": 300'))


def no_tokenizer_json(model: Path) -> None:
    (model / "tokenizer.json").unlink()
    config = json.loads((model / CONFIG_NAME).read_bytes())
    del config["files"]["tokenizer.json"]
    (model / CONFIG_NAME).write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (cut_merges, "tokenizer.json: is missing, or is not what the model"),
        (no_tokenizer_json, "tokenizer.json: is missing, or is not what the model"),
        (empty_golden, "golden.jsonl: lacks the text 1 of those"),
        (shorten_golden, "golden.jsonl: lacks the text 1 of those"),
        (other_config, "config.json: 'vocab_size' is '300', and the model gives '262'"),
    ],
)
def test_files_that_are_not_of_the_model_are_found(
    change: Callable[[Path], None],
    expected: str,
    model_dir: Path,
    copied: Encoded,
    tmp_path: Path,
    run: Run,
) -> None:
    output = copied()
    change(output / TOKENIZER_FOLDER)
    model = Path(shutil.copytree(model_dir, tmp_path / "model"))
    change(model)
    for folder in (output, model):
        done = run("verify", folder)
        assert done.code == 1
        assert expected in done.err


def test_golden_texts_of_the_user_are_allowed(model_dir: Path, tmp_path: Path, run: Run) -> None:
    model = Path(shutil.copytree(model_dir, tmp_path / "model"))
    path = model / "golden.jsonl"
    path.write_bytes(path.read_bytes() + b'{"text":"a","ids":[64]}\n')
    rehash(model, path.name)
    done = run("verify", model)
    assert done.code == 0, done.err
