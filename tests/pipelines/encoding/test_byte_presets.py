"""Rows of bytes through the pipeline: encoded, verified, packed, resumed, exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bpe.encoding.byte_rows import BYTE_PRESETS

MARKED = b"a\xfe\xffb"


@pytest.fixture
def corpus(small: Path) -> list[bytes]:
    """Two documents, one of them longer than a range."""
    (small.parent / "ends.txt").write_bytes(MARKED)
    return [MARKED, small.read_bytes()]


@pytest.mark.parametrize("name", BYTE_PRESETS)
def test_rows_are_the_bytes_with_the_marks_of_the_preset(
    name: str, corpus: list[bytes], run: Callable, read_documents: Callable, tmp_path: Path
) -> None:
    output, preset = tmp_path / "out", BYTE_PRESETS[name]
    given = ("--input", tmp_path / "*.txt", "--range-bytes", 10_000)
    done = run("encode", *given, "--tokenizer", name, "--output", output)
    assert done.code == 0, done.err
    marks = ([preset.bos], [preset.eos])
    before, after = ([each for each in mark if each is not None] for mark in marks)
    expected = [[*before, *(b + preset.offset for b in text), *after] for text in corpus]
    assert read_documents(output) == expected
    manifest = json.loads((output / "__beam-bpe__" / "manifest.json").read_text())
    collisions = {} if name != "hnet" else {"bos (byte 254)": 1, "eos (byte 255)": 1}
    assert {k: v for k, v in manifest["totals"]["special_text"].items() if v} == collisions
    with pa.OSFile(str(next(output.glob("*.arrow")))) as file:
        schema = pa.ipc.open_file(file).schema
    is_small = name in {"bytes", "hnet"}
    assert schema.field("input_ids").type.value_type == (pa.uint8() if is_small else pa.uint16())
    assert schema.metadata[b"beam_bpe.version"] == (b"2" if is_small else b"1")
    assert run("verify", output, "--full", "--input", tmp_path / "*.txt").code == 0
    assert "a" in run("head", output).out
    assert f"numbered as {name}" in run("inspect", output / "__beam-bpe__" / "tokenizer").out
    exported = run("export", output, "--to", "npy", "--output", tmp_path / "npy")
    assert exported.code == 0, exported.err
    found = np.load(next((tmp_path / "npy").glob("*.npy")))
    assert found.dtype == np.uint16
    assert found.tolist() == [each for ids in expected for each in ids]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layout", [["--shuffle", "global"], ["--split", "a=0.5,b=0.5"]])
def test_packed_rows_of_uint8(
    layout: list[str], corpus: list[bytes], run: Callable, tree_bytes: Callable, tmp_path: Path
) -> None:
    given = ("--input", tmp_path / "*.txt", "--range-bytes", 10_000, "--tokenizer", "hnet")
    marks = ("--prepend-bos", 254, "--append-eos", 255, "--pack", 512)
    for output in ("one", "two"):
        done = run("encode", *given, *marks, *layout, "--output", tmp_path / output)
        assert done.code == 0, done.err
    one = tree_bytes(tmp_path / "one")
    assert one == tree_bytes(tmp_path / "two")
    assert run("verify", tmp_path / "one", "--full", "--input", tmp_path / "*.txt").code == 0
    # The same command makes what an interrupted run left out.
    lost = next((tmp_path / "one").rglob("shard-*.arrow"))
    lost.unlink()
    (tmp_path / "one" / "__beam-bpe__" / "manifest.json").unlink()
    again = run("encode", *given, *marks, *layout, "--output", tmp_path / "one")
    assert again.code == 0, again.err
    assert (
        sum(map(len, corpus)) + 4
        == json.loads((tmp_path / "one" / "__beam-bpe__" / "manifest.json").read_text())["totals"][
            "tokens"
        ]
    )
    assert lost.is_file()


def test_marks_are_as_asked_for(
    corpus: list[bytes], run: Callable, read_documents: Callable, tmp_path: Path
) -> None:
    given = ("--input", tmp_path / "ends.txt", "--tokenizer")
    for name, marks, expected in (
        ("bytes", ("--append-eos", "<eos>", "--prepend-bos", 256), [256, *corpus[0], 257]),
        ("byt5", ("--append-eos", "none"), [byte + 3 for byte in MARKED]),
        ("blt", ("--prepend-bos", "none"), [*(byte + 4 for byte in MARKED), 2]),
    ):
        done = run("encode", *given, name, "--output", tmp_path / name, *marks)
        assert done.code == 0, done.err
        assert f"note: {name}: bos" in done.err
        assert read_documents(tmp_path / name) == [expected]
        assert run("verify", tmp_path / name).code == 0


@pytest.mark.usefixtures("corpus")
def test_bytes_that_mark_ends_are_refused_on_request(run: Callable, tmp_path: Path) -> None:
    done = run(
        *("encode", "--input", tmp_path / "ends.txt", "--tokenizer", "hnet"),
        *("--output", tmp_path / "out", "--special-text", "reject"),
    )
    assert done.code == 1
    assert "'bos (byte 254)' at byte 1" in done.err


@pytest.mark.usefixtures("corpus")
def test_a_path_of_that_name_wins_and_is_told(
    run: Callable, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "byt5").symlink_to(model_dir)
    done = run("encode", "--input", "small.txt", "--tokenizer", "byt5", "--output", "out")
    assert done.code == 0, done.err
    assert "byt5 is taken as what lies there, not as the preset" in done.err
    assert run("verify", "out").code == 0


def test_text_commands_take_presets(
    run: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("text", "hi"), ("ids", "107 108"), ("ends", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "ends").write_bytes(MARKED)
    for name, arguments, expected in (
        ("text", ("encode-text", "--tokenizer", "byt5"), "107 108\n"),
        ("ids", ("decode", "--tokenizer", "byt5"), "hi"),
        ("ends", ("encode-text", "--tokenizer", "hnet"), "97 254 255 98\n"),
    ):
        with (tmp_path / name).open() as file:
            monkeypatch.setattr("sys.stdin", file)
            done = run(*arguments)
        assert (done.code, done.out) == (0, expected), done.err
    with (tmp_path / "ends").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = run("encode-text", "--tokenizer", "hnet", "--special-text", "reject")
    assert done.code == 1
    assert "bos (byte 254)" in done.err


@pytest.mark.usefixtures("corpus")
def test_every_format_takes_uint8(run: Callable, tmp_path: Path) -> None:
    done = run(
        *("encode", "--tokenizer", "hnet", "--input", tmp_path / "*.txt"),
        *("--output", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    for name in ("datatrove", "hf", "llmc", "mds", "megatron", "nanogpt"):
        exported = run("export", tmp_path / "out", "--to", name, "--output", tmp_path / name)
        assert exported.code == 0, exported.err
    blocks = ("--block-size", 64, "--output", tmp_path / "blocks")
    exported = run("export", tmp_path / "out", "--to", "litdata", *blocks)
    assert exported.code == 0, exported.err
    with pa.OSFile(str(next((tmp_path / "hf").glob("*.arrow")))) as file:
        ids = pa.ipc.open_stream(file).read_all()["input_ids"]
    assert ids.type.value_type == pa.uint8()
    assert bytes(ids[0].as_py()) == MARKED
