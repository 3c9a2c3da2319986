"""20 MB of English and of Chinese, trained and encoded end to end as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
SIZE = 20_971_520
WAYS = {
    "one thread": ["--direct_num_workers=1"],
    "two threads": ["--direct_num_workers=2"],
    "two processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
}


def unpack(packed: Path, target: Path) -> None:
    """The first 20 MiB of a corpus."""
    with packed.open("rb") as file:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file)
        target.write_bytes(reader.read(SIZE))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packed", "name", "listed"),
    [
        ("en200.txt.zst", "en20.txt", "hf_en20_8192"),
        ("zh100.json.zst", "zh20.json", "hf_zh20_1024"),
    ],
)
def test_a_corpus_gives_the_published_merges_and_token_count_and_the_same_shards(
    packed: str,
    name: str,
    listed: str,
    shared_data: Path,
    data_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    source = tmp_path / name
    unpack(shared_data / "corpora" / packed, source)
    golden = json.loads((data_dir / "merges" / f"{listed}.json").read_bytes())
    text = ("--input", source, "--input-format", "text")
    model = tmp_path / "model"
    done = run("train", *text, "--vocab-size", golden["vocab_size"], "--output", model)
    assert done.code == 0, done.err
    merges = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in golden["merges"]]
    assert Tokenizer.load(model).merges == merges
    trees = []
    for way, options in WAYS.items():
        output = tmp_path / way
        done = run("encode", *text, "--tokenizer", model, "--output", output, *options)
        assert done.code == 0, done.err
        trees.append(tree_bytes(output))
    assert trees[0] == trees[1] == trees[2]
    manifest = json.loads((tmp_path / "one thread" / "__beam-bpe__/manifest.json").read_bytes())
    assert manifest["totals"]["bytes"] == SIZE
    assert manifest["totals"]["tokens"] == golden["tokens"]
    assert run("verify", tmp_path / "one thread").code == 0
