"""What `--special-text=reject` says of a special token in the corpus."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize("command", ["train", "encode"])
@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("b.txt", "0123\n<|endoftext|>", "at byte 5; "),
        (
            "b.jsonl",
            '{"text": "a", "id": "x/0"}\n{"text": "b<|endoftext|>", "id": "x/1"}\n',
            "in the row at byte 27; ",
        ),
        (
            "b.csv",
            'text,id\na,x/0\n"b<|endoftext|>",x/1\n',
            "in the row at byte 14; ",
        ),
    ],
)
def test_a_rejected_special_token_is_named_with_its_document_and_byte(
    command: str, name: str, content: str, place: str, tmp_path: Path, model_dir: Path, run: Run
) -> None:
    (tmp_path / "a.txt").write_text("nothing here")
    (tmp_path / name).write_text(content)
    how: list[object] = ["--tokenizer", model_dir]
    if command == "train":
        how = ["--vocab-size", 300, "--special-token", "<|endoftext|>"]
    document_ids = ["--id-field", "id"] if name != "b.txt" else []
    refused = run(
        *(command, "--input", tmp_path / "a.txt", tmp_path / name, "--output", tmp_path / "out"),
        *(*how, *document_ids, "--special-text", "reject"),
    )
    assert refused.code == 1
    document = "x/1" if document_ids else "1:0"
    assert f"{name}: document {document} holds the special token '<|endoftext|>' {place}" in (
        refused.err
    )
    assert "--special-text=text" in refused.err
    assert "--special-text=allow" in refused.err
    assert "texts[" not in refused.err
