"""A damaged row group or record batch is left out, told and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.arrow.arrow_footer import batch_places
from tests.pipelines.conftest import Run

ROWS = 40
PER_PART = 4


def write_damaged(folder: Path, kind: str) -> Path:
    """Rows in parts of four, of which the third part cannot be read, and a file without damage."""
    folder.mkdir()
    texts = [f"some words of row {row}, all of them alike" for row in range(ROWS)]
    table = pa.table({"text": texts})
    path = folder / f"a.{kind}"
    if kind == "parquet":
        options = {"compression": None, "use_dictionary": False, "write_statistics": False}
        pq.write_table(table, path, row_group_size=PER_PART, write_page_checksum=True, **options)
        data = bytearray(path.read_bytes())
        place = data.index(b"row 9,")
    else:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=PER_PART)
        data = bytearray(path.read_bytes())
        third = batch_places(lambda start, size: data[start : start + size], len(data))[2]
        place = data.index(b"\x04\x22\x4d\x18", third.start + third.metadata_bytes)
    data[place : place + 4] = bytes(4)
    path.write_bytes(data)
    pq.write_table(table, folder / "b.parquet")
    return folder


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_damaged_part_is_left_out_of_an_output_that_checks(
    kind: str,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Callable[[Path], dict[str, bytes]],
) -> None:
    corpus = write_damaged(tmp_path / "corpus", kind)
    given = ("encode", "--input", corpus, "--tokenizer", model_dir, "--range-bytes", 200)
    outputs = []
    for workers in (1, 3):
        output = tmp_path / f"out{workers}"
        stopped = run(*given, "--output", output, "--direct_num_workers", workers)
        assert stopped.code == 1
        assert "or leave it out with --on-bad-file=skip" in stopped.err
        skipping = (*given, "--on-bad-file", "skip", "--output", output)
        done = run(*skipping, "--direct_num_workers", workers)
        assert done.code == 0, done.err
        assert f"bad_part {PER_PART} (see" in done.out
        totals = json.loads((output / "__beam-bpe__/manifest.json").read_bytes())["totals"]
        assert totals["documents_in"] == 2 * ROWS
        assert totals["documents"] == 2 * ROWS - PER_PART
        assert totals["rejects"] == {"bad_part": PER_PART}
        [line] = (line for path in output.glob("__beam-bpe__/rejects/*") for line in path.open())
        assert (json.loads(line)["row"], json.loads(line)["rows"]) == (2 * PER_PART + 1, PER_PART)
        assert run("verify", output, "--full").code == 0
        refused = run(*given, "--output", output)
        assert refused.code == 1
        assert "left out bad rows or files" in refused.err
        outputs.append(tree_bytes(output))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("scheme", ["gpt2", "none"])
def test_training_leaves_a_damaged_part_out(scheme: str, tmp_path: Path, run: Run) -> None:
    corpus = write_damaged(tmp_path / "corpus", "parquet")
    given = ("train", "--input", corpus, "--vocab-size", 270, "--pretokenizer", scheme)
    output = tmp_path / "out"
    done = run(*given, "--range-bytes", 200, "--on-bad-file", "skip", "--output", output)
    assert done.code == 0, done.err
    assert f"documents        {2 * ROWS - PER_PART}\n" in done.out
    assert f"bad_part {PER_PART}" in done.out
