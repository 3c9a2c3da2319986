"""A model directory that was changed or lost a file is named, with what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe import (
    ModelFileError,
    Tokenizer,
    load_tokenizer,
)
from tests.bpe.model_cases import NAMES, edit, make


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "config.json"])
def test_a_changed_file_is_named_with_both_hashes(name: str, directory: Path) -> None:
    path = directory / name
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes() + b"\n")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(ModelFileError, match=rf"{name}: sha256 is {found}, .* says {expected}"):
        Tokenizer.load(directory)


@pytest.mark.parametrize("content", ["", '{"format":', "null", "[]", None])
@pytest.mark.parametrize("without", [(), ("golden.jsonl",), ("tokenizer.json",)])
def test_a_damaged_configuration_is_not_passed_by(
    content: str | None, without: tuple[str, ...], directory: Path
) -> None:
    """Its tokenizer.json, or vocab.json and merges.txt, would load without any check."""
    for name in without:
        (directory / name).unlink()
    if content is not None:
        (directory / "config.json").write_text(content)
    elif without != ("golden.jsonl",):
        (directory / "config.json").unlink()
    with pytest.raises(ModelFileError, match=r"config\.json|golden\.jsonl"):
        load_tokenizer(directory)


@pytest.mark.parametrize("content", [None, '{"model_type": "gpt2"}'])
def test_another_programs_configuration_is_not_ours(content: str | None, directory: Path) -> None:
    (directory / "golden.jsonl").unlink()
    (directory / "config.json").unlink()
    if content is not None:
        (directory / "config.json").write_text(content)
    assert load_tokenizer(directory).scheme.name == make().scheme.name


@pytest.mark.parametrize("name", [name for name in NAMES if name != "config.json"])
def test_a_missing_file_is_named(name: str, directory: Path) -> None:
    (directory / name).unlink()
    with pytest.raises(ModelFileError, match=rf"model/{name}: no such file"):
        Tokenizer.load(directory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format_version=9), r"format_version is 9, .* reads 1 to 5; it was wr"),
        (lambda c: c.pop("format"), r"config\.json: format is None, .*another program"),
        (lambda c: c.update(scheme="cl100k"), r"config\.json: the digest is .* was changed after"),
        (lambda c: c.update(scheme="gpt7"), r"config\.json: unknown pre-tokenizer 'gpt7'"),
        (lambda c: c.update(scheme=7), r"config\.json: 'scheme' is 7, where a str is expected"),
        (lambda c: c.update(whole_piece=True), r"config\.json: the digest is"),
        (lambda c: c.update(normalizer="NFX"), r"normalizer 'NFX' is not known"),
        (lambda c: c.update(unicode_version="15.1.0"), r"of 15\.1\.0, these are of 16\.0\.0; use"),
        (lambda c: c["added_tokens"][0].update(id=5), r"'<\|end\|>' has id 5, .*another id"),
        (lambda c: c["added_tokens"][0].pop("lstrip"), r"'added_tokens' holds .*ordinary is exp"),
        (lambda c: c["added_tokens"][1].update(special=False), r"config\.json: the digest is"),
        (lambda c: c["files"].pop("golden.jsonl"), r"'files' does not list golden\.jsonl"),
        (lambda c: c["files"].update({"../x": ""}), r"'files' lists '\.\./x'"),
    ],
)
def test_a_changed_configuration_is_named(
    change: Callable[[dict[str, Any]], Any], message: str, directory: Path
) -> None:
    edit(directory / "config.json", change)
    with pytest.raises(ModelFileError, match=message):
        Tokenizer.load(directory)
