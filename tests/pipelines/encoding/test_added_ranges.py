"""Documents with added tokens in them, read in ranges: the ids are those of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe import Tokenizer
from bpe.encoding.added_tokens import AddedToken
from bpe.errors import BadFileError
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.encoding.encode_long_documents import PieceEncoder
from pipelines.shards.token_shards import TokenShards

SPACES = [AddedToken(" " * count, 300 + count, special=False) for count in range(2, 9)]
# One of the second pass lies across a special token of the first, which may not count.
OTHERS = [
    AddedToken("<a>", 290),
    AddedToken("a>b", 291, special=False, normalized=True),
    AddedToken("\n\n<", 292, special=False),
]
TEXT = b"if x:\n      y  <a>b = 1\n\n<a>b" * 9 + b" " * 77 + b"<a>" * 9 + b"a>b" * 9 + b"1" * 50


def make(scheme: str, tokens: list[AddedToken]) -> Tokenizer:
    plain = Tokenizer.from_merges([(b"a", b"b"), (b" ", b" "), (b"1", b"1")], pretokenizer=scheme)
    return Tokenizer(replace(plain.model, added_tokens=tokens))


def ids_by_ranges(tokenizer: Tokenizer, path: Path, read: ReadOptions, policy: str) -> list[int]:
    plan = make_plan(list_inputs([str(path)], read), read)
    ids: list[int] = []
    for unit in plan.units:
        encoder = PieceEncoder(tokenizer, policy, unit, limit_bytes=read.max_row_bytes)
        pieces = read_unit(unit, read, tokenizer.cut_finder(policy), Rejects(unit, read))
        for batch in pieces:
            for piece, encoded in encoder.encode(batch):
                assert tokenizer.decode(encoded.flatten()) == b"".join(piece["text"].to_pylist())
                ids += np.asarray(encoded.flatten()).tolist()
    return ids


@pytest.mark.parametrize("policy", ["text", "allow"])
@pytest.mark.parametrize("scheme", ["gpt2", "cl100k", "none"])
def test_ranges_cut_no_added_token(scheme: str, policy: str, tmp_path: Path) -> None:
    tokenizer = make(scheme, SPACES + OTHERS)
    (tmp_path / "a.txt").write_bytes(TEXT)
    expected = tokenizer.encode(TEXT, special_text=policy).tolist()
    assert {308, 291} < set(expected)
    assert (290 in expected) == (policy == "allow")
    for range_bytes in (1, 2, 3, 7, 16, 50, 64, 200):
        read = ReadOptions(range_bytes=range_bytes)
        assert ids_by_ranges(tokenizer, tmp_path / "a.txt", read, policy) == expected


def test_tokens_that_look_around_are_exact_or_refused(tmp_path: Path) -> None:
    tokenizer = make("gpt2", [*SPACES, AddedToken("x:", 299, lstrip=True, special=False)])
    (tmp_path / "a.txt").write_bytes(TEXT)
    read = ReadOptions(range_bytes=16)
    plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
    finder = tokenizer.cut_finder()
    (batch,) = (
        b for unit in plan.units for b in read_unit(unit, read, finder, Rejects(unit, read))
    )
    assert batch["text"].to_pylist() == [TEXT]
    small = ReadOptions(range_bytes=16, max_row_bytes=100)
    with pytest.raises(BadFileError, match="longer than --max-row-bytes=100"):
        list(read_unit(plan.units[0], small, finder, Rejects(plan.units[0], small)))
    assert get_scheme("none") == finder.scheme


def test_what_the_file_would_do_to_texts_is_said(tmp_path: Path, run: Callable[..., Any]) -> None:
    marks = {"cls": ["<s>", 290], "sep": ["</s>", 291]}
    tokens = [AddedToken("<s>", 290), AddedToken("</s>", 291), AddedToken("<m>", 292, lstrip=True)]
    model = replace(
        make("gpt2", tokens).model, post_processor={"type": "RobertaProcessing", **marks}
    )
    Tokenizer(model).save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("ab  <m>ab")
    how = ("encode", "--input", tmp_path / "a.txt", "--tokenizer", tmp_path / "model")
    done = run(*how, "--output", tmp_path / "text")
    assert done.code == 0, done.err
    assert done.err.count("'<s>' before and '</s>' after") == 1
    assert "--prepend-bos='<s>' --append-eos='</s>' does so" in done.err
    assert "white space" not in done.err
    options = ("--prepend-bos=<s>", "--append-eos=</s>")
    done = run(*how, "--output", tmp_path / "allow", *options, "--special-text=allow")
    assert done.code == 0, done.err
    assert "before and" not in done.err
    assert done.err.count("take the white space next to them ('<m>')") == 1
    ids = TokenShards(tmp_path / "allow").document(0).tolist()
    assert ids == [290, 256, 292, 256, 291]
    assert run("verify", tmp_path / "allow").code == 0
