"""`TokenShards`: rows, documents and ranges of ids, against the rows that Arrow reads."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import OutputError
from pipelines import TokenShards

Make = Callable[..., Path]
Read = Callable[[Path], list[list[int]]]

# Documents as rows of 0 to 5 ids, at least one row each; and where batches and shards end.
DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(0, 300), max_size=5), min_size=1, max_size=4),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    documents=DOCUMENTS, cuts=st.lists(st.integers(0, 2), min_size=1, max_size=7), data=st.data()
)
def test_rows_documents_and_ranges_are_those_that_were_written(
    documents: list[list[list[int]]],
    cuts: list[int],
    data: st.DataObject,
    make_folder: Make,
    lay_out: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("made") / "out"
    shards = TokenShards(make_folder(folder, lay_out(documents, cuts)))
    rows = [row for document in documents for row in document]
    flat = [token for row in rows for token in row]
    assert len(shards) == len(rows)
    assert [shards[number].tolist() for number in range(len(rows))] == rows
    assert [row.tolist() for row in shards] == rows
    assert shards.document_count == len(documents)
    for number, document in enumerate(documents):
        assert shards.document(number).tolist() == [token for row in document for token in row]
        assert len(shards.document_rows(number)) == len(document)
    assert shards.token_count == len(flat)
    start = data.draw(st.integers(0, len(flat)))
    stop = data.draw(st.integers(start, len(flat)))
    assert shards.tokens(start, stop).tolist() == flat[start:stop]
    positions = [shards.token_position(row) for row in range(len(rows) + 1)]
    assert positions == [0, *np.cumsum([len(row) for row in rows]).tolist()]


def test_an_encoded_folder_is_read(token_folder: Path, read_documents: Read) -> None:
    shards = TokenShards(token_folder)
    documents = read_documents(token_folder)
    assert shards.document_count == len(documents)
    found = [shards.document(number).tolist() for number in range(len(documents))]
    assert found == documents
    # The text goes over several shards, the long row over several rows.
    assert len(shards.document_rows(0)) > 3
    assert len(shards.document_rows(len(documents) - 3)) > 2
    row = shards.row(len(shards) - 1)
    assert (row.source, row.is_last, row.part) == ("b.jsonl", True, 0)
    assert f"{len(documents):,} documents" in repr(shards)


def test_what_lies_in_one_batch_is_a_view(make_folder: Make, tmp_path: Path) -> None:
    rows = [([1, 2, 3], "a", 0, True), ([4, 5], "b", 0, True)]
    shards = TokenShards(make_folder(tmp_path / "out", [[rows], [rows]], largest=70_000))
    assert shards.dtype == np.uint32
    whole = shards.tokens(0, 5)
    assert np.shares_memory(whole, shards[0])
    assert np.shares_memory(whole, shards.document(1))
    assert not whole.flags.writeable
    assert not np.shares_memory(shards.tokens(3, 7), whole)
    assert shards.tokens(3, 7).tolist() == [4, 5, 1, 2]
    assert [row.tolist() for row in shards[1:3]] == [[4, 5], [1, 2, 3]]
    assert shards[-1].tolist() == [4, 5]


def test_views_outlive_the_shards_that_are_kept_open(
    make_folder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.shards.token_shards._OPEN_SHARDS", 1)
    folder = make_folder(tmp_path / "out", [[[([n, n], str(n), 0, True)]] for n in range(9)])
    shards = TokenShards(folder)
    assert [row.tolist() for row in list(shards)] == [[n, n] for n in range(9)]


def test_a_pickled_one_opens_the_same_folder(token_folder: Path) -> None:
    shards = TokenShards(token_folder)
    again = pickle.loads(pickle.dumps(shards))
    assert again.tokens(100, 200).tolist() == shards.tokens(100, 200).tolist()


@pytest.mark.parametrize(
    "ask",
    [
        lambda shards: shards[len(shards)],
        lambda shards: shards[-len(shards) - 1],
        lambda shards: shards.document(shards.document_count),
        lambda shards: shards.tokens(5, 4),
        lambda shards: shards.tokens(0, shards.token_count + 1),
        lambda shards: shards.token_position(len(shards) + 1),
    ],
)
def test_what_is_not_there_is_an_index_error(
    ask: Callable[[TokenShards], object], token_folder: Path
) -> None:
    with pytest.raises(IndexError):
        ask(TokenShards(token_folder))


def test_folders_that_are_not_whole_are_refused(make_folder: Make, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no finished output"):
        TokenShards(tmp_path)
    folder = make_folder(tmp_path / "out", [[[([1], "a", 0, True)]], [[([1], "b", 0, True)]]])
    (folder / "shard-00001-000.arrow").write_bytes(b"nonsense")
    with pytest.raises(OutputError, match=r"shard-00001-000\.arrow"):
        TokenShards(folder)[1]
    manifest = folder / "__beam-bpe__/manifest.json"
    manifest.write_text(manifest.read_text().replace('"tokens":1', '"tokens":2'))
    with pytest.raises(OutputError, match="1 id, the manifest says 1 with 2"):
        TokenShards(folder)


def test_it_needs_no_beam() -> None:
    code = "import sys; from pipelines import TokenShards; sys.exit('apache_beam' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_the_example_trains_on_shards(token_folder: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    example = root / "examples" / "train_bigram.py"
    done = subprocess.run(
        [sys.executable, example, token_folder],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.findall(r"(\d+\.\d+) (?:at|after)", done.stdout))
    assert first == pytest.approx(np.log(262), abs=0.3)
    assert last < first - 0.5


def test_the_example_says_what_is_wrong_in_one_line(make_folder: Make, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    folder = make_folder(tmp_path / "out", [[[([1], "a", 0, True)]]])
    for arguments, expected in (
        ([folder, "train"], "no such split"),
        ([folder], "too few"),
        ([], "[SPLIT]"),
    ):
        done = subprocess.run(
            [sys.executable, root / "examples" / "train_bigram.py", *arguments],
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert expected in done.stderr
        assert done.stderr.count("\n") == 1
