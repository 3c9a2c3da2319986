"""Tokenizers that go on from others: old merges and ids stay, and so do texts of old tokens."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe import CountTableError, SettingsError, Tokenizer, VocabularyError, extend, train
from bpe.counting import count_pretokens
from bpe.encoding.byte_rows import BYTE_PRESETS
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.extension import extend_to_sizes

WORDS = st.text("abc ", min_size=1, max_size=7).map(str.encode)
COUNTS = st.dictionaries(WORDS, st.integers(1, 9), min_size=1, max_size=12)


def naive(base: Tokenizer, counts: dict[bytes, int], wanted: int, least: int) -> list[Any]:
    """Merges by full recounts, ties to the lower pair of ids; never of a token that is there."""
    model = base.model
    tokens = dict(model.tokens)
    known = set(model.all_tokens.values())
    merger = Tokenizer.from_merges(base.merges, pretokenizer="none")
    ids = {data: i for i, data in tokens.items()}
    rows = [
        ([ids[merger.token_bytes(i)] for i in merger.encode(word)], count)
        for word, count in counts.items()
    ]
    merges: list[tuple[int, int, int]] = []
    while len(merges) < wanted:
        pairs: Counter[tuple[int, int]] = Counter()
        for row, count in rows:
            for pair in pairwise(row):
                pairs[pair] += count
        allowed = [p for p in pairs if tokens[p[0]] + tokens[p[1]] not in known]
        best = min(allowed, key=lambda p: (-pairs[p], p), default=None)
        if best is None or pairs[best] < least:
            break
        made = model.max_id + 1 + len(merges)
        tokens[made] = tokens[best[0]] + tokens[best[1]]
        known.add(tokens[made])
        merges.append((*best, made))
        for row, _ in rows:
            at = 0
            while at + 1 < len(row):
                if (row[at], row[at + 1]) == best:
                    row[at : at + 2] = [made]
                at += 1
    return merges


@pytest.mark.usefixtures("backend")
@given(first=COUNTS, second=COUNTS, sizes=st.tuples(st.integers(0, 6), st.integers(0, 9)))
@settings(max_examples=60)
def test_merges_are_those_of_a_full_recount(
    first: dict[bytes, int], second: dict[bytes, int], sizes: tuple[int, int]
) -> None:
    base = train(first, 257 + sizes[0], pretokenizer="gpt2", special_tokens=["ab"])
    made = extend(second, base, base.vocab_size + sizes[1], min_frequency=2)
    old = len(base.merges)
    assert made.model.merges[:old] == base.model.merges
    assert made.model.merges[old:] == naive(base, second, sizes[1], 2)


@given(
    first=COUNTS,
    second=COUNTS,
    texts=st.lists(st.text("abc d1\n", max_size=20).map(str.encode) | st.binary(max_size=8)),
)
def test_a_text_without_new_tokens_keeps_its_ids(
    first: dict[bytes, int], second: dict[bytes, int], texts: list[bytes]
) -> None:
    base = train(first, 262, pretokenizer="gpt2", min_frequency=1, special_tokens=["d1"])
    made = extend(second, base, base.vocab_size + 9, min_frequency=1, special_tokens=["<x>"])
    new = made.vocab_size - base.vocab_size
    assert set(base.model.all_tokens.items()) <= set(made.model.all_tokens.items())
    assert sorted(set(made.model.all_tokens) - set(base.model.all_tokens)) == [
        base.max_id + 1 + place for place in range(new)
    ]
    for text in texts:
        for policy in ("text", "allow"):
            ids = made.encode(text, special_text=policy)
            assert made.decode(ids) == text
            if not (ids > base.max_id).any():
                assert ids.tolist() == base.encode(text, special_text=policy).tolist()


@pytest.mark.parametrize("tie_order", ["hf", "id", "bytes"])
def test_going_on_with_the_same_text_is_one_training(tie_order: str, data_dir: Path) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()[:100_000]
    counts = count_pretokens([text], "gpt2")
    whole = train(counts, 700, pretokenizer="gpt2", tie_order=tie_order)
    base = train(counts, 400, pretokenizer="gpt2", tie_order=tie_order)
    assert extend(counts, base, 700).digest == whole.digest
    sizes = extend_to_sizes(counts, base, [450, 700])
    assert sizes[450] == whole.truncate(450)
    assert sizes[700] == whole


@pytest.mark.slow
def test_a_published_tokenizer_keeps_its_ids(
    published_models: dict[str, TokenizerModel], data_dir: Path
) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()[:300_000]
    for model in published_models.values():
        base = Tokenizer(model)
        made = extend(count_pretokens([text], base.scheme.name), base, base.vocab_size + 200)
        assert made.special_tokens == base.special_tokens
        kept = 0
        for line in text.splitlines()[:2000]:
            ids = made.encode(line)
            assert made.decode(ids) == line
            if not (ids > base.max_id).any():
                kept += 1
                assert ids.tolist() == base.encode(line).tolist()
        assert 0 < kept < 2000
        assert len(made.encode(text)) < len(base.encode(text))


def test_an_extended_tokenizer_is_saved(tmp_path: Path) -> None:
    base = train({b"low": 9}, 258, pretokenizer="gpt2", special_tokens=["<|end|>"])
    made = extend({b"lower": 9, b"wider": 5}, base, 261, special_tokens=["<x>", "<|end|>"])
    assert made.special_tokens == {"<|end|>": 257, "<x>": 260}
    assert made.training["extends"] == base.digest
    made.save(tmp_path / "made")
    loaded = Tokenizer.load(tmp_path / "made")
    assert loaded == made
    assert (
        loaded.encode("lower<x>", special_text="allow").tolist()
        == made.encode("lower<x>", special_text="allow").tolist()
    )
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "made" / "tokenizer.json"))
    text = "lower wider<|end|>low"
    assert library.encode(text).ids == made.encode(text, special_text="allow").tolist()


def test_what_cannot_be_extended_is_refused() -> None:
    base = train({b"low": 9}, 257, pretokenizer="gpt2")
    with pytest.raises(SettingsError, match="vocab_size is 256"):
        extend({b"a": 1}, base, 256)
    with pytest.raises(SettingsError, match="tie order 'first'"):
        extend({b"a": 1}, base, 258, tie_order="first")
    with pytest.raises(CountTableError, match="scheme"):
        extend(count_pretokens([b"a b"], "cl100k"), base, 258)
    for name in BYTE_PRESETS:
        with pytest.raises(VocabularyError, match="numbers bytes"):
            extend({b"a": 1}, Tokenizer.load(name), 900)
