"""The example of an own pipeline, run as a script, and the names that `pipelines` exports."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bpe
import pipelines
from bpe.tokenizer import Tokenizer
from pipelines import ReadOptions
from pipelines.corpus import plan

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "own_pipeline.py"


def _write_corpus(folder: Path, documents: int) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("a.jsonl", "b.jsonl"):
        rows = [
            json.dumps({"doc": {"content": f"{name}, text {row}: the words of the corpus"}})
            for row in range(documents)
        ]
        (folder / name).write_text("\n".join(rows) + "\n")


def test_the_example_leaves_an_output_that_verify_accepts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., Any],
) -> None:
    _write_corpus(tmp_path / "corpus", 100)
    out = tmp_path / "out"
    # Each of the small files weighs a unit of its own, so that there are several.
    monkeypatch.setattr(plan, "FILE_COST_BYTES", ReadOptions().range_bytes)
    arguments = [str(EXAMPLE), str(tmp_path / "corpus"), str(out), "doc.content"]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    verified = run("verify", out / "tokens")
    assert verified.code == 0, verified.err
    assert run("verify", out / "tokenizer").code == 0
    manifest_file = out / "tokens" / "__beam-bpe__" / "manifest.json"
    manifest = json.loads(manifest_file.read_text())
    assert manifest["totals"]["documents"] == 200
    assert manifest["tokenizer_digest"] == Tokenizer.load(out / "tokenizer" / "350").digest
    shown = run("head", out / "tokens", "--rows", 1)
    assert shown.code == 0, shown.err
    assert "text 0: the words" in shown.out

    # What an interrupted run left is completed, and what was whole is not made again.
    shards = sorted((out / "tokens").glob("shard-*.arrow"))
    assert len(shards) == 2
    shards[-1].unlink()
    manifest_file.unlink()
    kept = {shard: shard.stat().st_mtime_ns for shard in shards[:-1]}
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert run("verify", out / "tokens").code == 0
    assert {shard: shard.stat().st_mtime_ns for shard in kept} == kept


def test_the_example_says_how_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "corpus"])
    with pytest.raises(SystemExit, match=r"usage: .*own_pipeline\.py CORPUS OUTPUT"):
        runpy.run_path(str(EXAMPLE), run_name="__main__")


def test_every_public_name_is_found_and_listed() -> None:
    for name in pipelines.__all__:
        assert getattr(pipelines, name).__name__ == name
    assert set(pipelines.__all__) <= set(dir(pipelines))
    with pytest.raises(AttributeError, match="no attribute 'CountTokens'"):
        pipelines.__getattr__("CountTokens")


def test_every_name_of_the_library_is_found() -> None:
    for name in bpe.__all__:
        assert getattr(bpe, name) is not None
    assert set(bpe.__all__) <= set(dir(bpe))
    assert bpe.load_tokenizer == Tokenizer.load
    with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
        bpe.__getattr__("Trainer")


def test_importing_the_package_does_without_beam() -> None:
    code = "import sys, pipelines; dir(pipelines); sys.exit('apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
