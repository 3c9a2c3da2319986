"""`beam-bpe verify` finds what does not agree in packed, divided and shuffled outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.verify import verify_packed, verify_shard
from pipelines.verify.verify_output import verify_output
from tests.pipelines.tampered_outputs import rewrite_rows, tamper

Run = Callable[..., Any]
Encoded = Callable[..., Path]

ENCODE = ("--input-format", "lines", "--range-bytes", 3000, "--append-eos", 261)
# Rows of 32 ids, the last one filled up with id 0.
PACKED = ("--pack", 32, "--pad-id", 0, "--prepend-bos", 5)
# Two splits of a global shuffle.
DIVIDED = ("--split", "train=0.5,test=0.5", "--shuffle", "global")


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some lines."""
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_bytes(tiny.read_bytes()[:6000])
    return path


def test_it_says_what_it_checked_of_which_layout(encoded: Encoded, run: Run) -> None:
    out = run("verify", encoded(*PACKED), "--full").out
    assert "BOS and EOS, padding, bytes of text" in out
    assert "whole documents encoded again" in out
    out = run("verify", encoded(*DIVIDED), "--full").out
    assert "the split of each document" in out
    assert "the order of the shuffle" not in out
    assert "ids of documents in several rows" not in out


def test_it_says_when_the_sample_holds_nothing_to_encode_again(
    tiny: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "a.txt").write_bytes(tiny.read_bytes()[:3000])
    command = ["encode", "--input", tmp_path / "a.txt", "--tokenizer", model_dir, "--pad-id", 0]
    assert run(*command, "--pack", 32, "--output", tmp_path / "out").code == 0
    out = run("verify", tmp_path / "out").out
    assert "encoded again gave" not in out
    assert "no whole document stands alone in the sample (--full looks at all), " in out
    out = run("verify", tmp_path / "out", "--full").out
    assert "encoded again gave" not in out
    assert "no whole document stands alone, " in out
    assert " ids of documents in several rows, which cannot be encoded alone, " in out


@pytest.mark.parametrize("kind", ["lines", "packed"])
def test_the_sample_is_of_any_rows_and_the_same_each_time(
    kind: str, tiny: Path, model_dir: Path, tmp_path: Path, run: Run, monkeypatch: Any
) -> None:
    (tmp_path / "a.txt").write_bytes(tiny.read_bytes()[:60_000])
    options = ("--pack", 32, "--pad-id", 0) if kind == "packed" else ()
    command = ("encode", "--input", tmp_path / "a.txt", "--tokenizer", model_dir, *ENCODE)
    assert run(*command, *options, "--output", tmp_path / "out").code == 0
    check = verify_packed.PackedCheck if kind == "packed" else verify_shard.ShardCheck
    encoded: list[int] = []
    texts = check._texts

    def note(*arguments: Any) -> Iterator[Any]:
        for found in texts(*arguments):
            encoded.append(found[0])
            yield found

    monkeypatch.setattr(check, "_texts", note)
    monkeypatch.setattr(verify_shard, "_SAMPLE_IDS", 1)
    shards = verify_output(str(tmp_path / "out")).shards
    once = [*encoded]
    assert shards <= len(once) <= 3 * shards
    # Not all of them at the beginning.
    assert len(set(once)) > shards / 2
    encoded.clear()
    verify_output(str(tmp_path / "out"))
    assert encoded == once
    encoded.clear()
    done = verify_output(str(tmp_path / "out"), full=True)
    assert done.encoded_again == len(encoded) > 10 * shards


def other_token(rows: list[dict[str, Any]]) -> None:
    ids = rows[0]["input_ids"]
    ids[1], ids[2] = 71, 68


def longer_segment(rows: list[dict[str, Any]]) -> None:
    rows[0]["lengths"][-1] += 1


def negative_segment(rows: list[dict[str, Any]]) -> None:
    """Together, the segments of row 2 are as long as before."""
    row = rows[2]
    for name, column in row.items():
        if name != "input_ids":
            column.append(column[-1])
    row["lengths"][-2:] = [row["lengths"][-1] + 5, -5]


def another_list(rows: list[dict[str, Any]]) -> None:
    rows[0]["positions"].append(0)


def other_padding(rows: list[dict[str, Any]]) -> None:
    rows[-1]["input_ids"][-1] = 1


def other_eos(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["is_last"][0])
    row["input_ids"][row["lengths"][0] - 1] = 3


def other_bos(rows: list[dict[str, Any]]) -> None:
    rows[0]["input_ids"][0] = 3


def moved_start(rows: list[dict[str, Any]]) -> None:
    rows[0]["positions"][0] = 7


def hidden_end(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["is_last"][0])
    row["is_last"][0] = False


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (other_token, "row 0"),
        (longer_segment, "segments of 33 ids"),
        (negative_segment, "row 2 has a segment of -5 ids"),
        (another_list, "entries in positions"),
        (other_padding, "is filled up with other ids than 0"),
        (other_eos, "lacks EOS 261"),
        (other_bos, "lacks BOS 5"),
        (moved_start, "starts inside itself"),
        (hidden_end, "which has not ended"),
    ],
)
def test_changed_packed_rows_are_found(
    change: Callable[[list[dict[str, Any]]], Any],
    expected: str,
    copied: Encoded,
    run: Run,
) -> None:
    output = copied(*PACKED)
    rewrite_rows(output, change, 0)
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00000-000.arrow" in done.err
    assert expected in done.err


@pytest.mark.parametrize("name", ["lengths", "sources", "document_ids"])
def test_nulls_are_found(name: str, copied: Encoded, run: Run) -> None:
    output = copied(*PACKED)

    def clear(rows: list[dict[str, Any]]) -> None:
        # Facts are taken from the first and the last row.
        rows[3][name][-1] = None

    rewrite_rows(output, clear, 0)
    for command in (("verify", output), ("head", output)):
        done = run(*command)
        assert done.code == 1
        assert f"shard-00000-000.arrow: cannot be read as a shard (the column {name} " in done.err
        assert "holds nulls" in done.err


def test_a_document_of_another_split_is_found(copied: Encoded, run: Run) -> None:
    output = copied(*DIVIDED)

    def swap(rows: list[dict[str, Any]]) -> None:
        manifest = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
        rows[3]["document_id"] = manifest["shards"][1]["first_document"]

    rewrite_rows(output, swap, 0)
    done = run("verify", output)
    assert done.code == 1
    assert "row 3 is of document " in done.err
    assert "which belongs to the split test" in done.err


def drop_last(manifest: dict[str, Any]) -> None:
    manifest["shards"].pop()


def drop_first(manifest: dict[str, Any]) -> None:
    manifest["shards"].pop(0)


def change_unit(manifest: dict[str, Any]) -> None:
    manifest["units"][0]["totals"]["documents_in"] += 1


def change_input(manifest: dict[str, Any]) -> None:
    manifest["shards"][0]["input_digest"] = "00"


def drop_units(manifest: dict[str, Any]) -> None:
    manifest["units"] = []


def change_padding(manifest: dict[str, Any]) -> None:
    manifest["totals"]["packing"]["padding"] = 3


def change_split(manifest: dict[str, Any]) -> None:
    manifest["totals"]["splits"]["test"]["tokens"] += 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (drop_last, "last part of unit 0 is lost"),
        (drop_first, "says 2 parts, and there are 1"),
        (change_unit, "documents_in"),
        (change_input, "of another input than the units"),
        (drop_units, "0 units of a global shuffle"),
        (change_padding, "packing"),
        (change_split, "splits"),
    ],
)
def test_changed_records_are_found(
    change: Callable[[dict[str, Any]], Any],
    expected: str,
    copied: Encoded,
    run: Run,
) -> None:
    output = copied(*DIVIDED)
    tamper(output, change)
    done = run("verify", output)
    assert done.code == 1
    assert expected in done.err


@pytest.mark.parametrize(
    "name", ["test/shard-00009-000.arrow", "__beam-bpe__/units/unit-00009.json"]
)
def test_files_that_the_manifest_does_not_know_are_found(
    name: str, copied: Encoded, run: Run
) -> None:
    output = copied(*DIVIDED)
    (output / name).write_bytes(b"")
    done = run("verify", output)
    assert done.code == 1
    assert name in done.err
