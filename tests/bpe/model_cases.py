"""A small tokenizer, and changes to its model directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe import Tokenizer

# The files of a model directory.
NAMES = [
    "config.json",
    "golden.jsonl",
    "merges.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
]
MERGES = [(b"a", b"b"), (b" ", b"ab"), (b"1", b"2"), (b"\xf0", b"\x9f")]


def make(scheme: str = "gpt2", special_tokens: tuple[str, ...] = ("<|end|>", "fin")) -> Tokenizer:
    return Tokenizer.from_merges(
        MERGES,
        pretokenizer=scheme,
        tie_order="id",
        special_tokens=special_tokens,
        training={"inputs": ["é.txt"], "counts_digest": "00", "settings": {"min_frequency": 2}},
    )


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
