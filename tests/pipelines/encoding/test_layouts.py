"""Layouts with everything else: input formats, worker counts, exports, `TokenShards`."""

from __future__ import annotations

import bz2
import csv
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe.errors import OutputError, SettingsError
from pipelines import TokenShards
from pipelines.cli.output_arguments import EXPORT_FORMATS
from pipelines.shards.mapped_shard import PackedRow
from tests.pipelines.conftest import Run

EOS = ("--append-eos", "<|endoftext|>")
SPLIT = ("--split", "train=0.8,validation=0.2")
LAYOUTS: dict[str, tuple[object, ...]] = {
    "packed": ("--pack", 32, "--shuffle", "shard", *EOS),
    "divided": (*SPLIT, "--shuffle", "global", "--compression", "zstd"),
}
FORMATS = ("jsonl", "jsonl.bz2", "jsonl.xz", "parquet", "arrow", "csv")


def write_input(folder: Path, name: str, texts: list[str | None]) -> Path:
    """The same documents in a format; None is a row without text."""
    path = folder / f"rows.{name}"
    table = pa.table({"text": pa.array(texts, pa.string())})
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    if name == "parquet":
        pq.write_table(table, path, row_group_size=20)
    elif name == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=20)
    elif name == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["text"], *([t or ""] for t in texts)])
    else:
        pack = {"jsonl.bz2": bz2.compress, "jsonl.xz": lzma.compress}.get(name, bytes)
        path.write_bytes(pack(lines))
    return path


@pytest.fixture(scope="module")
def texts(tiny: Path) -> list[str | None]:
    paragraphs = tiny.read_bytes()[:12_000].decode().split("\n\n")
    return [*paragraphs[:30], None, "", *paragraphs[30:]]


Encode = Callable[..., Path]


@pytest.fixture
def encode(run: Run, model_dir: Path, tmp_path: Path) -> Encode:
    """Encodes an input into a folder of a name, or fails the test."""

    def encode_into(name: str, source: Path, *options: object) -> Path:
        done = run(
            *("encode", "--input", source, "--tokenizer", model_dir),
            *("--output", tmp_path / name, "--on-bad-record", "skip", *options),
        )
        assert done.code == 0, done.err
        return tmp_path / name

    return encode_into


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "__beam-bpe__/manifest.json").read_bytes())
    return content


def digests(folder: Path) -> list[tuple[str, str]]:
    return [(shard["file"], shard["sha256"]) for shard in manifest_of(folder)["shards"]]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FORMATS)
def test_workers_do_not_decide_bytes_and_no_document_is_lost(
    name: str, layout: str, texts: list[str | None], encode: Encode, run: Run, tmp_path: Path
) -> None:
    source = write_input(tmp_path, name, texts)
    options = ("--range-bytes", 3000, *LAYOUTS[layout])
    one = encode("one", source, *options, "--direct_num_workers=1")
    listed = tmp_path / "list"
    listed.write_text(f"{source}\n")
    two = tmp_path / "two"
    done = run(
        *(
            "encode",
            "--input-list",
            listed,
            "--tokenizer",
            one / "__beam-bpe__/tokenizer",
            "--output",
            two,
        ),
        *("--on-bad-record", "skip", *options, "--direct_num_workers=2"),
    )
    assert done.code == 0, done.err
    assert digests(one) == digests(two)
    totals = manifest_of(one)["totals"]
    # CSV has no null: there the row is an empty document.
    rejected = int(name != "csv")
    assert totals["documents_in"] == len(texts) == totals["documents"] + totals["rejected"]
    assert totals["rejected"] == rejected
    assert run("verify", one, "--full").code == 0
    assert "document" in run("head", one).out
    plan = run("plan", "--input", source, "--on-bad-record", "skip")
    assert "documents of unit" in plan.out


@pytest.mark.slow
def test_processes_do_not_decide_bytes(
    texts: list[str | None], encode: Encode, tmp_path: Path
) -> None:
    source = write_input(tmp_path, "jsonl", texts)
    options = ("--range-bytes", 3000, *LAYOUTS["divided"])
    threads = encode("threads", source, *options)
    processes = encode("processes", source, *options, "--direct_running_mode=multi_processing")
    assert digests(threads) == digests(processes)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("mode", ["concat", "pad"])
@pytest.mark.parametrize("target", ["npy", "megatron", "datatrove", "nanogpt", "llmc"])
def test_packed_documents_are_joined_again(
    target: str,
    mode: str,
    texts: list[str | None],
    encode: Encode,
    run: Run,
    tmp_path: Path,
    tree_bytes: Callable[[Path], dict[str, bytes]],
) -> None:
    source = write_input(tmp_path, "jsonl", texts)
    options = ("--range-bytes", 3000, *EOS)
    found = []
    for name, more in (("rows", ()), ("packed", ("--pack", 32, "--pack-mode", mode))):
        folder = encode(name, source, *options, *more, "--compression", "lz4")
        output = tmp_path / f"{name}-out"
        done = run("export", folder, "--to", target, "--output", output)
        assert done.code == 0, done.err
        files = tree_bytes(output)
        found.append({name: files[name] for name in files if not name.endswith(".json")})
    assert found[0] == found[1]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("target", EXPORT_FORMATS)
@pytest.mark.parametrize(
    "options", [("--pack-mode", "best-fit"), ("--pack-tail", "drop")], ids=["best-fit", "drop"]
)
def test_rows_that_are_no_documents_go_where_rows_go(
    target: str,
    options: tuple[str, ...],
    texts: list[str | None],
    encode: Encode,
    run: Run,
    tmp_path: Path,
) -> None:
    source = write_input(tmp_path, "jsonl", texts)
    folder = encode("in", source, "--pack", 32, *options, "--pad-id", 0)
    block = ("--block-size", 32) if target == "litdata" else ()
    done = run("export", folder, "--to", target, "--output", tmp_path / "out", *block)
    if target not in ("hf", "mds", "litdata"):
        assert done.code == 1
        assert options[1] in done.err
        return
    assert done.code == 0, done.err
    rows = np.concatenate(list(TokenShards(folder)))
    if target == "litdata":
        data = (tmp_path / "out" / "chunk-0-0.bin").read_bytes()[12:]
        assert np.frombuffer(data, np.uint16).tolist() == rows.tolist()
        wrong = run(
            *("export", folder, "--to", target, "--output", tmp_path / "other"),
            *("--block-size", 31),
        )
        assert "give --block-size 32" in wrong.err
    if target == "hf":
        with pa.memory_map(str(tmp_path / "out" / "data-00000-of-00001.arrow")) as file:
            table = pa.ipc.open_stream(file).read_all()
        ids = table["input_ids"].combine_chunks().flatten().to_pylist()
        assert ids == rows.tolist()
        assert set(table.column_names) >= {"lengths", "sources", "is_last"}


@pytest.mark.parametrize("target", ["nanogpt", "llmc"])
def test_train_and_validation_become_the_two_sides(
    target: str, texts: list[str | None], encode: Encode, run: Run, tmp_path: Path
) -> None:
    source = write_input(tmp_path, "jsonl", texts)
    folder = encode("in", source, *SPLIT, "--range-bytes", 3000)
    output = tmp_path / "out"
    done = run("export", folder, "--to", target, "--output", output)
    assert done.code == 0
    for split in ("train", "validation"):
        counts = manifest_of(folder)["totals"]["splits"][split]
        line = f"{split:<16} {counts['documents']:,} documents, {counts['tokens']:,} tokens\n"
        assert line in done.out
    names = {
        "nanogpt": ("train.bin", "val.bin", 0),
        "llmc": ("tokens_train_000001.bin", "tokens_val_000000.bin", 1024),
    }[target]
    for split, name in zip(("train", "validation"), names[:2], strict=True):
        found = np.frombuffer((output / name).read_bytes()[names[2] :], np.uint16)
        shards = TokenShards(folder, split=split)
        assert found.tolist() == shards.tokens(0, shards.token_count).tolist()


def test_a_split_is_named(
    texts: list[str | None], encode: Encode, run: Run, tmp_path: Path
) -> None:
    folder = encode("in", write_input(tmp_path, "jsonl", texts), *SPLIT)
    command = ("export", folder, "--to", "npy", "--output", tmp_path / "out")
    assert "divided into train, validation; name one with --split" in run(*command).err
    assert "no such split; it has train" in run(*command, "--split", "dev").err
    assert run(*command, "--split", "train").code == 0
    with pytest.raises(SettingsError, match="divided into train, validation"):
        TokenShards(folder)
    with pytest.raises(OutputError, match=r"TokenShards\('.*/in', split='train'\)"):
        TokenShards(folder / "train")
    heads = [run("head", folder, "--rows", 1, "--split", each) for each in ("train", "validation")]
    assert [each.code for each in heads] == [0, 0]
    assert heads[0].out == run("head", folder, "--rows", 1).out != heads[1].out
    assert "no such split; it has train" in run("head", folder, "--split", "dev").err
    both = [TokenShards(folder, split=split) for split in ("train", "validation")]
    assert sum(each.document_count for each in both) == manifest_of(folder)["totals"]["documents"]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_packed_rows_are_read_with_their_segments(
    compression: str, texts: list[str | None], encode: Encode, tmp_path: Path
) -> None:
    source = write_input(tmp_path, "jsonl", texts)
    folder = encode("in", source, "--pack", 32, *EOS, "--compression", compression)
    shards = TokenShards(folder)
    assert shards.row_ids == 32
    assert shards.token_count == 32 * len(shards)
    documents: list[list[int]] = [[]]
    for number in range(len(shards)):
        row = shards.row(number)
        assert isinstance(row, PackedRow)
        assert shards[number].tolist() == row.ids.tolist()
        for part, last in zip(
            np.split(row.ids, np.cumsum(row.lengths))[:-1], row.is_last, strict=True
        ):
            documents[-1] += part.tolist()
            if last:
                documents.append([])
    plain = TokenShards(encode("plain", source, *EOS))
    assert documents[:-1] == [plain.document(n).tolist() for n in range(plain.document_count)]
    with pytest.raises(SettingsError, match="packed"):
        shards.document(0)
