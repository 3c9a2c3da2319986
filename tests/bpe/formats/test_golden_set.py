"""The golden set of a model directory: checked when it is loaded, and extended by a user."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from bpe import (
    ModelFileError,
    Tokenizer,
    extend_golden,
)
from bpe.formats.golden import default_texts
from bpe.pretokenizing.schemes import get_scheme
from tests.bpe.model_cases import edit, make

NAMES = [
    "config.json",
    "golden.jsonl",
    "merges.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make().save(tmp_path / "model")
    return tmp_path / "model"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def golden_rows(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "golden.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines if line]


def forge_golden(directory: Path, content: str) -> None:
    """Replace golden.jsonl and make config.json agree, so that only the ids are left to judge."""
    (directory / "golden.jsonl").write_text(content)
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    edit(directory / "config.json", lambda config: config["files"].update({"golden.jsonl": sha256}))


def test_default_texts_hold_what_matters() -> None:
    texts = default_texts(get_scheme("gpt2"), ["<|end|>"])
    together = b"\n".join(texts)
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    for wanted in ("\x00", family, "<|end|>", "'s", "1234", "\r\n", "床", "ſ", "e\u0301"):
        assert wanted.encode() in together
    assert b"\xff" in together
    assert b"" in texts
    assert rb"\w+" in default_texts(get_scheme(r"regex:\w+"), [])


def test_the_golden_set_holds_the_tokenizers_ids(directory: Path) -> None:
    tokenizer = make()
    rows = golden_rows(directory)
    assert len(rows) > 15
    assert any("base64" in row for row in rows)
    for row in rows:
        data = row["text"].encode() if "text" in row else base64.b64decode(row["base64"])
        assert tokenizer.encode(data).tolist() == row["ids"]


@pytest.mark.usefixtures("backend")
def test_other_ids_are_named_with_line_and_both_lists(directory: Path) -> None:
    forge_golden(directory, '{"text":"x","ids":[120]}\n{"text":" ab","ids":[1,2]}\n')
    with pytest.raises(
        ModelFileError,
        match=r"model/golden\.jsonl, line 2: b' ab' must have the ids \[1, 2\], but has \[257\]",
    ):
        Tokenizer.load(directory)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text":"x"', r"golden\.jsonl, line 2, column \d+: not JSON"),
        ('{"ids":[1]}', r"line 2: .* needs either a 'text' or a 'base64'"),
        ('{"text":"x","base64":"eA==","ids":[1]}', r"line 2: .* needs either"),
        ("[1]", r"line 2: '\[1\]' needs either"),
        ('{"text":"x"}', r"line 2: 'ids' is None, not a list of integers"),
        ('{"text":"x","ids":[true]}', r"line 2: 'ids' is \[True\]"),
        ('{"text":"x","ids":[1.5]}', r"line 2: 'ids' is \[1\.5\]"),
        ('{"base64":"e","ids":[1]}', r"line 2: 'base64' cannot be decoded"),
        ('{"base64":5,"ids":[1]}', r"line 2: 'base64' is 5, not a string"),
        (
            '{"text":"\\ud800","ids":[1]}',
            r"line 2: text is '\\ud800', which holds a lone surrogate",
        ),
    ],
)
def test_a_bad_golden_line_is_named(line: str, message: str, directory: Path) -> None:
    forge_golden(directory, f'{{"text":"x","ids":[120]}}\n{line}\n')
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.load(directory)


def test_lines_of_text_extend_the_golden_set(directory: Path, tmp_path: Path) -> None:
    before = golden_rows(directory)
    (tmp_path / "more.txt").write_text("first ab\r\nsecond\u2028ab\n\nfirst ab 2\n")
    # The empty line is there already.
    assert extend_golden(directory, tmp_path / "more.txt") == 3
    added = golden_rows(directory)[len(before) :]
    assert [row["text"] for row in added] == ["first ab", "second\u2028ab", "first ab 2"]
    assert Tokenizer.load(directory).digest == make().digest
    assert extend_golden(directory, tmp_path / "more.txt") == 0
    assert names_in(directory) == NAMES


def test_json_lines_extend_the_golden_set_and_their_ids_are_checked(
    directory: Path, tmp_path: Path
) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text('{"base64":"/2Fi"}\n{"text":" ab ab","ids":[257,257]}\n')
    assert extend_golden(directory, more) == 2
    assert golden_rows(directory)[-2:] == [
        {"base64": "/2Fi", "ids": [255, 256]},
        {"text": " ab ab", "ids": [257, 257]},
    ]
    before = (directory / "golden.jsonl").read_bytes()
    more.write_text('{"text":"x"}\n{"text":" ab","ids":[0]}\n')
    with pytest.raises(ModelFileError, match=r"more\.jsonl, line 2: b' ab' must have the ids"):
        extend_golden(directory, more)
    assert (directory / "golden.jsonl").read_bytes() == before
    with pytest.raises(ModelFileError, match=r"nothing\.txt: no such file"):
        extend_golden(directory, tmp_path / "nothing.txt")
