"""`beam-bpe train --from-counts`: tables of ours and of others, and those that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bpe.backends.protocol import Backend
from bpe.counting import count_pretokens
from bpe.errors import CountTableError
from bpe.tokenizer import Tokenizer
from bpe.training import train

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]


def test_from_counts_trains_without_the_text(small: Path, tmp_path: Path, run: Run) -> None:
    assert run("train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "a").code == 0
    text = small.read_bytes()
    small.unlink()
    done = run(
        *("train", "--from-counts", tmp_path / "a" / "counts", "--vocab-size", 350),
        *("--output", tmp_path / "b"),
    )
    assert done.code == 0, done.err
    expected = train(count_pretokens(text, "gpt2"), 350, pretokenizer="gpt2")
    assert Tokenizer.load(tmp_path / "b").merges == expected.merges


def test_from_counts_takes_an_arrow_file_made_elsewhere(tmp_path: Path, run: Run) -> None:
    counts = count_pretokens("ab ab abab", "gpt2")
    path = tmp_path / "counts.arrow"
    with pa.ipc.new_file(str(path), counts.schema) as writer:
        writer.write_table(counts)
    command = ("train", "--from-counts", path, "--vocab-size", 258)
    done = run(*command, "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "out").merges == [(b"a", b"b"), (b" ", b"ab")]
    path.write_bytes(b"no arrow")
    assert "no Arrow IPC file" in run(*command, "--output", tmp_path / "other").err


def test_from_counts_takes_a_bare_table_if_told_the_pretokenizer(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "counts.arrow"

    def command(table: pa.Table, *options: str) -> Any:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        output = tmp_path / "".join(["out", *options])
        return run(
            "train", "--from-counts", path, "--vocab-size", 258, "--output", output, *options
        )

    bare = pa.table({"word": [b"ab", b" ab", b"abab"], "count": [1, 2, 1]})
    refused = command(bare)
    assert refused.code == 1
    assert f"--from-counts {path}" in refused.err
    assert "give the one that did (--pretokenizer" in refused.err
    done = command(bare, "--pretokenizer", "cl100k")
    assert done.code == 0, done.err
    found = Tokenizer.load(tmp_path / "out--pretokenizercl100k")
    assert found.scheme.name == "cl100k"
    assert found.merges == [(b"a", b"b"), (b" ", b"ab")]
    refused = command(pa.table({"word": [b"ab"]}), "--pretokenizer", "gpt2")
    assert "has no column 'count'" in refused.err


@pytest.mark.parametrize("engine", ["driver", "rounds"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_string()])
def test_a_word_with_several_rows_is_refused_by_name(
    engine: str, kind: pa.DataType, backend: Backend, tmp_path: Path, run: Run
) -> None:
    table = pa.table({"word": pa.array(["ab", "cd", "ab"], kind), "count": [1, 2, 3]})
    path = tmp_path / "counts.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    command = ("train", "--from-counts", path, "--pretokenizer", "gpt2", "--engine", engine)
    refused = run(*command, "--vocab-size", 258, "--output", tmp_path / "out")
    assert refused.code == 1, backend
    assert f"{path}: has 2 rows of the word" in refused.err
    assert "ab" in refused.err
    assert "one row a word" in refused.err
    assert not (tmp_path / "out" / "config.json").exists()


def test_the_library_refuses_a_word_with_several_rows(backend: Backend) -> None:
    table = pa.table({"word": [b"ab", b"cd", b"ab"], "count": [1, 2, 3]})
    with pytest.raises(CountTableError, match="b'ab' has several counts"):
        train(table, 260, pretokenizer="gpt2")
    assert backend is not None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pretokenizer", "cl100k"], "scheme"),
        (["--special-text", "allow", "--special-token", "<|x|>"], "special_text"),
        (["--tie-order", "first"], "--tie-order first"),
    ],
)
def test_counts_of_another_kind_are_refused(
    options: list[str], named: str, small: Path, tmp_path: Path, run: Run
) -> None:
    assert run("train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "a").code == 0
    counts = tmp_path / "a" / "counts"
    refused = run(
        "train", "--from-counts", counts, "--vocab-size", 300, "--output", tmp_path / "b", *options
    )
    assert refused.code == 1
    assert str(counts) in refused.err
    assert named in refused.err
    assert "Traceback" not in refused.err


def test_damaged_counts_are_refused_by_file(small: Path, tmp_path: Path, run: Run) -> None:
    assert run("train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "a").code == 0
    counts = tmp_path / "a" / "counts"
    bucket = counts / "bucket-00002.arrow"
    bucket.write_bytes(bucket.read_bytes()[:-1])
    refused = run("train", "--from-counts", counts, "--vocab-size", 300, "--output", tmp_path / "b")
    assert refused.code == 1
    assert str(bucket) in refused.err


def test_input_and_counts_exclude_each_other(small: Path, tmp_path: Path, run: Run) -> None:
    assert run("train", "--vocab-size", 300, "--output", tmp_path / "out").code == 1
    both = run(
        *("train", "--input", small, "--from-counts", tmp_path, "--vocab-size", 300),
        *("--output", tmp_path / "out"),
    )
    assert both.code == 1
    assert "--from-counts" in both.err
