"""Readers of whole folders get the shards of an output and nothing else; the layout before that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pytest

from bpe.errors import OutputError
from pipelines.cli import command_line
from pipelines.shards.token_shards import TokenShards

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
OWN = "__beam-bpe__"
MISSING = "is missing: pip install '.[test-exports]'"
LAYOUTS = {
    "rows": [],
    "packed": ["--pack", "8", "--pad-id", "0"],
    "splits": ["--split", "train=0.5,test=0.5", "--shuffle", "global"],
}


@pytest.fixture(scope="module", params=LAYOUTS)
def output(
    request: pytest.FixtureRequest, model_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One shard, or one of each split, among more JSON files than there are shards."""
    folder = tmp_path_factory.mktemp("whole")
    rows = [json.dumps({"text": f"the {number}"}) for number in range(40)]
    (folder / "a.jsonl").write_text("\n".join([*rows, "no row"]) + "\n")
    code = command_line.main(
        [
            *("encode", "--input", str(folder / "a.jsonl"), "--tokenizer", str(model_dir)),
            *("--on-bad-record", "skip", "--output", str(folder / "out"), *LAYOUTS[request.param]),
        ]
    )
    assert code == 0
    assert list((folder / "out" / OWN / "rejects").iterdir())
    return folder / "out"


def row_count(output: Path) -> int:
    manifest: dict[str, Any] = json.loads((output / OWN / "manifest.json").read_bytes())
    rows: int = manifest["totals"]["rows"]
    assert rows > 0
    return rows


def test_all_but_shards_lies_in_one_folder(output: Path) -> None:
    others = [path for path in output.rglob("*") if path.is_file() and path.suffix != ".arrow"]
    assert {path.relative_to(output).parts[0] for path in others} == {OWN}
    assert len(others) > 4
    inside = (output / OWN).rglob("*.arrow")
    assert not list(inside)


@pytest.mark.parametrize("name", ["arrow", "ipc"])
def test_pyarrow_reads_the_folder(output: Path, name: str) -> None:
    assert arrow_dataset.dataset(str(output), format=name).count_rows() == row_count(output)


def test_datasets_reads_the_folder(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets", reason="`datasets` of the test extra is missing")
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", str(tmp_path))
    found = datasets.load_dataset(str(output), cache_dir=str(tmp_path))
    assert sum(part.num_rows for part in found.values()) == row_count(output)
    assert all("input_ids" in part.column_names for part in found.values())
    if (output / "train").exists():
        assert set(found) == {"train", "test"}


def test_polars_reads_the_pattern(output: Path) -> None:
    polars = pytest.importorskip("polars", reason=f"polars {MISSING}")
    rows = polars.scan_ipc(f"{output}/**/*.arrow").select(polars.len()).collect().item()
    assert rows == row_count(output)


def test_duckdb_finds_shards_alone(output: Path) -> None:
    """DuckDB reads Arrow files by an extension that is not installed with it."""
    duckdb = pytest.importorskip("duckdb", reason=f"DuckDB {MISSING}")
    pattern = f"{output}/**/*.arrow"
    found = duckdb.execute("SELECT file FROM glob($1)", [pattern]).fetchall()
    rows = 0
    for (path,) in found:
        with pa.memory_map(path) as file:
            rows += pa.ipc.open_file(file).read_all().num_rows
    assert rows == row_count(output)


@pytest.fixture
def old_output(output: Path, tmp_path: Path) -> Path:
    """The same files where version 3 of the manifest had them."""
    old = tmp_path / "out"
    shutil.copytree(output, old)
    for path in sorted((old / OWN).rglob("*")):
        if path.is_file():
            target = old / path.relative_to(old / OWN)
            if target.parts[-2] == "sidecars" or "sidecars" in target.parts:
                target = old / path.relative_to(old / OWN / "sidecars")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    shutil.rmtree(old / OWN)
    manifest = json.loads((old / "manifest.json").read_bytes())
    (old / "manifest.json").write_text(json.dumps(manifest | {"version": 3}))
    return old


def test_an_output_of_the_earlier_layout_is_refused_by_its_version(
    old_output: Path, tmp_path: Path, run: Run
) -> None:
    export = ("export", old_output, "--to", "npy", "--output", tmp_path / "npy")
    for command in (("verify", old_output), ("head", old_output), export):
        refused = run(*command)
        assert refused.code == 1
        assert f"{old_output}/manifest.json: is of version 3" in refused.err
        # The same encode command, which repairs outputs, refuses this one.
        assert "encode again into another folder, or with --overwrite" in refused.err
    with pytest.raises(OutputError, match="is of version 3"):
        TokenShards(old_output)


def test_overwriting_clears_the_earlier_layout(
    old_output: Path, output: Path, model_dir: Path, run: Run, tree_bytes: Tree
) -> None:
    (old_output / "notes.json").write_text("mine")
    layout = json.loads((output / OWN / "run.json").read_bytes())["settings"]
    options = LAYOUTS["splits" if layout["splits"] else "packed" if layout["pack"] else "rows"]
    command = ("encode", "--input", output.parent / "a.jsonl", "--tokenizer", model_dir)
    command = (*command, "--on-bad-record", "skip", "--output", old_output, *options)
    before = tree_bytes(old_output)
    refused = run(*command)
    assert refused.code == 1
    assert "an earlier version of beam-bpe" in refused.err
    assert tree_bytes(old_output) == before
    done = run(*command, "--overwrite")
    assert done.code == 0, done.err
    found = tree_bytes(old_output)
    assert found.pop("notes.json") == b"mine"
    assert found == tree_bytes(output)
    assert run("verify", old_output).code == 0
