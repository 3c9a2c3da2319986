"""tekken.json: ids after those of the special tokens, and what is refused."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe import Tokenizer, load_tokenizer
from bpe.errors import ModelFileError

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b" ab", b"12"]


def document(**changes: Any) -> dict[str, Any]:
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(TOKENS)
    ]
    config = {
        "pattern": r"\p{N}| ?\p{L}+|[^\p{L}\p{N}]",
        "num_vocab_tokens": len(TOKENS),
        "default_vocab_size": 5 + 258,
        "default_num_special_tokens": 5,
        "version": "v13",
    }
    specials = [
        {"rank": rank, "token_str": text, "is_control": True}
        for rank, text in enumerate(["<unk>", "<s>", "</s>"])
    ]
    whole = {"config": config, "vocab": vocab, "special_tokens": specials}
    for name, value in changes.items():
        (config if name in config else whole)[name] = value
    return whole


def write(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "tekken.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.usefixtures("backend")
def test_ids_come_after_the_special_tokens(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    for place in (path, tmp_path):
        tokenizer = load_tokenizer(place)
        data = b"<s>ab ab12 \xff"
        ids = tokenizer.encode(data, special_text="allow")
        assert ids.tolist() == [1, 261, 262, 5 + 49, 5 + 50, 5 + 32, 5 + 255]
        assert tokenizer.decode(ids) == data
        assert tokenizer.encode("<s>").tolist() == [5 + 60, 5 + 115, 5 + 62]
        assert list(tokenizer.special_tokens) == [
            *("<unk>", "<s>", "</s>", "<SPECIAL_3>", "<SPECIAL_4>")
        ]
    tokenizer.save(tmp_path / "saved")
    assert Tokenizer.from_directory(tmp_path / "saved").digest == tokenizer.digest


def test_an_older_file_has_the_special_tokens_of_its_version(tmp_path: Path) -> None:
    older = document(version="v3", default_num_special_tokens=20, default_vocab_size=278)
    del older["special_tokens"]
    tokenizer = load_tokenizer(write(tmp_path, older))
    assert tokenizer.special_tokens["[INST]"] == 3
    assert tokenizer.special_tokens["[TOOL_CONTENT]"] == 19
    assert tokenizer.encode("ab").tolist() == [276]


def _in_vocab(**entry: Any) -> Callable[[dict[str, Any]], None]:
    return lambda whole: whole["vocab"][7].update(entry)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda whole: whole.update(config=None), "config is null, not an object"),
        (
            lambda whole: whole.update(config={"default_num_special_tokens": 9}),
            "config.default_vocab_size is null, not a number",
        ),
        (lambda whole: whole.update(special_tokens=None), r"special_tokens is null, .* 'v13'"),
        (
            lambda whole: whole["special_tokens"][1].update(rank=7),
            r"special_tokens\[1\] is .*rank 1",
        ),
        (lambda whole: whole["special_tokens"][1].update(token_str="<unk>"), "'<unk>' is there tw"),
        (
            lambda whole: whole["config"].update(default_num_special_tokens=2),
            "are 3 special tokens",
        ),
        (
            lambda whole: whole["config"].update(default_vocab_size=999),
            "259 tokens, .* must be 994",
        ),
        (lambda whole: whole["config"].update(default_vocab_size=5), "must be 0"),
        (lambda whole: whole["config"].update(default_vocab_size=-1), "is -1, not a number from"),
        (
            lambda whole: whole["config"].update(pattern=["a"]),
            r"pattern is \[\"a\"\], not a pattern",
        ),
        (lambda whole: whole["config"].update(pattern="(a"), "pattern: .*does not compile"),
        (lambda whole: whole["config"].update(pattern=r"\w+"), r"pattern is .*\\w: not an escape"),
        (lambda whole: whole.update(vocab={"token_bytes": 1}), r"vocab is .* must be 258"),
        (_in_vocab(rank=8), r"vocab\[7\] is .*needs the rank 7"),
        (_in_vocab(token_bytes="AA=="), r"vocab\[7\] is .*that no other token has"),
        (_in_vocab(token_bytes="*"), r"vocab\[7\] is .*in base64"),
        (_in_vocab(token_bytes=None), r"vocab\[7\] is"),
        (_in_vocab(token_bytes="YWJj"), "lacks 1 of the 256 single bytes"),
    ],
)
def test_what_is_wrong_is_named(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    whole = document()
    change(whole)
    # Where the members that tell the form are gone, these words still do.
    whole["note"] = {"token_bytes": 0, "default_num_special_tokens": 0}
    with pytest.raises(ModelFileError, match=rf"tekken\.json: .*{message}"):
        load_tokenizer(write(tmp_path, whole))


def test_a_published_file_gives_the_ids_of_its_library(shared_data: Path, tmp_path: Path) -> None:
    zoo = shared_data / "zoo"
    path = tmp_path / "tekken.json"
    path.write_bytes(lzma.decompress((zoo / "files/tekken/tekken_240718.json.xz").read_bytes()))
    tokenizer = load_tokenizer(path)
    assert tokenizer.vocab_size == 131072
    rows = (zoo / "expected" / "tekken-o.tiktoken.jsonl").read_text().splitlines()
    for row in map(json.loads, rows):
        assert tokenizer.encode(row["text"]).tolist() == row["ids"], row["text"]
    assert tokenizer.encode("[INST]a", special_text="allow").tolist() == [3, 1097]
