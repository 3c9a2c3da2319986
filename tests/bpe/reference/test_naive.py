"""The specification gives a published worked example, and so does every backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe.backends.values import MergeRules
from bpe.reference.naive import naive_merges
from bpe.training import train

WORDS = {"press": 8, "pressed": 3, "printer": 4, "printed": 5, "printing": 6}
END = b"<"  # one byte in place of the example's </w>; it sorts before the letters as that does


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("rule", "tie_order"), [("first", "first"), ("lex", "bytes"), ("id", "id")]
)
def test_print_shop(data_dir: Path, rule: str, tie_order: str) -> None:
    steps = json.loads((data_dir / "merges" / "printshop.json").read_text())["runs"]
    steps = steps[f"count/{rule}"]["merges"]
    words = {word.encode() + END: count for word, count in WORDS.items()}
    rules = MergeRules(len(steps), tie_order, min_frequency=1)
    learned = naive_merges(words.items(), rules)
    pairs = [tuple(part.encode().replace(b"</w>", END) for part in step["pair"]) for step in steps]
    assert learned.merges == pairs
    assert learned.counts == [step["count"] for step in steps]
    tokenizer = train(
        words, 256 + len(steps), pretokenizer="none", tie_order=tie_order, min_frequency=1
    )
    assert tokenizer.merges == pairs
