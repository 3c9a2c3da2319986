"""Exports are read back by the loaders that they are made for.

The loaders come with `pip install -e '.[test-exports]'`; each test is skipped, loudly, without its
own. `tests/pipelines/exports/test_export_formats.py` reads the same files by their description.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")

Run = Callable[..., Any]
Documents = list[list[int]]


@pytest.fixture
def documents(token_folder: Path, read_documents: Callable[[Path], Documents]) -> Documents:
    return read_documents(token_folder)


@pytest.fixture
def export(token_folder: Path, tmp_path: Path, run: Run) -> Callable[..., Path]:
    """Exports the encoded folder by the command; returns the new one."""

    def export_to(target: str, *options: object, folder: Path = token_folder) -> Path:
        output = tmp_path / "exported"
        done = run("export", folder, "--to", target, "--output", output, *options)
        assert done.code == 0, done.err
        return output

    return export_to


def loader(name: str) -> Any:
    reason = f"{name} is not installed: pip install -e '.[test-exports]'"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)


def test_datasets_loads_the_documents(
    documents: Documents, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = loader("datasets")
    monkeypatch.setattr("pipelines.exports.hf_dataset._FILE_BYTES", 50_000)
    output = export("hf")
    loaded = datasets.load_from_disk(str(output))
    assert len(list(output.glob("data-*.arrow"))) > 1
    assert loaded["input_ids"][:] == documents
    assert loaded.features["input_ids"].feature.dtype == "uint16"
    assert loaded.features["document_id"].dtype == loaded.features["source"].dtype == "string"
    assert loaded[0]["source"] == "a.txt"
    shuffled = loaded.shuffle(seed=1)
    assert sorted(map(len, shuffled["input_ids"])) == sorted(map(len, documents))


def test_mosaic_streaming_loads_the_documents(
    documents: Documents, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    streaming = loader("streaming")
    monkeypatch.setattr("pipelines.exports.mds._SHARD_BYTES", 50_000)
    output = export("mds", "--append-eos", "<|endoftext|>")
    assert len(list(output.glob("*.mds"))) > 1
    loaded = streaming.LocalDataset(local=str(output))
    found = [loaded[index]["tokens"] for index in range(len(loaded))]
    assert [ids.tolist() for ids in found] == [[*document, 261] for document in documents]
    assert all(ids.dtype == np.uint16 for ids in found)


@pytest.mark.parametrize("block", [None, 64])
def test_mosaic_streaming_writes_the_same_bytes(
    block: int | None,
    documents: Documents,
    export: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streaming = loader("streaming")
    # All samples fit: for one that does not, theirs writes an empty shard before it.
    limit = 57_000
    monkeypatch.setattr("pipelines.exports.mds._SHARD_BYTES", limit)
    output = export("mds", *(() if block is None else ("--block-size", block)))
    kind = "ndarray:uint16" if block is None else f"ndarray:int32:{block}"
    flat = np.array([token for document in documents for token in document], np.int32)
    samples = (
        [np.array(document, np.uint16) for document in documents if document]
        if block is None
        else list(flat[: len(flat) // block * block].reshape(-1, block))
    )
    theirs = tmp_path / "theirs"
    with streaming.MDSWriter(columns={"tokens": kind}, out=str(theirs), size_limit=limit) as writer:
        for sample in samples:
            writer.write({"tokens": sample})
    names = sorted(path.name for path in theirs.iterdir())
    assert len(names) > 2
    for name in names:
        assert (output / name).read_bytes() == (theirs / name).read_bytes(), name
    assert {path.name for path in output.iterdir()} == {*names, "run.json", "export.json"}


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_litdata_loads_the_blocks(
    dtype: str,
    documents: Documents,
    export: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    litdata = loader("litdata")
    monkeypatch.setattr("pipelines.exports.litdata._CHUNK_BYTES", 30_000)
    monkeypatch.setenv("HOME", str(tmp_path))
    output = export("litdata", "--block-size", 65, "--dtype", dtype)
    assert len(list(output.glob("*.bin"))) > 2
    loaded = litdata.StreamingDataset(
        str(output), item_loader=litdata.TokensLoader(block_size=65), shuffle=False
    )
    flat = [token for document in documents for token in document]
    assert len(loaded) == len(flat) // 65
    found = np.concatenate([np.asarray(loaded[index]) for index in range(len(loaded))])
    assert found.tolist() == flat[: len(found)]
    assert found.dtype == dtype


@pytest.mark.parametrize(("dtype", "size"), [("uint16", 2), ("uint32", 4)])
def test_datatrove_loads_ids_and_positions(
    dtype: str, size: int, documents: Documents, export: Callable[..., Path]
) -> None:
    loader("torch")
    dataset = loader("datatrove.utils.dataset")
    output = export("datatrove", "--dtype", dtype)
    loaded = dataset.DatatroveFolderDataset(
        str(output), seq_len=64, token_size=size, return_positions=True, shuffle=False
    )
    flat = [token for document in documents for token in document]
    places = [place for document in documents for place in range(len(document))]
    assert len(loaded) == len(flat) // 65
    items = [loaded[index] for index in range(len(loaded))]
    assert [token for item in items for token in item["input_ids"].tolist()] == flat[
        : len(items) * 65
    ]
    # Positions count from 0 at the beginning of a document, and of an item.
    for number in (0, len(items) // 2, len(items) - 1):
        start = 65 * number
        wanted = [
            place - (places[start] if place - index == places[start] else 0)
            for index, place in enumerate(places[start : start + 65])
        ]
        assert items[number]["positions"].tolist() == wanted


def test_datatrove_writes_the_same_bytes(
    documents: Documents, export: Callable[..., Path], tmp_path: Path
) -> None:
    loader("torch")
    tokens = loader("datatrove.pipeline.tokens.tokenizer")
    output = export("datatrove")
    metadata = (output / "00000_unshuffled.ds.metadata").read_text()
    theirs = tokens.TokenizedFile(
        str(tmp_path / "theirs"),
        "00000_unshuffled.ds",
        save_final_metadata=True,
        tokenizer_name_or_path=metadata.split("|")[0],
    )
    for document in documents:
        theirs.write(document, None)
    theirs.close()
    for path in (tmp_path / "theirs").iterdir():
        assert (output / path.name).read_bytes() == path.read_bytes()


def test_datatrove_counts_are_spelled_as_there() -> None:
    humanize = loader("humanize")
    counts = loader("pipelines.exports.datatrove")
    for number in (0, 7, 999, 1000, 1234, 99_400, 459_792, 12_345_678, 10**9, 99 * 10**11, 10**13):
        assert counts.metric_count(number) == humanize.metric(number, unit="T")


def test_numpy_maps_ids_and_ends(documents: Documents, export: Callable[..., Path]) -> None:
    output = export("npy")
    tokens = np.load(output / "tokens.npy", mmap_mode="r")
    ends = np.load(output / "document_ends.npy", mmap_mode="r")
    assert (tokens.dtype, ends.dtype) == (np.uint16, np.uint64)
    assert isinstance(tokens, np.memmap)
    found = np.split(tokens, ends[:-1].astype(np.int64))
    assert [ids.tolist() for ids in found] == documents
    # The ids begin where a cache line does.
    assert tokens.offset % 64 == 0


def test_torch_takes_views_of_shards(token_folder: Path) -> None:
    torch = loader("torch")
    shards = loader("pipelines.shards.token_shards").TokenShards(token_folder)
    ids = shards.tokens(10, 20)
    assert torch.from_numpy(ids.astype(np.int64)).tolist() == ids.tolist()


def test_records_of_an_export_name_its_files(export: Callable[..., Path]) -> None:
    output = export("megatron", "--name", "books")
    record = json.loads((output / "export.json").read_bytes())
    names = [file["name"] for file in record["files"]]
    assert names == ["books_text_document.bin", "books_text_document.idx"]
    assert [(output / name).stat().st_size for name in names] == [
        file["bytes"] for file in record["files"]
    ]
