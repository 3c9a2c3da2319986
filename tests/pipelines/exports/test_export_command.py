"""`beam-bpe export`: refusals before work, whole or nothing, the same bytes again."""

from __future__ import annotations

import errno
import json
import re
import signal
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.cli.output_arguments import EXPORT_FORMATS
from pipelines.exports import EXPORTS, ExportOptions, ShardSource
from pipelines.exports.export_folder import ExportFile, ExportFolder
from pipelines.storage.output_files import HashingFile
from tests.pipelines.tampered_outputs import forge_rows

Run = Callable[..., Any]
Make = Callable[..., Path]
Tree = Callable[[Path], dict[str, bytes]]

OPTIONS: dict[str, tuple[object, ...]] = {
    "litdata": ("--block-size", 65),
    "llmc": ("--tokens-per-file", 9000, "--val-fraction", 0.1),
    "nanogpt": ("--val-fraction", 0.1),
    "datatrove": ("--tokens-per-file", 9000),
}


def test_every_format_of_the_command_line_has_a_class() -> None:
    assert tuple(EXPORTS) == EXPORT_FORMATS


@pytest.mark.parametrize("target", EXPORT_FORMATS)
def test_the_same_shards_give_the_same_bytes(
    target: str, token_folder: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    command = ("export", token_folder, "--to", target, *OPTIONS.get(target, ()))
    done = run(*command, "--output", tmp_path / "a")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "a" / "export.json").read_bytes())
    assert f"tokens           {record['tokens']:,} (uint16)" in done.out
    assert not (tmp_path / "a" / "_temporary").exists()
    assert run(*command, "--output", tmp_path / "b").code == 0
    before = tree_bytes(tmp_path / "a")
    assert tree_bytes(tmp_path / "b") == before
    again = run(*command, "--output", tmp_path / "a")
    assert again.code == 0
    assert "nothing to do" in again.err
    # A file that is lost is made again.
    (tmp_path / "a" / record["files"][0]["name"]).unlink()
    again = run(*command, "--output", tmp_path / "a")
    assert "nothing to do" not in again.err
    assert tree_bytes(tmp_path / "a") == before


def rows(*documents: list[int]) -> list[list[Any]]:
    return [[(ids, f"0:{number}", 0, True) for number, ids in enumerate(documents)]]


@pytest.fixture
def wide(make_folder: Make, tmp_path: Path) -> Path:
    """Two shards, the second with an id that uint16 does not hold."""
    shards = [rows([1, 2], [3]), rows([4], [70_000, 5], [])]
    return make_folder(tmp_path / "wide", shards, largest=100_000)


@pytest.mark.parametrize(
    ("options", "phrases"),
    [
        (["nanogpt"], ["shard-00001-000.arrow: the id 70000 is over 65535", "megatron, npy"]),
        (["llmc", "--dtype", "uint16"], ["the id 70000 is over 65535", "--dtype uint32 holds"]),
        (["megatron", "--dtype", "uint16"], ["the id 70000", "--dtype int32 holds"]),
        (["megatron", "--dtype", "uint32"], ["--dtype uint32", "can hold uint16, int32"]),
        (["hf", "--dtype", "int32"], ["--dtype int32", "no use for it"]),
        (["npy", "--block-size", "5"], ["--block-size 5", "no use for it"]),
        (["litdata"], ["give --block-size N"]),
        (["litdata", "--block-size", "7"], ["--block-size 7", "holds 6 tokens"]),
        (["mds", "--block-size", str(2**31)], ["--block-size 2147483648"]),
        (["llmc", "--tokens-per-file", str(2**31)], ["--tokens-per-file 2147483648", "2147483647"]),
        (["llmc", "--val-fraction", "0.000001"], ["would hold out 0 of the 5 documents"]),
        (["megatron", "--name", "../a"], ["--name '../a'"]),
        (["megatron", "--append-eos", "<|end|>"], ["--append-eos <|end|>"]),
    ],
)
def test_what_the_target_cannot_hold_is_refused_before_work(
    options: list[str], phrases: list[str], wide: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (wide / "__beam-bpe__/tokenizer").symlink_to(model_dir)
    refused = run("export", wide, "--output", tmp_path / "out", "--to", *options)
    assert refused.code == 1, refused.out
    for phrase in phrases:
        assert phrase in refused.err
    assert refused.err.count("error:") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "limit"),
    [
        ("megatron", "pipelines.exports.megatron._LONGEST"),
        ("hf", "pipelines.exports.hf_dataset._LARGEST_LIST"),
        ("mds", "pipelines.exports.mds._LARGEST_SHARD"),
    ],
)
def test_a_document_longer_than_the_target_counts_is_refused(
    target: str,
    limit: str,
    token_folder: Path,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ("export", token_folder, "--to", target, "--output", tmp_path / "out")
    width = 2 if target == "mds" else 1
    monkeypatch.setattr(limit, 28_113 * width)
    refused = run(*command)
    assert refused.code == 1
    assert "a document has 28114 ids" in refused.err
    monkeypatch.setattr(limit, 28_114 * width)
    assert run(*command).code == 0


@pytest.mark.parametrize("target", EXPORT_FORMATS)
def test_a_folder_without_tokens_is_refused(
    target: str, make_folder: Make, tmp_path: Path, run: Run
) -> None:
    folder = make_folder(tmp_path / "in", [rows([], []), [[]]])
    options = ("--block-size", 5) if target == "litdata" else ()
    refused = run("export", folder, "--to", target, "--output", tmp_path / "out", *options)
    assert refused.code == 1
    assert "there are no tokens in its 2 documents" in refused.err


@pytest.mark.parametrize(
    "options", [["--val-fraction", "1"], ["--tokens-per-file", "0"], ["--to", "pt"], ["--full"]]
)
def test_wrong_usage_ends_with_code_2(
    options: list[str], wide: Path, tmp_path: Path, run: Run
) -> None:
    assert run("export", wide, "--to", "llmc", "--output", tmp_path / "out", *options).code == 2


def test_marks_that_the_documents_have_are_not_doubled(
    small: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    encode = ("encode", "--input", small, "--tokenizer", model_dir, "--append-eos", 261)
    assert run(*encode, "--output", tmp_path / "in").code == 0
    command = ("export", tmp_path / "in", "--to", "nanogpt", "--output", tmp_path / "out")
    refused = run(*command, "--append-eos", "<|endoftext|>")
    assert refused.code == 1
    assert "have one already, 261" in refused.err
    done = run(*command, "--prepend-bos", "<|endoftext|>")
    assert done.code == 0
    ids = np.fromfile(tmp_path / "out" / "train.bin", np.uint16)
    assert (ids == 261).nonzero()[0].tolist() == [0, len(ids) - 1]


def test_missing_separators_are_told(token_folder: Path, tmp_path: Path, run: Run) -> None:
    command = ("export", token_folder, "--to", "nanogpt", "--output")
    assert "no EOS between them" in run(*command, tmp_path / "a").err
    assert "EOS" not in run(*command, tmp_path / "b", "--append-eos", 261).err
    assert "EOS" not in run("export", token_folder, "--to", "hf", "--output", tmp_path / "c").err


def damage(folder: Path, kind: str) -> None:
    shard = folder / "shard-00001-000.arrow"
    if kind == "missing":
        shard.unlink()
    elif kind == "shorter":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif kind == "other bytes":
        shard.write_bytes(bytes(shard.stat().st_size))
    elif kind == "unfinished":
        (folder / "__beam-bpe__/manifest.json").unlink()
    else:
        manifest = folder / "__beam-bpe__/manifest.json"
        manifest.write_text(manifest.read_text().replace('"rows":3,', '"rows":4,'))


@pytest.mark.parametrize(
    ("kind", "phrase"),
    [
        ("missing", "shard-00001-000.arrow: is missing"),
        ("shorter", "shard-00001-000.arrow: has"),
        ("other bytes", "shard-00001-000.arrow: "),
        ("unfinished", "is not finished; run the same encode command again"),
        ("other rows", "has 3 rows with 3 ids, __beam-bpe__/manifest.json says 4"),
    ],
)
def test_damaged_shards_end_the_export_and_show_no_file(
    kind: str, phrase: str, wide: Path, tmp_path: Path, run: Run
) -> None:
    damage(wide, kind)
    refused = run("export", wide, "--to", "npy", "--output", tmp_path / "out")
    assert refused.code == 1
    assert phrase in refused.err
    assert not list((tmp_path / "out").glob("*.npy"))


@pytest.mark.parametrize(
    "shards",
    [
        # A row that goes on in no other; one of another document in between; one without a start.
        [[[([1], "a", 0, False)]]],
        [[[([1], "a", 0, False)]], [[([1], "b", 1, True)]]],
        [[[([1], "a", 0, False), ([1], "a", 0, True)]]],
        [[[([1], "a", 0, True)], [([1], "a", 1, True)]]],
    ],
)
def test_rows_that_make_no_documents_end_the_export(
    shards: Any, make_folder: Make, tmp_path: Path, run: Run
) -> None:
    folder = make_folder(tmp_path / "in", shards)
    refused = run("export", folder, "--to", "npy", "--output", tmp_path / "out")
    assert refused.code == 1
    assert "document" in refused.err
    assert "shard-0000" in refused.err
    assert not list((tmp_path / "out").glob("*.npy"))


def test_a_packed_row_that_does_not_go_on_is_named_by_its_number(
    tiny: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "a.txt").write_bytes(tiny.read_bytes()[:2000])
    pack = ("--pack", 16, "--pad-id", 0, "--input-format", "lines")
    command = ("encode", "--input", tmp_path / "a.txt", "--tokenizer", model_dir, *pack)
    assert run(*command, "--output", tmp_path / "in").code == 0
    named = []

    def change(shards: list[list[dict[str, Any]]]) -> None:
        rows = shards[0]
        at = next(at for at, row in enumerate(rows) if at > 5 and not row["is_first"][0])
        assert sum(len(row["lengths"]) for row in rows[:at]) > at
        rows[at]["document_ids"][0] = "other"
        named.append(at)

    forge_rows(tmp_path / "in", change)
    refused = run("export", tmp_path / "in", "--to", "npy", "--output", tmp_path / "out")
    assert refused.code == 1
    assert f"shard-00000-000.arrow: row {named[0]} (other) does not continue" in refused.err


def test_an_export_with_other_settings_is_replaced_only_when_told_to(
    token_folder: Path, wide: Path, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    command = ("export", token_folder, "--output", output, "--to")
    assert run(*command, "datatrove", "--tokens-per-file", 9000).code == 0
    (output / "notes.txt").write_text("mine")
    refused = run(*command, "llmc")
    assert refused.code == 1
    assert 'to: was "datatrove", now "llmc"' in refused.err
    refused = run("export", wide, *command[2:], "datatrove", "--tokens-per-file", 9000)
    assert f"source: was {token_folder}, now {wide}" in refused.err
    assert run(*command, "llmc", "--overwrite").code == 0
    names = {path.name for path in output.iterdir()}
    assert names == {"notes.txt", "run.json", "export.json", "tokens_train_000000.bin"}


def test_folders_of_others_are_refused(token_folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train.bin").write_text("mine")
    refused = run("export", token_folder, "--to", "nanogpt", "--output", tmp_path / "out")
    assert refused.code == 1
    assert "train.bin" in refused.err
    for more in ([], ["--overwrite"]):
        refused = run("export", token_folder, "--to", "npy", "--output", token_folder, *more)
        assert refused.code == 1
        assert "is a folder of beam-bpe encode" in refused.err


def test_an_export_cut_short_between_its_renames_is_made_again(
    token_folder: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ("export", token_folder, "--to", "datatrove", "--tokens-per-file", 9000)
    assert run(*command, "--output", tmp_path / "whole").code == 0
    count = 0
    publish = ExportFile.publish

    def publish_four(file: ExportFile) -> Any:
        nonlocal count
        count += 1
        if count > 4:
            raise KeyboardInterrupt
        return publish(file)

    with monkeypatch.context() as patch:
        patch.setattr(ExportFile, "publish", publish_four)
        patch.setattr("os._exit", lambda _: None)
        run(*command, "--output", tmp_path / "cut")
    assert len(list((tmp_path / "cut").glob("*.ds*"))) == 4
    assert not (tmp_path / "cut" / "export.json").exists()
    assert run(*command, "--output", tmp_path / "cut").code == 0
    assert tree_bytes(tmp_path / "cut") == tree_bytes(tmp_path / "whole")


@pytest.mark.parametrize("target", EXPORT_FORMATS)
def test_a_full_disk_is_one_message_and_leaves_no_file(
    target: str, token_folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = HashingFile.write

    def refuse(file: HashingFile, data: bytes) -> int:
        if file.size > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    command = ("export", token_folder, "--to", target, *OPTIONS.get(target, ()))
    with monkeypatch.context() as patch:
        patch.setattr(HashingFile, "write", refuse)
        refused = run(*command, "--output", tmp_path / "out")
    assert refused.code == 1
    assert re.search(r"out/\S+: cannot be written: .*No space left", refused.err)
    assert refused.err.count("rror:") == 1
    left = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert left == ["run.json"]


def test_a_killed_export_shows_nothing_and_ends_with_the_same_bytes(
    make_folder: Make, tmp_path: Path, start: Run, run: Run, tree_bytes: Tree
) -> None:
    batch = [([5] * 5, f"0:{number}", 0, True) for number in range(50_000)]
    folder = make_folder(tmp_path / "in", [[batch], [batch], [batch]])
    command = ("export", folder, "--to", "mds")
    killed = tmp_path / "killed"
    process = start(*command, "--output", killed, seconds_per_rename=2)
    deadline = time.monotonic() + 120
    half = "_temporary/shard.00000.mds.*"
    while time.monotonic() < deadline and not any(killed.glob(half)):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert any(killed.glob(half))
    seen = {path.name for path in killed.iterdir() if path.is_file()}
    assert seen <= {"run.json", ".beam-bpe.lock"}
    assert run(*command, "--output", killed).code == 0
    assert run(*command, "--output", tmp_path / "whole").code == 0
    assert tree_bytes(killed) == tree_bytes(tmp_path / "whole")


@pytest.fixture(scope="module", params=["ten documents a batch", "one document"])
def long_folder(
    request: pytest.FixtureRequest, make_folder: Make, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """60 batches of 200 kB."""
    one = request.param == "one document"
    ids = np.full(10_000, 5)
    batches = [
        [
            (ids, "a" if one else f"{number}:{row}", 10 * number + row if one else 0, not one)
            for row in range(10)
        ]
        for number in range(60)
    ]
    batches[-1][-1] = (*batches[-1][-1][:3], True)
    folder = tmp_path_factory.mktemp("long") / "in"
    return make_folder(folder, [batches[:20], batches[20:40], batches[40:]])


@pytest.mark.parametrize("target", EXPORT_FORMATS)
def test_memory_holds_a_batch_not_a_document_or_the_shards(
    target: str, long_folder: Path, tmp_path: Path
) -> None:
    export = EXPORTS[target](ExportOptions(block_size=65 if target == "litdata" else None))
    source = ShardSource(str(long_folder))
    with ExportFolder(str(tmp_path)) as files:
        tracemalloc.start()
        export.write(source, files)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        files.publish()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 11_900_000
    assert peak < 3_000_000
