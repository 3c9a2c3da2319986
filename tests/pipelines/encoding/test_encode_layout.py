"""`beam-bpe encode` with packed, shuffled, divided and compressed outputs, from end to end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bpe.tokenizer import Tokenizer

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
Documents = dict[tuple[str, str], list[int]]

PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
SPLIT = ["--split", "train=0.7,test=0.3"]
EVERYTHING = [
    *("--shuffle", "global", "--seed", 5, *SPLIT, "--pack", 64, "--pack-mode", "best-fit"),
    *("--shard-bytes", 9000, "--compression", "lz4"),
]
LAYOUTS: dict[str, list[Any]] = {
    "plain": [],
    "zstd": ["--compression", "zstd", "--shard-bytes", 5000],
    "split": SPLIT,
    "concat": ["--pack", 64],
    "best-fit": ["--pack", 64, "--pack-mode", "best-fit", "--prepend-bos", 261],
    "pad": ["--pack", 64, "--pack-mode", "pad", "--pad-id", 0, "--compression", "lz4"],
    "shard": ["--shuffle", "shard", "--shard-bytes", 5000, "--max-row-tokens", 8000],
    "global": ["--shuffle", "global", "--shard-bytes", 9000],
    "shard and all": ["--shuffle", "shard", *SPLIT, "--pack", 64, "--shard-bytes", 5000],
    "everything": EVERYTHING,
}


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many documents in two files, and one that takes several units."""
    folder = tmp_path_factory.mktemp("corpus")
    text = tiny.read_bytes()[:60_000].decode()
    documents = [json.dumps({"text": part}) + "\n" for part in text[:45_000].split("\n\n")]
    (folder / "a.jsonl").write_text("".join(documents[:100]))
    (folder / "b.txt").write_text(text[45_000:])
    (folder / "c.jsonl").write_text('{"text": ""}\n' + "".join(documents[100:]))
    return folder


@pytest.fixture
def encode(corpus: Path, model_dir: Path, run: Run) -> Run:
    """Encodes the corpus in units of about 4,000 bytes."""

    def start(output: Path, *options: object) -> Any:
        return run(
            *("encode", "--input", corpus, "--tokenizer", model_dir, "--range-bytes", 4000),
            *("--append-eos", 261, "--output", output, *options),
        )

    return start


def manifest_of(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())
    return found


def read_rows(output: Path, split: str = "") -> list[dict[str, Any]]:
    """Rows of all shards in the manifest's order."""
    rows: list[dict[str, Any]] = []
    for shard in manifest_of(output)["shards"]:
        if shard["split"] == split:
            with pa.memory_map(str(output / shard["file"])) as file:
                rows += pa.ipc.open_file(file).read_all().to_pylist()
    return rows


def documents(rows: list[dict[str, Any]]) -> Documents:
    """Ids of each document, from rows of either kind, pieces in the order of the text."""
    pieces: dict[tuple[str, str], list[tuple[Any, list[int]]]] = {}
    for row in rows:
        if "lengths" not in row:
            key = (row["source"], row["document_id"])
            pieces.setdefault(key, []).append((row["part"], row["input_ids"]))
            continue
        start = 0
        for number, length in enumerate(row["lengths"]):
            key = (row["sources"][number], row["document_ids"][number])
            place = (row["byte_starts"][number], row["positions"][number])
            pieces.setdefault(key, []).append((place, row["input_ids"][start : start + length]))
            start += length
    return {
        key: [token for _, ids in sorted(found, key=lambda each: each[0]) for token in ids]
        for key, found in pieces.items()
    }


@pytest.fixture(scope="module")
def expected(corpus: Path, model_dir: Path) -> Documents:
    """Every document of the corpus, encoded as a whole, with EOS."""
    tokenizer = Tokenizer.load(model_dir)
    found: Documents = {}
    for index, name in enumerate(("a.jsonl", "b.txt", "c.jsonl")):
        data = (corpus / name).read_bytes()
        start = 0
        for line in data.splitlines(keepends=True) if name.endswith("l") else [data]:
            text = json.loads(line)["text"] if name.endswith("l") else line
            found[name, f"{index}:{start}"] = [*tokenizer.encode(text).tolist(), 261]
            start += len(line)
    return found


@pytest.mark.one_in(5)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_every_document_and_is_verified(
    layout: str, encode: Run, expected: Documents, tmp_path: Path, run: Run
) -> None:
    output = tmp_path / "out"
    done = encode(output, *LAYOUTS[layout])
    assert done.code == 0, done.err
    found: Documents = {}
    for split in ("", "train", "test"):
        of_split = documents(read_rows(output, split))
        # A document is in one split only, its pieces in other units too.
        assert not found.keys() & of_split.keys()
        found |= of_split
    if layout == "best-fit":
        found = {key: ids[1:] for key, ids in found.items()}
    assert found == expected
    totals = manifest_of(output)["totals"]
    assert totals["documents"] == totals["documents_in"] == len(expected)
    verified = run("verify", output, "--full")
    assert verified.code == 0, verified.err
    assert run("head", output, "--rows", 2).code == 0
    assert not (output / "__beam-bpe__/shuffle").exists()
    assert not (output / "_temporary").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout", ["everything", pytest.param("shard and all", marks=pytest.mark.slow)]
)
def test_layouts_are_the_same_bytes_however_the_job_runs(
    layout: str, encode: Run, tmp_path: Path, tree_bytes: Tree
) -> None:
    options = (["--direct_num_workers=2"], ["--direct_num_workers=1"], PROCESSES)
    for number, each in enumerate(options):
        done = encode(tmp_path / str(number), *LAYOUTS[layout], *each)
        assert done.code == 0, done.err
    threads, thread, processes = (tree_bytes(tmp_path / str(number)) for number in range(3))
    assert threads == thread == processes


def test_files_may_be_named_in_any_order(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run, tree_bytes: Tree
) -> None:
    names = [corpus / "a.jsonl", corpus / "b.txt", corpus / "c.jsonl"]
    found = []
    for number, order in enumerate([names, names[::-1], [*names[1:], names[0]]]):
        inputs = chain.from_iterable(("--input", name) for name in order)
        output = tmp_path / f"out{number}"
        command = ["encode", *inputs, "--tokenizer", model_dir, "--range-bytes", 4000]
        assert run(*command, "--output", output).code == 0
        found.append(tree_bytes(output))
    assert found[0] == found[1] == found[2]


def test_splits_do_not_depend_on_the_plan(encode: Run, tmp_path: Path) -> None:
    found = []
    for number, size in enumerate((3000, 1 << 20)):
        output = tmp_path / str(number)
        assert encode(output, *SPLIT, "--range-bytes", size).code == 0
        found.append([documents(read_rows(output, split)) for split in ("train", "test")])
    assert found[0] == found[1]
    other = tmp_path / "seed"
    assert encode(other, *SPLIT, "--seed", 1).code == 0
    assert documents(read_rows(other, "train")).keys() != found[0][0].keys()


def test_a_split_is_told_and_counted(encode: Run, expected: Documents, tmp_path: Path) -> None:
    done = encode(tmp_path / "out", *SPLIT)
    splits = manifest_of(tmp_path / "out")["totals"]["splits"]
    assert splits["train"]["documents"] + splits["test"]["documents"] == len(expected)
    assert f"split            train 0.7: {splits['train']['documents']} documents" in done.out
    assert 0.5 < splits["train"]["documents"] / len(expected) < 0.9


def test_what_the_runner_counted_is_told_beside_the_exact_totals(
    encode: Run, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    with_bad_row = tmp_path / "bad.jsonl"
    with_bad_row.write_text('{"text": 3}\n')
    done = encode(output, "--input", with_bad_row, "--on-bad-record", "skip")
    assert done.code == 0, done.err
    totals = manifest_of(output)["totals"]
    counted = next(line for line in done.out.splitlines() if line.startswith("runner counted"))
    for name in ("documents", "bytes", "tokens"):
        assert f"{name} {totals[name]:,}" in counted
    (reason,) = totals["rejects"]
    assert f"{reason} 1" in counted
    ratios = [
        each["bytes"] / each["tokens"] for each in manifest_of(output)["shards"] if each["rows"]
    ]
    assert totals["bytes_per_token"] == {"least": min(ratios), "most": max(ratios)}
    assert f"{min(ratios):.3f} to {max(ratios):.3f} by shard" in done.out


def test_what_packing_drops_and_fills_is_counted(encode: Run, tmp_path: Path, run: Run) -> None:
    output = tmp_path / "out"
    done = encode(output, "--pack", 64, "--pack-tail", "drop")
    assert done.code == 0, done.err
    totals = manifest_of(output)["totals"]
    packing = totals["packing"]
    assert packing["padding"] == 0
    assert 0 < packing["dropped_tokens"] < 64 * totals["shards"]
    assert packing["dropped_documents"] > 0
    assert totals["documents_in"] == totals["documents"] + packing["dropped_documents"]
    assert f"left out {packing['dropped_tokens']} ids" in done.out
    assert run("verify", output, "--full").code == 0
    padded = encode(tmp_path / "padded", "--pack", 64)
    totals = manifest_of(tmp_path / "padded")["totals"]
    assert totals["packing"]["padding"] == 64 * totals["rows"] - totals["tokens"]
    assert f"{totals['packing']['padding']} ids of padding" in padded.out


def test_shuffles_are_seeded_and_random(encode: Run, tmp_path: Path) -> None:
    def orders(*options: object) -> list[list[tuple[str, int]]]:
        output = tmp_path / "-".join(map(str, options))
        assert encode(output, "--shuffle", *options).code == 0
        found: dict[str, list[tuple[str, int]]] = {}
        for row, shard in zip(read_rows(output), shard_of_rows(output), strict=True):
            found.setdefault(shard, []).append((row["source"], row["byte_start"]))
        return list(found.values())

    plain, by_shard = orders("none"), orders("shard")
    assert plain != by_shard
    assert [sorted(each) for each in plain] == [sorted(each) for each in by_shard]
    everywhere = orders("global", "--shard-bytes", 9000)
    assert sorted(chain.from_iterable(plain)) == sorted(chain.from_iterable(everywhere))
    assert {source for source, _ in everywhere[0]} >= {"a.jsonl", "c.jsonl"}
    assert orders("global", "--shard-bytes", 9000, "--seed", 1) != everywhere


def shard_of_rows(output: Path) -> list[str]:
    """The shard of each row, in the order of `read_rows`."""
    shards = manifest_of(output)["shards"]
    return [shard["file"] for shard in shards for _ in range(shard["rows"])]


def test_the_order_of_a_global_shuffle_does_not_depend_on_the_plan(
    encode: Run, tmp_path: Path
) -> None:
    orders = []
    for size in (3000, 1 << 20):
        output = tmp_path / str(size)
        options = ("--shuffle", "global", "--range-bytes", size, "--input-format", "lines")
        assert encode(output, *options, "--shard-bytes", 9000).code == 0
        orders.append([(row["document_id"], row["input_ids"]) for row in read_rows(output)])
    assert orders[0] == orders[1]


def unfinished(output: Path, copy: Path) -> None:
    """A copy of a finished output without its manifest."""
    shutil.copytree(output, copy)
    (copy / "__beam-bpe__/manifest.json").unlink()


@pytest.mark.one_in(5)
@pytest.mark.parametrize("damage", ["none", "bucket", "record", "sidecar", "stray"])
def test_an_interrupted_global_shuffle_goes_on(
    damage: str, encode: Run, tmp_path: Path, tree_bytes: Tree
) -> None:
    whole, output = tmp_path / "whole", tmp_path / "out"
    assert encode(whole, *EVERYTHING).code == 0
    unfinished(whole, output)
    if damage == "bucket":
        (output / "train" / "shard-00002-000.arrow").write_bytes(b"half")
    elif damage == "record":
        (output / "__beam-bpe__/units" / "unit-00003.json").unlink()
    elif damage == "sidecar":
        path = output / "__beam-bpe__/sidecars/test/shard-00001-000.arrow.json"
        path.write_text(path.read_text().replace('input_digest": "', 'input_digest": "f'))
    elif damage == "stray":
        (output / "test" / "shard-00777-000.arrow").write_bytes(b"of a longer plan")
        (output / "__beam-bpe__/units" / "unit-00777.json").write_bytes(b"as well")
    again = encode(output, *EVERYTHING)
    assert again.code == 0, again.err
    buckets = len({shard["unit"] for shard in manifest_of(whole)["shards"]})
    written = buckets - (damage in {"bucket", "sidecar"})
    assert f"and {written} of {buckets} buckets written" in again.err
    assert tree_bytes(output) == tree_bytes(whole)


def test_a_global_shuffle_killed_between_its_jobs_keeps_what_was_read(
    encode: Run, tmp_path: Path, tree_bytes: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encode(tmp_path / "whole", *EVERYTHING).code == 0

    def killed(*_: object) -> None:
        raise KeyError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.cli.commands.encode.WriteBuckets", killed)
        assert encode(tmp_path / "out", *EVERYTHING).code == 1
    spills = sorted((tmp_path / "out" / "__beam-bpe__/shuffle").iterdir())
    spills[0].write_bytes(spills[0].read_bytes()[:-1] + b"x")
    again = encode(tmp_path / "out", *EVERYTHING)
    assert again.code == 0, again.err
    assert f"kept {len(spills) - 1} of {len(spills)} units read, and 0 of " in again.err
    assert tree_bytes(tmp_path / "out") == tree_bytes(tmp_path / "whole")


@pytest.mark.parametrize("layout", ["split", "everything"])
def test_a_finished_layout_is_left_alone_and_others_are_refused_by_name(
    layout: str, encode: Run, tmp_path: Path, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    assert encode(output, *LAYOUTS[layout]).code == 0
    before = tree_bytes(output)
    assert "nothing to do" in encode(output, *LAYOUTS[layout]).err
    refused = encode(output, "--pack", 8, "--split", "a=1", "--compression", "zstd")
    assert refused.code == 1
    assert 'splits: was [["train", "0.7"], ["test", "0.3"]], now [["a", "1"]]' in refused.err
    assert "compression: was " in refused.err
    assert "pack: was " in refused.err
    assert tree_bytes(output) == before
    # Starting again with other splits leaves none of the old ones after.
    (output / "mine").mkdir()
    (output / "mine" / "shard-00000-000.arrow").write_bytes(b"another output of mine")
    assert encode(output, "--split", "train=1", "--overwrite").code == 0
    assert not list((output / "test").iterdir())
    assert (output / "mine" / "shard-00000-000.arrow").exists()
    assert not list(output.glob("__beam-bpe__/units/*"))


def test_a_lost_shard_of_a_split_is_made_again(
    encode: Run, tmp_path: Path, tree_bytes: Tree
) -> None:
    output = tmp_path / "out"
    assert encode(output, *SPLIT).code == 0
    before = tree_bytes(output)
    (output / "test" / "shard-00001-000.arrow").unlink()
    again = encode(output, *SPLIT)
    assert "test/shard-00001-000.arrow is missing" in again.err
    assert tree_bytes(output) == before


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--pack", 64, "--pack-mode", "pad", "--pack-tail", "drop"], "--pack-tail drop"),
        (["--pack-mode", "pad"], "--pack-mode needs --pack"),
        (["--pad-id", 3], "--pad-id needs --pack"),
        (["--pack", 64, "--pad-id", 70_000], "--pad-id 70000"),
    ],
)
def test_layouts_that_cannot_be_are_refused_before_work(
    options: list[Any], expected: str, encode: Run, tmp_path: Path
) -> None:
    refused = encode(tmp_path / "out", *options)
    assert refused.code == 1
    assert expected in refused.err
    assert not (tmp_path / "out").exists()


def test_padding_without_an_id_is_refused(
    corpus: Path, model_dir: Path, tmp_path: Path, run: Run
) -> None:
    refused = run(
        *("encode", "--input", corpus, "--tokenizer", model_dir, "--pack", 64),
        *("--output", tmp_path / "out"),
    )
    assert refused.code == 1
    assert "give --pad-id, or --pack-tail drop" in refused.err


def test_packed_and_compressed_shards_load_in_other_programs(encode: Run, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    output = tmp_path / "out"
    assert encode(output, "--pack", 64, "--compression", "zstd").code == 0
    files = [str(path) for path in sorted(output.glob("shard-*.arrow"))]
    loaded = datasets.load_dataset(
        "arrow", data_files=files, split="train", cache_dir=str(tmp_path / "cache")
    )
    rows = read_rows(output)
    assert loaded.num_rows == len(rows)
    assert loaded.features["input_ids"].length == 64
    assert loaded[3]["input_ids"] == rows[3]["input_ids"]
    assert loaded[3]["document_ids"] == rows[3]["document_ids"]
