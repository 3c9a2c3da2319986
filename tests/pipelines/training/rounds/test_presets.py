"""Presets: the merges of other trainers, through the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Merges = list[tuple[bytes, bytes]]


def golden(data_dir: Path, name: str, key: str = "merges") -> Merges:
    stored = json.loads((data_dir / "merges" / f"{name}.json").read_bytes())[key]
    return [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in stored]


def test_the_sweep_of_feste_is_one_command(
    tiny: Path, data_dir: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("train", "--preset", "feste", "--input", tiny)
    done = run(*command, "--vocab-size", "256,512,1024,1536,2048", "--output", output)
    assert done.code == 0, done.err
    for size in (512, 1024):
        expected = golden(data_dir, f"feste_tiny_{size}")
        assert Tokenizer.load(output / str(size)).merges == expected
    assert Tokenizer.load(output / "256").merges == []
    assert Tokenizer.load(output / "2048").vocab_size == 2048
    shown = run("inspect", output / "512", "--text", "the t")
    assert shown.code == 0
    assert "<74><68><65><20>" in shown.out or "<68><65><20>" in shown.out
    assert "<74>" in shown.out
    overview = run("inspect", output / "512", "--count", 1)
    left, right = (each.hex() for each in golden(data_dir, "feste_tiny_512")[0])
    assert f"<{left}> + <{right}> = <{left}><{right}>" in overview.out


def test_feste_encodes_long_texts_without_joining_its_parts_and_we_join_them(
    tiny: Path, data_dir: Path, tmp_path: Path, run: Run
) -> None:
    """Its count of tokens is that of 100,000-byte parts; ours is that of the whole text."""
    stored = json.loads((data_dir / "merges" / "feste_tiny_512.json").read_bytes())
    command = ("train", "--preset", "feste", "--input", tiny, "--vocab-size", 512)
    assert run(*command, "--output", tmp_path / "out").code == 0
    tokenizer = Tokenizer.load(tmp_path / "out")
    data = tiny.read_bytes()
    parts = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    assert sum(len(tokenizer.encode(part)) for part in parts) == 568_214
    assert len(tokenizer.encode(data)) == 568_210
    assert stored["tokens_chunked_100000"] == 568_214
    assert stored["tokens_unchunked"] == 568_210


def test_the_sample_of_feste_is_taken_by_name(
    tiny: Path, data_dir: Path, tmp_path: Path, run: Run
) -> None:
    command = ("train", "--preset", "feste", "--input", tiny, "--vocab-size", 4096)
    done = run(*command, "--sample-bytes", "feste-200000", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "out").merges == golden(data_dir, "feste_tiny_4096")


@pytest.fixture
def lines(tiny: Path, tmp_path: Path) -> Path:
    """The text by the line, ends kept, as that trainer reads it."""
    path = tmp_path / "lines.jsonl"
    rows = tiny.read_bytes().decode().splitlines(keepends=True)
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("engine", ["driver", pytest.param("rounds", marks=pytest.mark.slow)])
def test_superbpe_makes_the_merges_of_both_stages(
    engine: str, lines: Path, data_dir: Path, tmp_path: Path, run: Run
) -> None:
    expected = golden(data_dir, "superbpe_tiny", "stage2_merges_all")
    command = ("train", "--preset", "superbpe", "--superbpe-from", 1199, "--input", lines)
    size = ("--vocab-size", 256 + len(expected), "--segment-budget", "100kB")
    output = tmp_path / "out"
    done = run(*command, *size, "--engine", engine, "--state-shards", 3, "--output", output)
    assert done.code == 0, done.err
    made = Tokenizer.load(output)
    assert len(expected) == 2435
    assert made.merges == expected
    assert made.scheme.name == "superbpe"
    assert made.training["inherited_merges"] == 1199
    assert Tokenizer.load(output / "first-stage").merges == expected[:1199]
    stage1 = golden(data_dir, "superbpe_tiny", "stage1_merges")
    assert expected[:1199] == stage1[:1199]
    again = run(*command, *size, "--engine", engine, "--state-shards", 3, "--output", output)
    assert "nothing to do" in again.err
    if engine == "rounds":
        assert "rounds" in made.training
        assert sum(row["merges"] for row in made.training["rounds"]) == len(expected) - 1199


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--preset", "superbpe"), "--preset superbpe: needs --superbpe-from"),
        (("--preset", "feste", "--superbpe-from", 5), "does not go with --superbpe-from"),
        (("--preset", "feste", "--tie-order", "hf"), "--preset feste means --tie-order bytes"),
        (("--superbpe-from", 50), "the first stage alone makes 306 tokens"),
        (("--superbpe-from", 9, "--pretokenizer", "none"), "does not go with --pretokenizer none"),
    ],
)
def test_what_contradicts_a_preset_is_refused(
    options: tuple[object, ...], expected: str, short: Path, tmp_path: Path, run: Run
) -> None:
    command = ("train", "--input", short, "--vocab-size", 300, "--output", tmp_path / "out")
    refused = run(*command, *options)
    assert refused.code == 1
    assert expected in refused.err
