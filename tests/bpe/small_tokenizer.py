"""A tokenizer of a few merges, with special tokens of which one begins with another."""

from __future__ import annotations

from dataclasses import replace

from bpe import Tokenizer

MERGES = [
    (b"a", b"b"),
    (b" ", b"ab"),
    (b"a", b"a"),
    (b"\xc3", b"\xa9"),
    (b"1", b"2"),
    (b"\r", b"\n"),
    (b"aa", b"aa"),
    (b"e", b"\xcc"),
]
SPECIAL_TOKENS = ["<|end|>", "<|end|>!", "<pad>"]
FIRST_SPECIAL = 256 + len(MERGES)


def make(pretokenizer: str = "gpt2", tie_order: str = "hf") -> Tokenizer:
    return Tokenizer.from_merges(
        MERGES,
        pretokenizer=pretokenizer,
        tie_order=tie_order,
        special_tokens=SPECIAL_TOKENS,
        training={"inputs": ["x"]},
    )


def make_nfc() -> Tokenizer:
    return Tokenizer(replace(make().model, normalizer="NFC"))
