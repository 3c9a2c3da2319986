"""The pipeline with a tokenizer that another library encodes: all works as with any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

tokenizers = pytest.importorskip("tokenizers")

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "cat", "##s", "sat", "."]
TEXT = "the cats sat.\na cat\nThe [SEP] dog\n"


@pytest.mark.parametrize("layout", [[], ["--pack", "8", "--pad-id", "0", "--shuffle", "global"]])
def test_encode_verify_and_read(
    layout: list[str], run: Callable, tree_bytes: Callable, tmp_path: Path
) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(TEXT)
    outputs = [tmp_path / "one", tmp_path / "two"]
    for output in outputs:
        done = run(
            *("encode", "--input", tmp_path / "*.txt", "--tokenizer", tmp_path / "bert"),
            *("--output", output, "--append-eos", "[SEP]", *layout),
        )
        assert done.code == 0, done.err
    assert "tokenizers encodes" in done.err.replace(f" {tokenizers.__version__}", "")
    one, two = map(tree_bytes, outputs)
    assert one == two
    manifest = json.loads((outputs[0] / "__beam-bpe__" / "manifest.json").read_text())
    assert manifest["engine"]["name"] == "tokenizers"
    assert manifest["engine"]["kind"] == "WordPiece"
    assert manifest["engine"]["lossy"]
    assert manifest["totals"]["special_text"]["[SEP]"] == 2
    verified = run("verify", outputs[0], "--input", tmp_path / "*.txt")
    assert verified.code == 0, verified.err
    if not layout:
        with pa.OSFile(str(next(outputs[0].glob("*.arrow")))) as file:
            ids = pa.ipc.open_file(file).read_all()["input_ids"].to_pylist()
        assert ids[0] == [4, 6, 7, 8, 9, 5, 6, 4, *[1] * 4, 3]
