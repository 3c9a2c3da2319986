"""`beam-bpe train --engine rounds`: the driver's tokenizer, made over sharded state."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]

ROUNDS = ("--engine", "rounds", "--state-shards", 3, "--segment-budget", "500B")


def digest(folder: Path) -> str:
    return Tokenizer.load(folder).digest


def both(
    run: Run, output: Path, *command: object, rounds: tuple[object, ...] = ROUNDS
) -> Tokenizer:
    """Train on the driver and in rounds, and compare."""
    driver = run("train", *command, "--output", output / "driver", "--engine", "driver")
    assert driver.code == 0, driver.err
    done = run("train", *command, "--output", output / "rounds", *rounds)
    assert done.code == 0, done.err
    assert digest(output / "rounds") == digest(output / "driver")
    assert not (output / "rounds" / "rounds").exists()
    summary = [line for line in done.out.splitlines() if not line.startswith("seconds")]
    other = driver.out.replace(str(output / "driver"), str(output / "rounds")).splitlines()
    assert summary == [line for line in other if not line.startswith("seconds")]
    return Tokenizer.load(output / "rounds")


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("tie_order", ["hf", "bytes"])
def test_rounds_make_the_drivers_tokenizer(
    tie_order: str, short: Path, tmp_path: Path, run: Run
) -> None:
    command = ("--input", short, "--pretokenizer", "none", "--vocab-size", "280,300")
    output = tmp_path / "out"
    for engine in (("--engine", "driver"), ROUNDS):
        folder = output / str(engine[1])
        done = run("train", *command, "--tie-order", tie_order, "--output", folder, *engine)
        assert done.code == 0, done.err
    for size in ("280", "300"):
        assert digest(output / "rounds" / size) == digest(output / "driver" / size)
    training = Tokenizer.load(output / "rounds" / "300").training
    rows = training["rounds"]
    assert [row["round"] for row in rows] == list(range(len(rows)))
    assert len(rows) >= 3
    assert all(row["segment_bytes"] <= 500 for row in rows)
    assert sum(row["merges"] for row in rows) == 300 - 256
    assert rows[-1]["vocabulary"] == 300
    assert rows[-1]["last_count"] == training["last_merge_count"]
    lines = [line for line in done.err.splitlines() if line.startswith("round ")]
    assert len(lines) == len(rows)
    assert "about" in done.err
    assert f"{rows[0]['merges']} merges" in lines[0]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "options",
    [
        ("--min-frequency", 9),
        ("--max-token-bytes", 3),
        ("--special-token", "the", "--special-text", "allow"),
        ("--special-token", "the"),
        ("--input-format", "lines"),
        ("--document-separator", r"\n\n"),
        ("--tie-order", "id", "--min-frequency", 40),
    ],
    ids=str,
)
def test_rounds_keep_every_rule(
    options: tuple[object, ...], short: Path, tmp_path: Path, run: Run
) -> None:
    command = ("--input", short, "--pretokenizer", "none", "--vocab-size", 290, *options)
    both(run, tmp_path, *command)


def test_text_without_any_pair_ends_at_once(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": "x"}\n')
    command = ("--input", tmp_path / "a.jsonl", "--pretokenizer", "none", "--vocab-size", 300)
    made = both(run, tmp_path, *command)
    assert made.training["stop_reason"] == "exhausted"
    assert made.training["rounds"] == []
    (tmp_path / "b.jsonl").write_text('{"text": ""}\n')
    none = ("--input", tmp_path / "b.jsonl", "--pretokenizer", "none", "--vocab-size", 300)
    both(run, tmp_path / "b", *none)


@pytest.mark.slow
def test_words_by_rounds_are_the_drivers(small: Path, tmp_path: Path, run: Run) -> None:
    command = ("--input", small, "--vocab-size", 300)
    made = both(run, tmp_path, *command)
    assert len(made.training["rounds"]) >= 2
    counts = tmp_path / "rounds" / "counts"
    assert not (counts / "_temporary").exists()
    again = ("--from-counts", counts, "--vocab-size", 300, "--pretokenizer", "gpt2")
    done = run("train", *again, "--output", tmp_path / "again", *ROUNDS)
    assert done.code == 0, done.err
    assert digest(tmp_path / "again") == made.digest


def test_the_engine_goes_by_memory(short: Path, tmp_path: Path, run: Run) -> None:
    for number, words in enumerate((("--pretokenizer", "none"), ())):
        command = ("train", "--input", short, *words, "--vocab-size", 262)
        here = run(*command, "--output", tmp_path / f"{number}here")
        assert "training in rounds" not in here.err
        little = ("--driver-memory", "50kB")
        there = run(*command, "--output", tmp_path / f"{number}there", *little)
        assert there.code == 0, there.err
        assert "training in rounds" in there.err
        assert digest(tmp_path / f"{number}there") == digest(tmp_path / f"{number}here")
        refused = run(*command, *little, "--engine", "driver", "--output", tmp_path / "no")
        assert refused.code == 1
        assert "or train with --engine rounds" in refused.err


def test_what_is_to_be_expected_is_said_before_the_text_is_read(
    tiny: Path, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / "a.jsonl"
    rows = [json.dumps({"text": f"some text {number % 7}"}) for number in range(200)]
    source.write_text("\n".join([*rows, "nonsense"]))
    command = ("train", "--pretokenizer", "none", "--vocab-size", 280, *ROUNDS)
    stopped = run(*command, "--input", source, "--output", tmp_path / "stopped")
    assert stopped.code == 1
    expected = "training in rounds: about 2 rounds over 3 shards, with 500 bytes of segments each"
    assert expected in stopped.err
    # How much a packed file holds is only seen when it is read.
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(tiny.read_bytes()[:20_000] * 3))
    few = ("train", "--pretokenizer", "none", "--vocab-size", 258, "--engine", "rounds")
    done = run(*few, "--state-shards", 1, "--input", packed, "--output", tmp_path / "packed")
    assert done.code == 0, done.err
    said = [line for line in done.err.splitlines() if "training in rounds: about" in line]
    assert len(said) == 2
    assert not re.search(r"take up to 24\d kB", said[0])
    assert re.search(r"take up to 24\d kB", said[1])
    source.write_text("\n".join(rows))
    plain = run(*few, "--state-shards", 1, "--input", source, "--output", tmp_path / "plain")
    assert plain.err.count("training in rounds: about") == 1


@pytest.mark.slow
def test_several_rounds_in_a_job_make_the_same(short: Path, tmp_path: Path, run: Run) -> None:
    command = ("--input", short, "--pretokenizer", "none", "--vocab-size", 320)
    chained = (*ROUNDS, "--rounds-per-job", 4)
    made = both(run, tmp_path, *command, rounds=chained)
    one = run("train", *command, *ROUNDS, "--output", tmp_path / "one")
    assert one.code == 0, one.err
    rows = [Tokenizer.load(tmp_path / "one").training["rounds"], made.training["rounds"]]
    for row in (row for table in rows for row in table):
        assert row.pop("seconds") >= 0
    assert rows[0] == rows[1]
    assert len(rows[0]) >= 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--tie-order", "first", "--engine", "rounds"),
            "--tie-order first cannot be had in rounds",
        ),
        (("--tie-order", "first", "--driver-memory", "1kB"), "--driver-memory allows 1 kB, and"),
        (("--sample-bytes", "1kB", "--pretokenizer", "gpt2"), "belongs to --pretokenizer none"),
        (("--runner=DaskRunner", "--rounds-per-job", 2), "on Dask a job starts"),
    ],
)
def test_what_does_not_go_together_is_refused_before_work(
    options: tuple[object, ...], expected: str, short: Path, tmp_path: Path, run: Run
) -> None:
    command = ("train", "--input", short, "--pretokenizer", "none", "--vocab-size", 300)
    refused = run(*command, "--output", tmp_path / "out", *options)
    assert refused.code == 1
    assert expected in refused.err
    assert not list((tmp_path / "out").rglob("*.arrow"))


@pytest.mark.parametrize("budget", ["0%", "101%", "x%", "-1"])
def test_a_budget_that_is_none_is_wrong_usage(budget: str, tmp_path: Path, run: Run) -> None:
    command = ("train", "--input", tmp_path, "--vocab-size", 300, "--output", tmp_path / "out")
    refused = run(*command, f"--segment-budget={budget}")
    assert refused.code == 2
    assert "--segment-budget" in refused.err


def test_bad_rows_are_set_aside_and_counted(tmp_path: Path, run: Run, tree_bytes: Tree) -> None:
    rows = [json.dumps({"text": f"some text {number % 7}"}) for number in range(200)]
    source = tmp_path / "a.jsonl"
    source.write_text("\n".join([*rows[:50], "nonsense", *rows[50:], '{"text": 3}']))
    command = ("--input", source, "--pretokenizer", "none", "--vocab-size", 280)
    skip = ("--on-bad-record", "skip")
    both(run, tmp_path, *command, *skip)
    rejects = tmp_path / "rounds" / "rejects"
    listed = [json.loads(row) for data in tree_bytes(rejects).values() for row in data.splitlines()]
    assert sorted(row["row"] or 0 for row in listed if row["row"]) or listed
    assert len(listed) == 2
    few = run("train", *command, *skip, *ROUNDS, "--max-bad-records", 1, "--output", tmp_path / "x")
    assert few.code == 1
    assert "--max-bad-records=1" in few.err
    stopped = run("train", *command, *ROUNDS, "--output", tmp_path / "y")
    assert stopped.code == 1
    assert "or set such rows aside" in stopped.err


def test_a_sample_is_told_and_recorded(tiny: Path, tmp_path: Path, run: Run) -> None:
    command = ("--input", tiny, "--pretokenizer", "none", "--vocab-size", 400)
    sample = ("--sample-bytes", "300kB")
    made = both(run, tmp_path, *command, *sample, rounds=("--engine", "rounds"))
    record = made.training
    assert record["inputs"]["sample"]["block_bytes"] == 1 << 16
    assert record["inputs"]["sample"]["share"] == pytest.approx(300_000 / 1_115_394)
    assert 100_000 < record["totals"]["sampled_bytes"] < 600_000
    done = run("train", *command, *sample, "--sample-seed", 3, "--output", tmp_path / "seed")
    assert "training on a sample: about 300 kB of 1.12 MB (26.9 %)" in done.err
    assert "trained on " in done.out
    whole = run("train", *command, "--output", tmp_path / "whole")
    assert "sample" not in whole.err
    every = run("train", *command, "--sample-bytes", "all", "--output", tmp_path / "all")
    assert every.code == 0
    digests = [digest(tmp_path / name) for name in ("rounds", "seed", "whole", "all")]
    assert len(set(digests)) == 3
    assert digests[2] == digests[3]
    other = run("train", *command, "--output", tmp_path / "rounds")
    assert other.code == 1
    assert "sample" in other.err


def test_a_named_sample_is_the_start_of_the_text(tiny: Path, tmp_path: Path, run: Run) -> None:
    command = ("train", "--input", tiny, "--pretokenizer", "none", "--vocab-size", 300)
    named = run(*command, "--sample-bytes", "feste-200000", "--output", tmp_path / "named")
    assert named.code == 0, named.err
    assert "200 kB of 1.12 MB (17.9 %), from the start" in named.err
    start = tmp_path / "start.txt"
    start.write_bytes(tiny.read_bytes()[:200_000])
    whole = ("train", "--input", start, *command[3:], "--output", tmp_path / "start")
    assert run(*whole).code == 0
    assert digest(tmp_path / "named") == digest(tmp_path / "start")


def test_shards_end_within_documents_of_several_files(tiny: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    text = tiny.read_bytes()
    for number, size in enumerate((9_000, 5_000, 4_000, 3_000)):
        (folder / f"{number}.txt").write_bytes(text[number * 10_000 :][:size])
    command = ("--input", folder, "--pretokenizer", "none", "--vocab-size", 300)
    rounds = ("--engine", "rounds", "--state-shards", 7, "--segment-budget", "50kB")
    both(run, tmp_path, *command, rounds=rounds)
