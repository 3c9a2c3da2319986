"""Every export format, taken apart again by its description: ids and documents are all there."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.exports import EXPORTS, ExportOptions, ShardSource, Written
from pipelines.exports.export_folder import ExportFolder
from pipelines.exports.validation_split import HeldOut

Make = Callable[..., Path]
LayOut = Callable[..., Any]
Documents = list[list[int]]

ROWS = st.lists(st.lists(st.integers(0, 300), max_size=5), min_size=1, max_size=4)
FOLDERS = {
    "documents": st.lists(ROWS, min_size=1, max_size=12),
    "cuts": st.lists(st.integers(0, 2), min_size=1, max_size=7),
    "largest": st.sampled_from([300, 70_000]),
    "marks": st.sampled_from([(None, None), (None, 7), (8, None), (8, 7)]),
}


def write(folder: Path, target: str, *, marks: Any = (None, None), **options: Any) -> Written:
    """Export the shards in `folder/in` to `folder/out`."""
    source = ShardSource(str(folder / "in"), bos=marks[0], eos=marks[1])
    export = EXPORTS[target](ExportOptions(**options))
    export.check(source)
    (folder / "out").mkdir()
    with ExportFolder(str(folder / "out")) as files:
        written = export.write(source, files)
        published = files.publish()
    pattern = export.file_names
    assert all(pattern.fullmatch(file.name) for file in published)
    return written


def expected(documents: list[Documents], marks: Any) -> Documents:
    bos, eos = ([] if mark is None else [mark] for mark in marks)
    return [bos + [each for row in document for each in row] + eos for document in documents]


# Readers by the descriptions of the formats, which share nothing with the writers.


def read_hf(out: Path) -> Documents:
    documents: Documents = []
    state = json.loads((out / "state.json").read_bytes())
    for entry in state["_data_files"]:
        with pa.OSFile(str(out / entry["filename"])) as file:
            documents += pa.ipc.open_stream(file).read_all()["input_ids"].to_pylist()
    return documents


def read_megatron(out: Path) -> Documents:
    data = (out / "tokens_text_document.idx").read_bytes()
    assert data[:9] == b"MMIDIDX\0\0"
    version, code, sequences, count = struct.unpack_from("<QBQQ", data, 9)
    assert version == 1
    dtype = np.dtype({4: "<i4", 8: "<u2"}[code])
    place = 34
    lengths = np.frombuffer(data, "<i4", sequences, place)
    offsets = np.frombuffer(data, "<i8", sequences, place + 4 * sequences)
    borders = np.frombuffer(data, "<i8", count, place + 12 * sequences)
    assert len(data) == place + 12 * sequences + 8 * count
    assert borders[0] == 0
    assert borders[-1] == sequences
    tokens = (out / "tokens_text_document.bin").read_bytes()
    found = [
        np.frombuffer(tokens, dtype, length, offset).tolist()
        for length, offset in zip(lengths, offsets, strict=True)
    ]
    assert sum(map(len, found)) * dtype.itemsize == len(tokens)
    return [
        [token for sequence in found[start:end] for token in sequence]
        for start, end in pairwise(borders)
    ]


def read_datatrove(out: Path) -> Documents:
    documents: Documents = []
    for path in sorted(out.glob("*.ds")):
        head = Path(f"{path}.metadata").read_text().split("\n")
        size = int(head[0].split("|")[1])
        tokens = np.fromfile(path, {2: "<u2", 4: "<u4"}[size])
        assert int(head[1]) == len(tokens)
        ends = np.fromfile(f"{path}.index", "<u8").astype(np.int64)
        assert ends[-1] == len(tokens)
        assert len(tokens)
        starts = [0, *ends[:-1]]
        documents += [tokens[a:b].tolist() for a, b in zip(starts, ends, strict=True)]
    return documents


def read_npy(out: Path) -> Documents:
    tokens = np.load(out / "tokens.npy", mmap_mode="r") if (out / "tokens.npy").exists() else []
    ends = np.load(out / "document_ends.npy").astype(np.int64)
    return [tokens[a:b].tolist() for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def mds_samples(out: Path) -> Iterator[bytes]:
    index = json.loads((out / "index.json").read_bytes())
    for shard in index["shards"]:
        data = (out / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"]
        (count,) = struct.unpack_from("<I", data)
        assert count == shard["samples"]
        places = struct.unpack_from(f"<{count + 1}I", data, 4)
        config = json.loads(data[4 * (count + 2) : places[0]])
        assert all(shard[key] == value for key, value in config.items())
        for start, end in pairwise(places):
            yield data[start:end]


def read_mds(out: Path) -> Documents:
    index = json.loads((out / "index.json").read_bytes())
    kind = index["shards"][0]["column_encodings"][0].split(":")[1]
    documents = []
    for sample in mds_samples(out):
        (size,) = struct.unpack_from("<I", sample)
        assert size == len(sample) - 4
        assert sample[4] >> 2 == 1
        width = 1 << (sample[4] & 3)
        count = int.from_bytes(sample[5 : 5 + width], "little")
        ids = np.frombuffer(sample[5 + width :], np.dtype(kind).newbyteorder("<"))
        assert count == len(ids)
        documents.append(ids.tolist())
    return documents


READERS = {
    "hf": read_hf,
    "megatron": read_megatron,
    "datatrove": read_datatrove,
    "npy": read_npy,
    "mds": read_mds,
}


@settings(max_examples=40, deadline=None)
@given(target=st.sampled_from(sorted(READERS)), limit=st.integers(1, 9), **FOLDERS)
def test_documents_survive(
    target: str,
    limit: int,
    documents: list[Documents],
    cuts: list[int],
    largest: int,
    marks: Any,
    make_folder: Make,
    lay_out: LayOut,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    wanted = expected(documents, marks)
    if not any(wanted):
        return
    folder = tmp_path_factory.mktemp("made")
    make_folder(folder / "in", lay_out(documents, cuts), largest=largest)
    options = {"tokens_per_file": limit} if target == "datatrove" else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.exports.hf_dataset._FILE_BYTES", 600)
        patch.setattr("pipelines.exports.mds._SHARD_BYTES", 260)
        patch.setattr("pipelines.exports.megatron._BLOCK", 3)
        written = write(folder, target, marks=marks, **options)
    if target == "mds":
        assert written.left_out.get("documents without tokens", 0) == wanted.count([])
        wanted = [document for document in wanted if document]
    assert READERS[target](folder / "out") == wanted
    assert (written.documents, written.tokens) == (len(wanted), sum(map(len, wanted)))


def read_litdata(out: Path, block: int) -> list[int]:
    ids: list[int] = []
    index = json.loads((out / "index.json").read_bytes())
    code = index["config"]["data_format"][0].removeprefix("no_header_numpy:")
    dtype = {"2": "<i4", "5": "<u2", "6": "<u4"}[code]
    for chunk in index["chunks"]:
        data = (out / chunk["filename"]).read_bytes()
        assert len(data) == chunk["chunk_bytes"]
        count, first, end = struct.unpack_from("<3I", data)
        assert (count, first, end) == (chunk["chunk_size"], 12, len(data))
        tokens = np.frombuffer(data[12:], dtype)
        assert len(tokens) == chunk["dim"]
        assert len(tokens) % block == 0
        ids += tokens.tolist()
    return ids


def read_mds_blocks(out: Path, block: int) -> list[int]:
    ids: list[int] = []
    for sample in mds_samples(out):
        tokens = np.frombuffer(sample, "<i4")
        assert len(tokens) == block
        ids += tokens.tolist()
    return ids


@settings(max_examples=30, deadline=None)
@given(target=st.sampled_from(["litdata", "mds"]), block=st.integers(1, 9), **FOLDERS)
def test_blocks_run_on_over_documents_and_files(
    target: str,
    block: int,
    documents: list[Documents],
    cuts: list[int],
    largest: int,
    marks: Any,
    make_folder: Make,
    lay_out: LayOut,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    flat = [token for document in expected(documents, marks) for token in document]
    if len(flat) < block:
        return
    folder = tmp_path_factory.mktemp("made")
    make_folder(folder / "in", lay_out(documents, cuts), largest=largest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.exports.litdata._CHUNK_BYTES", 40)
        patch.setattr("pipelines.exports.mds._SHARD_BYTES", 260)
        written = write(folder, target, marks=marks, block_size=block)
    read = {"litdata": read_litdata, "mds": read_mds_blocks}[target]
    kept = len(flat) - len(flat) % block
    assert read(folder / "out", block) == flat[:kept]
    assert written.tokens == kept
    assert sum(written.left_out.values()) == len(flat) - kept


def read_llmc(paths: list[Path]) -> list[list[int]]:
    files = []
    for path in paths:
        data = path.read_bytes()
        header = np.frombuffer(data, "<i4", 256)
        kind = {(20240520, 1): "<u2", (20240801, 7): "<u4"}[header[0], header[1]]
        ids = np.frombuffer(data, kind, -1, 1024)
        assert header[2] == len(ids) > 0
        assert not header[3:].any()
        files.append(ids.tolist())
    return files


@settings(max_examples=40, deadline=None)
@given(fraction=st.sampled_from([None, 0.3, 0.5]), limit=st.integers(1, 9), **FOLDERS)
def test_sides_of_llmc_hold_all_documents_in_order(
    fraction: float | None,
    limit: int,
    documents: list[Documents],
    cuts: list[int],
    largest: int,
    marks: Any,
    make_folder: Make,
    lay_out: LayOut,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    wanted = expected(documents, marks)
    chosen = HeldOut(fraction or 0.0).rows(np.ones(len(wanted), np.bool_)).tolist()
    if not any(wanted) or (fraction and len(set(chosen)) < 2):
        return
    folder = tmp_path_factory.mktemp("made")
    make_folder(folder / "in", lay_out(documents, cuts), largest=largest)
    write(folder, "llmc", marks=marks, val_fraction=fraction, tokens_per_file=limit)
    val = read_llmc(sorted((folder / "out").glob("tokens_val_*.bin")))
    train = read_llmc(sorted((folder / "out").glob("tokens_train_*.bin")))
    for files, side in ((val, True), (train, False)):
        flat = [t for each, held in zip(wanted, chosen, strict=True) if held == side for t in each]
        assert [token for file in files for token in file] == flat
        assert all(len(file) == limit for file in files[:-1])
    numbers = sorted(int(path.stem[-6:]) for path in (folder / "out").iterdir() if path.is_file())
    assert numbers == list(range(len(val) + len(train)))


@pytest.mark.parametrize("fraction", [None, 0.5])
def test_nanogpt_files_are_bare_ids(
    fraction: float | None, make_folder: Make, lay_out: LayOut, tmp_path: Path
) -> None:
    documents = [[[number, 1], [2]] for number in range(40)]
    make_folder(tmp_path / "in", lay_out(documents, [0, 1, 2, 0, 0]), largest=70_000)
    written = write(tmp_path, "nanogpt", marks=(None, 9), val_fraction=fraction)
    sides = [
        np.fromfile(path, "<u2").reshape(-1, 4).tolist()
        for path in sorted((tmp_path / "out").glob("*.bin"))
    ]
    assert len(sides) == (1 if fraction is None else 2)
    assert all(side == sorted(side) for side in sides)
    told = [(each.documents, each.tokens) for each in written.sides.values()]
    assert told == ([(len(side), 4 * len(side)) for side in sides] if fraction else [])
    wanted = [[number, 1, 2, 9] for number in range(40)]
    assert sorted(row for side in sides for row in side) == wanted


def test_about_the_fraction_of_documents_is_held_out() -> None:
    chosen = HeldOut(0.01)
    parts = [chosen.rows(np.ones(25_000, np.bool_)) for _ in range(4)]
    assert 850 < sum(part.sum() for part in parts) < 1150
    assert len({part.tobytes() for part in parts}) == 4


def test_rows_of_a_document_are_held_out_together() -> None:
    ends = np.random.default_rng(1).random(5000) < 0.3
    rows = HeldOut(0.5).rows(ends)
    halves = HeldOut(0.5)
    assert (np.concatenate([halves.rows(ends[:777]), halves.rows(ends[777:])]) == rows).all()
    document = np.cumsum(ends) - ends
    assert all(len(set(rows[document == number])) == 1 for number in range(document[-1]))


def test_an_encoded_folder_comes_out_as_its_documents(
    token_folder: Path, read_documents: Callable[[Path], Documents], tmp_path: Path
) -> None:
    (tmp_path / "in").symlink_to(token_folder)
    write(tmp_path, "hf")
    assert read_hf(tmp_path / "out") == read_documents(token_folder)
