"""Figures against golden data, formulas and one another."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.backends.protocol import Backend
from bpe.insight.figures import Counts, compute_figures, entropy_bits, gini, renyi_bits
from bpe.insight.tally import MEASURES, TokenTally, make_tally


@pytest.fixture(scope="module")
def tokenizer(data_dir: Path) -> bpe.Tokenizer:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()
    return bpe.train(bpe.count_pretokens(text, "gpt2"), 1024, pretokenizer="gpt2")


def figures_of(tokenizer: bpe.Tokenizer, documents: list[tuple[bytes, str, str]]) -> dict[str, Any]:
    """Figures of (text, source, language), by one tally."""
    groups = sorted({row[1:] for row in documents})
    texts = pa.array([row[0] for row in documents], pa.large_binary())
    numbers = np.array([groups.index(row[1:]) for row in documents], np.int64)
    tally = TokenTally(tokenizer)
    tally.add(texts, tokenizer.encode_batch(texts), numbers, np.ones(len(documents), np.int64))
    counts = tally.drain_counts().to_pylist()
    measures = tally.drain_measures().to_pylist()
    ids = sorted(tokenizer.model.tokens)
    sources = sorted({source for source, _ in groups})
    count, held = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    of_source = np.zeros((len(sources), len(ids)), np.int64)
    for row in counts:
        count[row["id"]] += row["count"]
        held[row["id"]] += row["documents"]
        of_source[sources.index(groups[row["group"]][0]), row["id"]] += row["count"]
    languages: dict[str, Counter[str]] = {}
    for row in measures:
        sums = languages.setdefault(
            groups[row.pop("group")][1], Counter(dict.fromkeys(MEASURES, 0))
        )
        sums.update(row)
    words = bpe.count_pretokens(texts, "whitespace")["word"].to_pylist()
    words = [word for word in words if not word.decode("utf-8", "surrogateescape").isspace()]
    whole = int((tokenizer.count_tokens(words) == 1).sum())
    return compute_figures(
        Counts(
            tokens=[tokenizer.model.tokens[each] for each in ids],
            ids=np.array(ids, np.int64),
            count=count,
            documents=held,
            sources=(of_source > 0).sum(axis=0),
            top_source=of_source.max(axis=0),
            totals={name: sum(each[name] for each in languages.values()) for name in MEASURES},
            languages=languages,
            word_types=(len(words), whole),
        )
    )


def assert_holds(found: dict[str, Any], golden: dict[str, Any]) -> None:
    for name, value in golden.items():
        if isinstance(value, dict):
            assert_holds(found[name], value)
        else:
            assert found[name] == (pytest.approx(value, rel=1e-12) if value else value), name


def test_golden_figures_of_shakespeare(
    backend: Backend, tokenizer: bpe.Tokenizer, data_dir: Path
) -> None:
    text = (data_dir / "tiny_shakespeare.txt").read_bytes()
    documents = [(part, "tiny", "en") for part in text.split(b"\n\n") if part]
    golden = json.loads((data_dir / "cases" / "metrics.json").read_text())
    assert_holds(figures_of(tokenizer, documents), golden["metrics"])
    assert backend.name


def test_golden_figures_of_several_languages(
    backend: Backend, tokenizer: bpe.Tokenizer, shared_data: Path
) -> None:
    golden = json.loads((shared_data / "recipes" / "metrics.json").read_text())["b"]
    documents = [(bytes.fromhex(text), *names) for text, *names in golden["hex"]]
    assert_holds(figures_of(tokenizer, documents), golden["metrics"])
    assert backend.name


def test_figures_of_nothing_are_none(tokenizer: bpe.Tokenizer) -> None:
    found = figures_of(tokenizer, [(b"", "a", "x")])
    assert found["totals"]["documents"] == 1
    for name in ("bytes_per_token", "fertility", "entropy_bits", "mean_rank", "gini"):
        assert found[name] is None


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_entropies_are_those_of_the_formulas(uses: list[int]) -> None:
    counts = np.array(sorted(uses, reverse=True), np.int64)
    shares = [use / sum(uses) for use in uses]
    entropy = -sum(share * math.log2(share) for share in shares)
    # tokenization-scorer: 1 / (1 - order) * log2(sum of powers)
    renyi = 1 / (1 - 2.5) * math.log2(sum(share**2.5 for share in shares))
    assert entropy_bits(counts) == pytest.approx(entropy, abs=1e-9)
    assert renyi_bits(counts, 2.5) == pytest.approx(renyi, abs=1e-9)


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=12))
def test_gini_is_the_mean_difference(costs: list[float]) -> None:
    size, mean = len(costs), sum(costs) / len(costs)
    differences = sum(abs(a - b) for a in costs for b in costs)
    assert gini(costs) == pytest.approx(differences / (2 * size**2 * mean), abs=1e-12)


ROWS = st.lists(
    st.tuples(
        st.lists(
            st.sampled_from(
                [b"a", b" ", b"\xe4\xb8\xad", b"\xff", b"\xc2\xa0", b"\x1c", b"\n", b"b."]
            ),
            max_size=8,
        ).map(b"".join),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=6,
)


@given(ROWS, st.integers(0, 6))
def test_native_tally_equals_the_one_in_python(
    rows: list[tuple[bytes, int, bool]], cut: int
) -> None:
    native = pytest.importorskip("bpe._native")
    from bpe.insight.tally import _PythonTally

    tokenizer = bpe.Tokenizer.from_merges(
        [(b"a", b"a"), (b" ", b"a"), (b"\xe4", b"\xb8"), (b"b", b".")], pretokenizer="gpt2"
    )
    lengths = pa.array([len(tokenizer.token_bytes(each)) for each in range(260)], pa.int64())
    tallies = native.TokenTally(lengths, spells=True), _PythonTally(lengths, spells=True)
    for part in (rows[:cut], rows[cut:]):
        texts = pa.array([row[0] for row in part], pa.large_binary())
        ids = tokenizer.encode_batch(texts)
        groups = pa.array([row[1] for row in part], pa.int64())
        begins = pa.array([int(row[2]) for row in part], pa.int64())
        for tally in tallies:
            tally.add(texts, ids.flatten(), ids.offsets.cast(pa.int64()), groups, begins)
    found, expected = (
        [
            [pa.array(each).to_pylist() for each in columns]
            for columns in ([tally.current_ids()], tally.drain_counts(), tally.drain_measures())
        ]
        for tally in tallies
    )
    assert found == expected


@pytest.mark.usefixtures("backend")
def test_ids_without_a_length_are_refused() -> None:
    tally = make_tally(pa.array([1], pa.int64()), spells=True)
    one = pa.array([1], pa.int64())
    with pytest.raises(bpe.InputError, match="id 5 is none of the vocabulary"):
        tally.add(
            pa.array([b"a"]), pa.array([5], pa.uint32()), pa.array([0, 1], pa.int64()), one, one
        )
