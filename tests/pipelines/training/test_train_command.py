"""`beam-bpe train`: published merge lists, resuming, several sizes, refusals."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
ONE, TWO, THIRTEEN = 1 << 30, 557_700, 85_800


def golden(data_dir: Path, name: str) -> list[tuple[bytes, bytes]]:
    listed = json.loads((data_dir / "merges" / f"{name}.json").read_bytes())["merges"]
    return [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in listed]


def digest(merges: list[tuple[bytes, bytes]]) -> str:
    lines = "\n".join(f"{left.hex()} {right.hex()}" for left, right in merges)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


@pytest.mark.parametrize("range_bytes", [ONE, TWO, THIRTEEN])
@pytest.mark.parametrize(
    ("name", "tie_order"),
    [
        ("hf_tiny_1024", "hf"),
        ("rustbpe_tiny_1024", "id"),
        pytest.param("hf_tiny_8192", "hf", marks=pytest.mark.slow),
        pytest.param("rustbpe_tiny_8192", "id", marks=pytest.mark.slow),
    ],
)
def test_published_merge_lists_come_out_whatever_the_ranges(
    name: str,
    tie_order: str,
    range_bytes: int,
    tiny: Path,
    data_dir: Path,
    tmp_path: Path,
    run: Run,
) -> None:
    size = int(name.rsplit("_", 1)[1])
    done = run(
        *("train", "--input", tiny, "--input-format", "text", "--range-bytes", range_bytes),
        *("--vocab-size", size, "--tie-order", tie_order, "--min-frequency", 1),
        *("--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    expected = golden(data_dir, name)
    assert Tokenizer.load(tmp_path / "out").merges[: len(expected)] == expected


@pytest.mark.one_in(5)
@pytest.mark.parametrize("range_bytes", [ONE, TWO, THIRTEEN])
@pytest.mark.parametrize(
    ("scheme", "tie_order", "expected"),
    [
        ("cl100k", "hf", "035e166428e0b2b3"),
        ("cl100k", "id", "c3b996bb6520cca0"),
        ("o200k", "hf", "42a123fdf7198590"),
        ("o200k", "id", "2cc36a203ef8155e"),
    ],
)
def test_published_digests_of_other_schemes_come_out_whatever_the_ranges(
    scheme: str,
    tie_order: str,
    expected: str,
    range_bytes: int,
    tiny: Path,
    tmp_path: Path,
    run: Run,
) -> None:
    done = run(
        *("train", "--input", tiny, "--range-bytes", range_bytes, "--vocab-size", 1024),
        *("--pretokenizer", scheme, "--tie-order", tie_order, "--min-frequency", 1),
        *("--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    assert digest(Tokenizer.load(tmp_path / "out").merges) == expected


@pytest.mark.slow
def test_counts_are_the_same_bytes_for_any_ranges_threads_and_mode(
    small: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    ways = {
        "a": ["--range-bytes", "1GB", "--direct_num_workers=1"],
        "b": ["--range-bytes", "5000", "--direct_num_workers=2"],
        "c": ["--range-bytes", "5000", "--direct_running_mode=multi_processing"],
    }
    trees = []
    for name, options in ways.items():
        output = tmp_path / name
        done = run("train", "--input", small, "--vocab-size", 300, "--output", output, *options)
        assert done.code == 0, done.err
        trees.append(tree_bytes(output))
    assert trees[0] == trees[1] == trees[2]


def test_several_sizes_give_one_folder_each_from_one_training(
    small: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    options = ("train", "--input", small, "--special-token", "<|x|>", "--output", output)
    assert run(*options, "--vocab-size", "400,300").code == 0
    large, less = Tokenizer.load(output / "400"), Tokenizer.load(output / "300")
    assert (large.vocab_size, less.vocab_size) == (400, 300)
    assert less.merges == large.merges[: 300 - 257]
    assert less.special_tokens == {"<|x|>": 299}


def test_the_same_command_again_leaves_a_finished_folder_alone(
    small: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    command = ("train", "--input", small, "--vocab-size", 300, "--output", output)
    assert run(*command).code == 0
    before = tree_bytes(output)
    again = run(*command)
    assert again.code == 0
    assert "finished" in again.err
    assert tree_bytes(output) == before


def test_other_settings_are_refused_by_name_and_overwrite_starts_again(
    small: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("train", "--input", small, "--output", output)
    assert run(*command, "--vocab-size", 300).code == 0
    other = (*command, "--vocab-size", 310, "--pretokenizer", "cl100k")
    refused = run(*other)
    assert refused.code == 1
    assert 'pretokenizer: was "gpt2", now "cl100k"' in refused.err
    assert "vocab_sizes: was [300], now [310]" in refused.err
    assert run(*other, "--overwrite").code == 0
    assert Tokenizer.load(output).scheme.name == "cl100k"


def test_models_of_other_sizes_are_refused_and_overwritten(
    small: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("train", "--input", small, "--output", output)
    assert run(*command, "--vocab-size", "280,300").code == 0
    refused = run(*command, "--vocab-size", 310)
    assert refused.code == 1
    assert "vocab_sizes: was [280, 300], now [310]" in refused.err
    assert run(*command, "--vocab-size", 310, "--overwrite").code == 0
    assert not (output / "280" / "config.json").exists()
    assert Tokenizer.load(output).vocab_size == 310


def test_changed_input_is_refused(small: Path, tmp_path: Path, run: Run) -> None:
    command = ("train", "--input", small, "--vocab-size", 300, "--output", tmp_path / "out")
    assert run(*command).code == 0
    small.write_bytes(small.read_bytes() + b"more")
    refused = run(*command)
    assert refused.code == 1
    assert "inputs" in refused.err


def test_counts_that_are_there_are_used_again(small: Path, tmp_path: Path, run: Run) -> None:
    output = tmp_path / "out"
    command = ("train", "--input", small, "--vocab-size", 300, "--output", output)
    assert run(*command).code == 0
    expected = (output / "merges.txt").read_bytes()
    (output / "config.json").unlink()
    (output / "merges.txt").unlink()
    again = run(*command)
    assert again.code == 0
    assert "kept the counts" in again.err
    assert (output / "merges.txt").read_bytes() == expected


def test_incomplete_counts_are_counted_again(small: Path, tmp_path: Path, run: Run) -> None:
    output = tmp_path / "out"
    command = ("train", "--input", small, "--vocab-size", 300, "--output", output)
    assert run(*command).code == 0
    expected = (output / "merges.txt").read_bytes()
    (output / "config.json").unlink()
    (output / "counts" / "manifest.json").unlink()
    (output / "counts" / "bucket-00001.arrow").write_bytes(b"half a fi")
    (output / "counts" / "bucket-00099.arrow").write_bytes(b"of a larger job")
    assert run(*command).code == 0
    assert (output / "merges.txt").read_bytes() == expected
    assert not (output / "counts" / "bucket-00099.arrow").exists()


def test_stopping_early_is_said(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "text.txt"
    source.write_text("ab ab ab")
    done = run("train", "--input", source, "--vocab-size", 9999, "--output", tmp_path / "out")
    assert done.code == 0
    assert "stopped early" in done.out
    assert "9,999" in done.out
    assert Tokenizer.load(tmp_path / "out").vocab_size < 300


def test_first_tie_order_is_by_place_in_the_corpus(tmp_path: Path, run: Run) -> None:
    (tmp_path / "b.txt").write_text("yx yx ")
    (tmp_path / "a.txt").write_text("ba az")
    done = run(
        *("train", "--input", tmp_path / "*.txt", "--vocab-size", 258, "--tie-order", "first"),
        *("--min-frequency", 2, "--pretokenizer", "whitespace", "--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "out").merges == [(b"y", b"x")]


def test_the_golden_file_is_stored_and_a_failing_one_is_refused(
    small: Path, tmp_path: Path, run: Run
) -> None:
    texts = tmp_path / "golden.jsonl"
    texts.write_text('{"text": "zebra crossing"}\n')
    command = ("train", "--input", small, "--vocab-size", 300)
    assert run(*command, "--output", tmp_path / "a", "--golden", texts).code == 0
    assert "zebra crossing" in (tmp_path / "a" / "golden.jsonl").read_text()
    other = run(*command, "--output", tmp_path / "a")
    assert other.code == 1
    assert "golden: was " in other.err
    texts.write_text('{"text": "zebra", "ids": [1, 2, 3]}\n')
    refused = run(*command, "--output", tmp_path / "b", "--golden", texts)
    assert refused.code == 1
    assert "golden" in refused.err
    assert not (tmp_path / "b" / "config.json").exists()


@pytest.mark.parametrize("special", [[], ["--special-token", "<|a|>", "--special-token", "<|b|>"]])
def test_a_vocabulary_too_small_is_refused(
    special: list[str], small: Path, tmp_path: Path, run: Run
) -> None:
    least = 256 + len(special) // 2
    command = ("train", "--input", small, "--output", tmp_path / "out", *special)
    refused = run(*command, "--vocab-size", least - 1)
    assert refused.code == 1
    assert f"at least {least}" in refused.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "text"),
        ("a.jsonl", b'{"text": "a"}\nnonsense\n', "JSON"),
        ("a.txt.gz", gzip.compress(b"some text " * 999, mtime=0)[:-9], "a.txt.gz"),
    ],
)
def test_bad_input_stops_with_one_message(
    name: str, content: bytes, expected: str, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / name
    source.write_bytes(content)
    refused = run("train", "--input", source, "--vocab-size", 300, "--output", tmp_path / "out")
    assert refused.code == 1
    assert str(source) in refused.err
    assert expected in refused.err
    assert "Traceback" not in refused.err
    assert refused.err.count("error:") == 1


def test_skipped_rows_are_listed_and_counted(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "some text"}\nnonsense\n{"text": 3}\n')
    output = tmp_path / "out"
    command = ("train", "--input", source, "--vocab-size", 300, "--output", output)
    done = run(*command, "--on-bad-record", "skip")
    assert done.code == 0
    assert "rejected" in done.out
    rejects = (output / "counts" / "rejects" / "unit-00000.jsonl").read_text().splitlines()
    assert [json.loads(row)["row"] for row in rejects] == [2, 3]
    shutil.rmtree(output / "counts" / "rejects")
    (output / "config.json").unlink()
    stricter = run(*command)
    assert stricter.code == 1
    assert "left out bad rows" in stricter.err


def test_output_that_cannot_be_written_is_refused_before_work(
    small: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "file").write_text("not a folder")
    output = tmp_path / "file" / "out"
    refused = run("train", "--input", small, "--vocab-size", 300, "--output", output)
    assert refused.code == 1
    assert str(output) in refused.err


def test_special_tokens_in_the_text_are_counted_and_said(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_text("one<|x|>two<|y|>" * 30)
    command = ("train", "--input", source, "--vocab-size", 262, "--range-bytes", 50)
    output = tmp_path / "out"
    done = run(*command, "--output", output, "--special-token", "<|x|>")
    assert done.code == 0, done.err
    assert "special text     30 '<|x|>' as ordinary text\n" in done.out
    counts = json.loads((output / "counts" / "manifest.json").read_bytes())
    assert counts["totals"]["special_text"] == {"<|x|>": 30}
    assert Tokenizer.load(output).training["totals"]["special_text"] == {"<|x|>": 30}
    other = ("--special-token", "<|y|>", "--output", tmp_path / "other")
    kept = run("train", "--from-counts", output / "counts", "--vocab-size", 262, *other)
    assert "special text     not known for '<|y|>': counted without it\n" in kept.out
    cut = run(
        *(*command, "--output", tmp_path / "cut", "--special-token", "<|x|>"),
        *("--special-text", "allow"),
    )
    assert "special text     30 '<|x|>' where documents were cut\n" in cut.out
    plain = run(*command, "--output", tmp_path / "plain", "--special-token", "<|z|>")
    assert "special text" not in plain.out


def test_training_without_a_pretokenizer(
    tiny: Path, data_dir: Path, tmp_path: Path, run: Run
) -> None:
    expected = golden(data_dir, "feste_tiny_512")[:20]
    done = run(
        *("train", "--input", tiny, "--pretokenizer", "none", "--tie-order", "bytes"),
        *("--vocab-size", 256 + len(expected), "--range-bytes", "100kB"),
        *("--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    assert Tokenizer.load(tmp_path / "out").merges == expected


def test_numbers_are_set_apart_before_the_pretokenizer(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "in.txt"
    source.write_text("pay 12 12 12 12 12 the the the 1212 12\n" * 20)
    given = ("train", "--input", source, "--vocab-size", 300)
    for how, merged in (("single", False), ("left3", True)):
        done = run(*given, "--digits", how, "--output", tmp_path / how)
        assert done.code == 0, done.err
        tokenizer = Tokenizer.load(tmp_path / how)
        assert ((b"1", b"2") in tokenizer.merges) == merged
        assert not any(b" " in left and right.isdigit() for left, right in tokenizer.merges)
        assert tokenizer.scheme.steps[0].pattern.startswith(r"\p{N}")
        again = Tokenizer.load(tmp_path / how, pretokenizer=f"digits:{how}:gpt2")
        assert again.digest == tokenizer.digest
    for other in (("--pretokenizer", "none"), ("--superbpe-from", 20)):
        refused = run(*given, *other, "--digits", "single", "--output", tmp_path / "refused")
        assert refused.code != 0
        assert f"--digits single: does not go with {other[0]}" in refused.err
