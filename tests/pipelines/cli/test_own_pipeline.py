"""The worked example of `pipelines`, run as it stands, and the names that the package exports."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipelines
from bpe.tokenizer import Tokenizer
from pipelines import ReadOptions
from pipelines.corpus import plan

ROOT = Path(__file__).resolve().parents[3]
_TITLE = "A pipeline of your own, from JSON Lines to shards:\n"


def _example() -> str:
    """The indented lines below the example's title in the docstring of `pipelines`."""
    lines: list[str] = []
    for line in str(pipelines.__doc__).split(_TITLE)[1].splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines))


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
    monkeypatch.chdir(tmp_path)
    # Each of the small files weighs a unit of its own, so that there are several.
    monkeypatch.setattr(plan, "FILE_COST_BYTES", ReadOptions().range_bytes)
    code = compile(_example(), "docstring of pipelines", "exec")
    exec(code, {"__name__": "example"})
    verified = run("verify", "enc")
    assert verified.code == 0, verified.err
    assert run("verify", "tok").code == 0
    manifest = json.loads((tmp_path / "enc" / "__beam-bpe__/manifest.json").read_text())
    assert manifest["totals"]["documents"] == 200
    assert manifest["tokenizer_digest"] == Tokenizer.load(tmp_path / "tok" / "350").digest
    shown = run("head", "enc", "--rows", 1)
    assert shown.code == 0, shown.err
    assert "text 0: the words" in shown.out

    # What an interrupted run left is completed, and what was whole is not made again.
    shards = sorted((tmp_path / "enc").glob("shard-*.arrow"))
    assert len(shards) == 2
    shards[-1].unlink()
    (tmp_path / "enc" / "__beam-bpe__/manifest.json").unlink()
    kept = {shard: shard.stat().st_mtime_ns for shard in shards[:-1]}
    exec(code, {"__name__": "example"})
    assert run("verify", "enc").code == 0
    assert {shard: shard.stat().st_mtime_ns for shard in kept} == kept


def test_every_public_name_is_found_and_listed() -> None:
    for name in pipelines.__all__:
        assert getattr(pipelines, name).__name__ == name
    assert set(pipelines.__all__) <= set(dir(pipelines))
    with pytest.raises(AttributeError, match="no attribute 'CountTokens'"):
        pipelines.__getattr__("CountTokens")


def test_importing_the_package_does_without_beam() -> None:
    code = "import sys, pipelines; dir(pipelines); sys.exit('apache_beam' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
