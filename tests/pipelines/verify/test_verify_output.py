"""`beam-bpe verify` finds what does not agree, and names it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.settings import digest_of
from tests.pipelines.tampered_outputs import rewrite_rows, tamper

Run = Callable[..., Any]


MARKS = ("--append-eos", 261, "--prepend-bos", 261)
ENCODE = ("--input-format", "lines", "--range-bytes", 3000, "--max-row-tokens", 20, *MARKS)


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines, some of them longer than a row."""
    path = tmp_path_factory.mktemp("corpus") / "a.txt"
    path.write_bytes(tiny.read_bytes()[:9000])
    return path


@pytest.fixture
def output(copied: Callable[..., Path]) -> Path:
    """An encoded folder with several shards, BOS and EOS, and rows over several."""
    return copied()


def replace_ids(folder: Path, change: Callable[[list[int]], list[int]]) -> None:
    """Change the first row's ids, and make all hashes agree with it."""
    rewrite_rows(
        folder, lambda rows: rows[0].update(input_ids=change(rows[0]["input_ids"])), shard=0
    )


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_a_whole_folder_passes(full: list[str], output: Path, run: Run) -> None:
    done = run("verify", output, *full)
    assert done.code == 0, done.err
    assert "is whole: 3 shards" in done.out


def test_a_changed_byte_is_found(output: Path, run: Run) -> None:
    path = output / "shard-00001-000.arrow"
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00001-000.arrow" in done.err
    assert "sha256" in done.err


def test_a_missing_shard_is_found(output: Path, run: Run) -> None:
    (output / "shard-00002-000.arrow").unlink()
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00002-000.arrow: is missing" in done.err


def test_other_ids_of_the_same_number_are_found_by_encoding_again(output: Path, run: Run) -> None:
    # ' t' + 'he' spelled with single bytes decodes to the same text.
    replace_ids(output, lambda ids: [ids[0], 83, *ids[2:]])
    # One token for another of as many bytes: the text simply differs.
    assert run("verify", output).code == 0
    replace_ids(output, lambda ids: [ids[0], 71, 68, *ids[3:]])
    done = run("verify", output)
    assert done.code == 1
    assert "row 0" in done.err


def test_an_id_that_is_none_is_found(output: Path, run: Run) -> None:
    replace_ids(output, lambda ids: [ids[0], 5000, *ids[2:]])
    done = run("verify", output)
    assert done.code == 1
    assert "id 5000" in done.err


def test_a_lost_row_is_found(output: Path, run: Run) -> None:
    rewrite_rows(output, lambda rows: rows.pop(0), shard=0)
    done = run("verify", output)
    assert done.code == 1
    assert "rows" in done.err


def test_a_tokenizer_that_fails_its_golden_set_is_found(output: Path, run: Run) -> None:
    config_path = output / "__beam-bpe__/tokenizer" / "config.json"
    golden = output / "__beam-bpe__/tokenizer" / "golden.jsonl"
    rows = [json.loads(line) for line in golden.read_text().split("\n") if line]
    changed = next(row for row in rows if len(row["ids"]) > 1)
    changed["ids"] = [*changed["ids"][::-1], 1]
    golden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = json.loads(config_path.read_bytes())
    config["files"]["golden.jsonl"] = hashlib.sha256(golden.read_bytes()).hexdigest()
    config_path.write_text(json.dumps(config))
    done = run("verify", output)
    assert done.code == 1
    assert "golden" in done.err


def setting(name: str, value: object) -> Callable[[Any], None]:
    """Another setting, with all digests made to agree."""

    def change(manifest: Any) -> None:
        manifest["settings"][name] = value
        digest = digest_of(manifest["settings"])
        manifest["settings_digest"] = digest
        for shard in manifest["shards"]:
            shard["settings_digest"] = digest

    return change


def lose_last_unit(manifest: Any) -> None:
    last = manifest["shards"].pop()["unit_totals"]
    manifest["shards"][-1]["unit_totals"] = None
    assert last


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda m: m["totals"].update(documents=1), "documents"),
        (lambda m: m["totals"].update(bytes=1), "bytes"),
        (lambda m: m["totals"].update(accepted={"crlf": 3}), "accepted"),
        (lambda m: m["shards"][0].update(max_id=9), "max_id"),
        (lambda m: m["shards"][0].update(first_document="0:9"), "first_document"),
        (lambda m: m["shards"][0].update(settings_digest="0"), "settings"),
        (lambda m: m["settings"].update(eos=5), "settings_digest"),
        (lambda m: m.update(settings_digest="0"), "settings_digest"),
        (lambda m: m.update(version=7), "version 7"),
        (lambda m: m["shards"][0].update(version=7), "version 7"),
        (lambda m: m.update(tokenizer_digest="0"), "tokenizer_digest"),
        (lambda m: m["inputs"].clear(), "inputs"),
        (lose_last_unit, "unit 1"),
        (setting("colour", "red"), "manifest.json: the settings are those of another version"),
        (setting("shuffle", "often"), "manifest.json: the settings are damaged: --shuffle must"),
        (setting("shard_bytes", "many"), "manifest.json: the settings are damaged: "),
        (setting("pack_tail", "drop"), "manifest.json: the settings are those of another version"),
    ],
)
def test_a_record_that_was_changed_is_found(
    change: Callable[[Any], Any], named: str, output: Path, run: Run
) -> None:
    tamper(output, change)
    done = run("verify", output)
    assert done.code == 1, done.out
    assert named in done.err
    assert "Traceback" not in done.err


def test_bytes_of_text_are_those_of_the_rows(output: Path, run: Run) -> None:
    def change(manifest: Any) -> None:
        shards = manifest["shards"]
        shards[0]["bytes"] += 1
        manifest["totals"]["bytes"] += 1
        ratios = [shard["bytes"] / shard["tokens"] for shard in shards]
        manifest["totals"]["bytes_per_token"] = {"least": min(ratios), "most": max(ratios)}

    tamper(output, change)
    done = run("verify", output)
    assert done.code == 1
    assert "shard-00000-000.arrow" in done.err
    assert "bytes" in done.err


def test_another_eos_than_the_rows_have_is_found(output: Path, run: Run) -> None:
    tamper(output, setting("eos", 5))
    record = json.loads((output / "__beam-bpe__/run.json").read_bytes())
    record["settings"]["eos"] = 5
    (output / "__beam-bpe__/run.json").write_text(json.dumps(record))
    done = run("verify", output)
    assert done.code == 1
    assert "lacks EOS 5" in done.err


@pytest.mark.parametrize("name", ["shard-00009-000.arrow", "__beam-bpe__/rejects/unit-00000.jsonl"])
def test_a_file_that_the_manifest_does_not_know_is_found(name: str, output: Path, run: Run) -> None:
    (output / "__beam-bpe__/rejects").mkdir()
    (output / name).write_bytes(b"")
    done = run("verify", output)
    assert done.code == 1
    assert name in done.err


def drop_first_row(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        drop_first_row,
        lambda path: path.write_text(path.read_text().replace('"row": 2', '"row": 7')),
        lambda path: path.write_text("nonsense\n"),
    ],
)
def test_changed_lists_of_rejects_are_found(
    damage: Callable[[Path], Any], model_dir: Path, tmp_path: Path, run: Run
) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "the"}\n{"text": 3}\nnonsense\n')
    output = tmp_path / "out"
    command = ("encode", "--input", source, "--tokenizer", model_dir, "--output", output)
    assert run(*command, "--on-bad-record", "skip").code == 0
    assert "1 list of rejects" in run("verify", output).out
    damage(output / "__beam-bpe__/rejects" / "unit-00000.jsonl")
    done = run("verify", output)
    assert done.code == 1
    assert "unit-00000.jsonl" in done.err


def test_it_says_what_it_checked_and_what_not(output: Path, run: Run) -> None:
    done = run("verify", output)
    assert "checked: the ranges of the input that units read; each shard's sha256" in done.out
    assert "that the text is that of the input files (--input encodes them again)" in done.out
    assert "what the manifest says of program and backend" in done.out


def test_an_unfinished_folder_is_said_to_be_one(output: Path, run: Run) -> None:
    (output / "__beam-bpe__/manifest.json").unlink()
    done = run("verify", output)
    assert done.code == 1
    assert "is not finished; run the same encode command again" in done.err


def test_a_trained_folder_is_checked_with_its_counts(tiny: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes(tiny.read_bytes()[:9000])
    trained = tmp_path / "trained"
    assert run("train", "--input", source, "--vocab-size", 300, "--output", trained).code == 0
    assert "counts of" in run("verify", trained).out
    bucket = trained / "counts" / "bucket-00000.arrow"
    bucket.write_bytes(b"")
    done = run("verify", trained)
    assert done.code == 1
    assert str(bucket) in done.err
