"""`beam-bpe verify` finds rows that do not follow one another, and encodes divided documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.storage.output_layout import MANIFEST
from pipelines.storage.wording import counted
from tests.pipelines.tampered_outputs import rewrite_rows, tamper

Run = Callable[..., Any]
Rows = list[dict[str, Any]]
Encoded = Callable[..., Path]

ENCODE = ("--document-separator", "@@", "--range-bytes", 600)


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short documents, a long one in which units of the plan end, and empty ones; two files."""
    folder = tmp_path_factory.mktemp("corpus")
    text = tiny.read_bytes()
    documents = [text[:50], text[50:100], b"", text[100:7000], b"the end", b""]
    (folder / "a.txt").write_bytes(b"@@".join(documents))
    (folder / "b.txt").write_bytes(b"@@".join([text[7000:9000], b"and", text[9000:9100]]))
    return folder


def swap_within(rows: Rows) -> None:
    """Two rows in the midst of a document change places."""
    at = next(
        at
        for at in range(1, len(rows) - 2)
        if all(row["part"] and not row["is_last"] for row in rows[at : at + 2])
    )
    rows[at], rows[at + 1] = rows[at + 1], rows[at]


def swap_packed(rows: Rows) -> None:
    """Two rows that hold nothing but the midst of a document change places."""
    at = next(
        at
        for at in range(1, len(rows) - 2)
        if not any(sum(row["is_first"] + row["is_last"]) for row in rows[at : at + 2])
    )
    rows[at], rows[at + 1] = rows[at + 1], rows[at]


def swap_documents(rows: Rows) -> None:
    """Two whole documents change places."""
    rows[0], rows[1] = rows[1], rows[0]


def swap_segments(rows: Rows) -> None:
    """Two segments of a row change places; both are empty or equally long, or one is moved."""
    row = next(row for row in rows if len(row["lengths"]) > 1)
    first = row["lengths"][0]
    both = first + row["lengths"][1]
    ids = row["input_ids"]
    ids[:both] = ids[first:both] + ids[:first]
    for name, column in row.items():
        if name != "input_ids":
            column[0], column[1] = column[1], column[0]


def raise_parts(rows: Rows) -> None:
    """As if a row were lost within a piece."""
    at = next(at for at, row in enumerate(rows) if row["part"])
    rows[at]["part"] += 1


def hide_end(rows: Rows) -> None:
    rows[-1]["is_last"] = False


def lose_start(rows: Rows) -> None:
    rows[0]["part"] = 1


CAP = ("--max-row-tokens", 100)
PACK = ("--pack", 32, "--pad-id", 0, "--append-eos", 261)
SPLIT = ("--split", "train=0.7,test=0.3")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "change", "expected"),
    [
        ((), swap_documents, "row 1 (document 0:0) begins at 0 of a.txt, after a row from 52 on"),
        (CAP, swap_within, "and the row before it part"),
        ((*CAP, *SPLIT), swap_within, "and the row before it part"),
        ((*CAP, "--shuffle", "global"), swap_within, "and the row before it part"),
        ((*CAP, "--shuffle", "shard"), swap_within, "and the row before it part"),
        (CAP, raise_parts, "and the row before it part"),
        ((), lose_start, "row 0 (document 0:0) goes on with part 1, and what comes before it"),
        (("--shuffle", "global"), lose_start, "and what comes before it is not there"),
        ((*PACK,), swap_packed, "and the segment before it ends at"),
        ((*PACK, "--shuffle", "global"), swap_packed, "and the segment before it ends at"),
        ((*PACK, "--pack-mode", "pad"), swap_packed, "and the segment before it ends at"),
        ((*PACK, "--pack-mode", "best-fit"), swap_segments, "after a segment from"),
    ],
)
def test_rows_out_of_order_are_found(
    options: tuple[object, ...],
    change: Callable[[Rows], None],
    expected: str,
    copied: Encoded,
    run: Run,
) -> None:
    output = copied(*options)
    shards = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())["shards"]
    failure: StopIteration | None = None
    for shard in range(len(shards)):
        try:
            rewrite_rows(output, change, shard)
        except StopIteration as error:
            failure = error
            continue
        done = run("verify", output)
        assert done.code == 1
        assert f"{shards[shard]['file']}: row " in done.err
        assert expected in done.err
        return
    raise AssertionError("no shard to change") from failure


@pytest.mark.parametrize("options", [(), ("--shuffle", "shard"), ("--shuffle", "global")])
def test_a_document_without_end_is_found(
    options: tuple[object, ...], copied: Encoded, run: Run
) -> None:
    output = copied(*options)
    shards = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())["shards"]
    last = max(index for index, shard in enumerate(shards) if shard["rows"])
    rewrite_rows(output, hide_end, last)

    def lose_document(manifest: Any) -> None:
        """All counts agree with one document less."""
        shard, totals = manifest["shards"][last], manifest["totals"]
        units = [unit["totals"] for unit in manifest["units"]] or [shard["unit_totals"]]
        shard["documents"] -= 1
        totals["documents"] -= 1
        for each in (totals, next(each for each in units if each["documents_in"])):
            each["documents_in"] -= 1

    tamper(output, lose_document)
    done = run("verify", output)
    assert done.code == 1
    assert f"{shards[last]['file']}: row {shards[last]['rows'] - 1} (document " in done.err
    assert "is the last of its document, and does not end it" in done.err


LAYOUTS = [
    (),
    CAP,
    ("--shuffle", "shard", "--shard-bytes", 900, *CAP),
    ("--shuffle", "global", "--shard-bytes", 3000, *CAP, *SPLIT),
    (*PACK, *SPLIT),
    (*PACK, "--pack-tail", "drop"),
    (*PACK, "--pack-tail", "drop", "--shuffle", "shard", "--shard-bytes", 900),
    (*PACK, "--pack-mode", "pad", "--shuffle", "shard", "--shard-bytes", 900),
    (*PACK, "--pack-mode", "best-fit", "--shuffle", "global"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", LAYOUTS, ids=lambda each: " ".join(map(str, each)) or "plain")
def test_whole_outputs_pass(
    options: tuple[object, ...], corpus: Path, encoded: Encoded, run: Run
) -> None:
    output = encoded(*options)
    done = run("verify", output, "--full", "--input", corpus)
    assert done.code == 0, done.err
    shards = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())["shards"]
    same = counted(len(shards), "shard")
    assert f"encoded again from the input: {same}, same bytes" in done.out
    assert done.out.endswith("not checked: what the manifest says of program and backend\n")
    done = run("verify", output)
    assert ("the order of best-fit's rows" in done.out) == ("best-fit" in options)
    assert "not checked: " in done.out
    assert "(--input encodes them again)" in done.out


def test_ids_that_repeat_are_no_disorder(model_dir: Path, tmp_path: Path, run: Run) -> None:
    texts = ["the end", "", "the lower king", "", "the", "and the rest of it"]
    rows = [{"text": text, "id": "same"} for text in texts]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("encode", "--input", tmp_path / "a.jsonl", "--id-field", "id", "--overwrite")
    for options in (("--max-row-tokens", 3), (*PACK, "--shuffle", "shard"), ("--pack", 2, *PACK)):
        output = ("--tokenizer", model_dir, "--output", tmp_path / "out", "--range-bytes", 40)
        assert run(*command, *output, *options).code == 0
        done = run("verify", tmp_path / "out", "--full")
        assert done.code == 0, done.err


def swap_ids(ids: list[int]) -> None:
    """Two ids within a row change places, so that it has as many bytes as before."""
    at = next(at for at in range(3, len(ids) - 3) if ids[at] != ids[at + 1])
    ids[at], ids[at + 1] = ids[at + 1], ids[at]


@pytest.mark.parametrize(
    "options", [CAP, PACK, (*PACK, "--pack-mode", "pad"), (*PACK, "--shuffle", "global")]
)
def test_other_ids_of_a_divided_document_are_found(
    options: tuple[object, ...], corpus: Path, copied: Encoded, run: Run
) -> None:
    output = copied(*options)
    shards = json.loads((output / MANIFEST).read_bytes())["shards"]
    changed = []

    def change(rows: Rows) -> None:
        for row in rows:
            flags = (row["part"] == 0, row["is_last"]) if "part" in row else None
            inside = not any(flags or (*row["is_first"], *row["is_last"]))
            if inside:
                swap_ids(row["input_ids"])
                changed.append(row)
                return

    for shard in range(len(shards)):
        rewrite_rows(output, change, shard)
        if changed:
            done = run("verify", output, "--full")
            assert done.code == 0
            assert "of documents in several rows, which cannot be encoded alone" in done.out
            done = run("verify", output, "--input", corpus)
            assert done.code == 1
            assert f"{shards[shard]['file']}: sha256 is " in done.err
            assert "the output is not what this input gives" in done.err
            return
    pytest.fail("no row to change")
