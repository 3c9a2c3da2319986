"""Real tokenizer files of model families give the ids of their own library."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from bpe import Tokenizer

FAMILIES = (
    *("codegen", "gpt-neox", "gpt-oss", "olmo-1", "olmo-2", "phi-2", "qwen3", "roberta"),
    "whisper-tiny",
)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_those_of_the_library(family: str, shared_data: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    zoo = shared_data / "zoo"
    path = tmp_path / "tokenizer.json"
    packed = (zoo / "files" / family / f"{path.name}.xz").read_bytes()
    path.write_bytes(lzma.decompress(packed))
    ours = Tokenizer.from_huggingface(path)
    again = tmp_path / "again.json"
    ours.to_huggingface(again)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    written = tokenizers.Tokenizer.from_file(str(again))
    theirs.encode_special_tokens = True
    lines = (zoo / "expected" / f"{family}.jsonl").read_text().splitlines()
    for case in map(json.loads, lines):
        text = case["text"]
        assert ours.encode(text, special_text="allow").tolist() == case["ids"], text
        assert written.encode(text, add_special_tokens=False).ids == case["ids"], text
        as_text = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text).tolist() == as_text, text
    theirs.encode_special_tokens = False
    assert written.encode("a<s>b").ids == theirs.encode("a<s>b").ids
    # What is special is what decoding leaves out.
    every = list(range(ours.max_id + 1))
    assert written.decode(every[-2000:]) == theirs.decode(every[-2000:])
    before, after = json.loads(path.read_text()), json.loads(again.read_text())
    assert after["post_processor"] == before["post_processor"]
    assert after["added_tokens"] == before["added_tokens"]
