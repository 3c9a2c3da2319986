"""`beam-bpe verify --input` encodes units again, and compares the bytes of their shards."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import SettingsError
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.settings import digest_of
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.shards.manifest import read_manifest
from pipelines.storage.output_layout import ENCODE_RUN, MANIFEST, UNIT_FOLDER
from pipelines.verify.verify_again import recorded_options
from tests.pipelines.tampered_outputs import forge_rows, tamper

Run = Callable[..., Any]
Encoded = Callable[..., Path]
Shards = list[list[dict[str, Any]]]

ENCODE = ("--range-bytes", 2000, "--on-bad-record", "skip")
GLOBAL = ("--shuffle", "global", "--shard-bytes", 4000)


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines, rows of which one is bad, and a packed file."""
    folder = tmp_path_factory.mktemp("corpus")
    text = tiny.read_bytes()
    (folder / "a.txt").write_bytes(text[:9000])
    rows = [json.dumps({"text": line}) for line in text[9000:12000].decode().split("\n")]
    (folder / "b.jsonl").write_text("\n".join([*rows, "no JSON"]) + "\n")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    return folder


@pytest.fixture
def output(copied: Encoded) -> Path:
    """One of these, to be changed."""
    return copied()


@pytest.mark.parametrize("options", [(), GLOBAL, ("--shuffle", "shard", "--compression", "zstd")])
def test_all_units_give_the_same_bytes(
    options: tuple[object, ...], encoded: Encoded, corpus: Path, run: Run
) -> None:
    folder = encoded(*options)
    manifest = read_manifest(str(folder))
    units = len(manifest.units) or len({shard.unit for shard in manifest.shards})
    done = run("verify", folder, "--input", corpus)
    assert done.code == 0, done.err
    same = f"{len(manifest.shards)} shards, same bytes"
    assert f"checked: {units} of {units} units encoded again from the input: {same}" in done.out
    assert "not checked: what the manifest says of program and backend\n" in done.out


@pytest.mark.parametrize("options", [(), GLOBAL])
def test_a_sample_of_the_units_is_named(
    options: tuple[object, ...], encoded: Encoded, corpus: Path, run: Run
) -> None:
    done = run("verify", encoded(*options), "--input", corpus, "--units", 2)
    assert done.code == 0, done.err
    what = "the same rows, before the shuffle" if options else "2 shards, same bytes"
    assert "checked: 2 of " in done.out
    assert f" units encoded again from the input: {what}\n" in done.out
    assert "not checked: the units that were not encoded again, " in done.out


def test_another_text_is_found_by_the_input_alone(output: Path, corpus: Path, run: Run) -> None:
    def change(shards: Shards) -> None:
        row = next(row for row in shards[-1] if row["is_last"] and len(row["input_ids"]) > 3)
        row["input_ids"] = row["input_ids"][:1]

    forge_rows(output, change)
    assert run("verify", output, "--full").code == 0
    done = run("verify", output, "--input", corpus)
    assert done.code == 1
    assert ".arrow: tokens is " in done.err
    assert "and encoding the input again gives " in done.err


def test_another_unit_of_a_shuffle_is_found(copied: Encoded, corpus: Path, run: Run) -> None:
    folder = copied(*GLOBAL)
    tamper(folder, lambda record: record["units"][0].update(spill_sha256="0" * 64))
    done = run("verify", folder, "--input", corpus, "--units", 1)
    assert done.code == 1
    place = folder / UNIT_FOLDER / "unit-00000.json"
    assert f"{place}: spill_sha256 is '{'0' * 64}'" in done.err


def test_another_input_is_named(output: Path, corpus: Path, tiny: Path, run: Run) -> None:
    done = run("verify", output, "--input", corpus / "a.txt")
    assert done.code == 1
    assert f"{corpus / 'b.jsonl'}: is not among the inputs given" in done.err
    done = run("verify", output, "--input", corpus, tiny)
    assert done.code == 1
    assert f"{tiny}: is no input of this output" in done.err
    done = run("verify", output, "--input", corpus, "--exclude", "a.txt")
    assert done.code == 1
    assert f"{corpus / 'a.txt'}: is not among the inputs given" in done.err


def test_a_changed_input_is_named(model_dir: Path, tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes(b"the end")
    command = ("encode", "--input", source, "--tokenizer", model_dir)
    assert run(*command, "--output", tmp_path / "out").code == 0
    os.utime(source, (1, 1))
    done = run("verify", tmp_path / "out", "--input", source)
    assert done.code == 1
    assert f"{source}: is 7 bytes, modified 1" in done.err
    assert "when it was encoded" in done.err


def test_units_of_another_plan_are_found(output: Path, corpus: Path, run: Run) -> None:
    def change(manifest: Any) -> None:
        manifest["settings"]["range_bytes"] = 1500
        manifest["settings_digest"] = digest_of(manifest["settings"])
        for shard in manifest["shards"]:
            shard["settings_digest"] = manifest["settings_digest"]

    tamper(output, change)
    record = json.loads((output / ENCODE_RUN).read_bytes())
    record["settings"]["range_bytes"] = 1500
    (output / ENCODE_RUN).write_text(json.dumps(record))
    assert run("verify", output).code == 0
    done = run("verify", output, "--input", corpus)
    assert done.code == 1
    assert f"{output / MANIFEST}: unit 0 reads other ranges" in done.err


def test_options_without_their_input_are_wrong_usage(
    output: Path, corpus: Path, model_dir: Path, run: Run
) -> None:
    assert run("verify", output, "--units", 3).code == 2
    assert run("verify", model_dir, "--input", corpus).code == 2


def test_it_says_what_it_cannot_compare(
    model_dir: Path, tmp_path: Path, corpus: Path, run: Run
) -> None:
    pq.write_table(pa.table({"text": ["the end"] * 9, "id": range(9)}), tmp_path / "a.parquet")
    command = ("encode", "--tokenizer", model_dir, "--input", tmp_path / "a.parquet")
    pack = ("--pack", 8, "--pad-id", 0, "--pack-mode", "best-fit", "--shuffle", "shard")
    options = (*pack, "--id-field", "id")
    assert run(*command, *options, "--output", tmp_path / "out").code == 0
    done = run("verify", tmp_path / "out")
    assert done.code == 0, done.err
    for phrase in (
        "the order of best-fit's rows, that best-fit left nothing of divided documents out",
        "ids that come from the input, to which unit rows of Parquet and Arrow files belong",
    ):
        assert phrase in done.out.partition("not checked: ")[2]
    done = run("verify", tmp_path / "out", "--input", tmp_path / "a.parquet")
    assert done.code == 0, done.err
    assert "not checked: what the manifest says of program and backend\n" in done.out
    command = ("encode", "--tokenizer", model_dir, "--input", corpus, "--range-bytes", 2000)
    for limit in (1, 5):
        output = tmp_path / str(limit)
        assert run(*command, "--output", output, "--limit", limit).code == 0
        done = run("verify", output, "--input", corpus)
        assert done.code == 0, done.err


def test_settings_are_restored_whole(encoded: Encoded) -> None:
    manifest = read_manifest(str(encoded(*GLOBAL)))
    read = recorded_options(manifest)
    assert EncodeSettings.from_dict(manifest.settings, read).to_dict() == manifest.settings
    options = ReadOptions(document_separator=b"\n\n", include=("*.txt",), max_row_bytes=77)
    assert ReadOptions.from_settings(options.to_settings()) == options
    other = {**manifest.settings, "colour": "red"}
    with pytest.raises(SettingsError, match="colour"):
        EncodeSettings.from_dict(other, read)
    for name, value in (("range_bytes", "4"), ("document_separator", "xy"), ("empty", "often")):
        with pytest.raises(SettingsError, match="damaged"):
            ReadOptions.from_settings({name: value})
    with pytest.raises(SettingsError, match="damaged"):
        EncodeSettings.from_dict({**manifest.settings, "shard_bytes": "many"}, read)
