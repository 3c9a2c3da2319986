"""What the first bytes say: other formats are told by their content, and text is left alone."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.listing.content_kinds import HEAD_BYTES, find_kind
from pipelines.corpus.listing.file_formats import check_magic, classify
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs

TEXT = b"The quick brown fox jumps over the lazy dog. " * 40
TABLE = pa.table({"text": ["a", "b"] * 9, "n": range(18)})
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def arrow(new: Callable[..., object]) -> bytes:
    sink = io.BytesIO()
    with new(sink, TABLE.schema) as writer:  # type: ignore[attr-defined]
        writer.write_table(TABLE)
    return sink.getvalue()


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def tar() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    return sink.getvalue()


def zip_archive() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.txt", TEXT)
    return sink.getvalue()


def sqlite() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table t (a)")
        return connection.serialize()


def mds(samples: int) -> bytes:
    config = json.dumps({"column_names": ["text"], "format": "mds"}).encode()
    start = 4 * (samples + 2) + len(config)
    offsets = struct.pack(f"<{samples + 1}I", *(start + 8 * n for n in range(samples + 1)))
    return struct.pack("<I", samples) + offsets + config + b"8 bytes." * samples


def tfrecord() -> bytes:
    # TensorFlow's record of `foo`, as in the tests of Apache Beam's `tfrecordio`.
    return base64.b64decode("AwAAAAAAAACwmUkOZm9vYYq+/g==")


# What `find_kind` calls it: the content.
CERTAIN: dict[str, bytes] = {
    "gzip": gzip.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "zlib": zlib.compress(TEXT),
    "LZ4": pa.compress(TEXT, codec="lz4", asbytes=True),
    "Snappy": b"\xff\x06\0\0sNaPpY\x01\x0a\0\0abcdef",
    "lzop": b"\x89LZO\0\r\n\x1a\n\x10\x40",
    "lzip": b"LZIP\x01\x0c\0",
    "zip": zip_archive(),
    "tar": tar(),
    "Parquet": written(lambda sink: pq.write_table(TABLE, sink)),
    "Arrow": arrow(pa.ipc.new_file),
    "Arrow stream": arrow(pa.ipc.new_stream),
    "ORC": written(lambda sink: pyarrow.orc.write_table(TABLE, sink)),
    "NumPy": written(lambda sink: np.save(sink, np.arange(9))),
    "pickle": pickle.dumps(list(range(2000)), 4),
    "SQLite": sqlite(),
    "TFRecord": tfrecord(),
    "GGUF": b"GGUF\x03\0\0\0" + bytes(16),
    "MDS shard": mds(3),
    "token index": b"MMIDIDX\0\0" + struct.pack("<QBQ", 1, 8, 3),
    "safetensors": struct.pack("<Q", 40) + b'{"weight":{"dtype":"F32"}}',
    "ELF": b"\x7fELF\x02\x01\x01" + bytes(9),
    "Java class": bytes.fromhex("cafebabe0000003d"),
    "PDF": b"%PDF-1.7\n",
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "Git LFS pointer": LFS,
    "UTF-16": "text".encode("utf-16"),
    "UTF-32": "text".encode("utf-32"),
}
UNMARKED: dict[str, bytes] = {
    "deflate": raw_deflate(json.dumps(list(range(400))).encode()),
    "MessagePack": msgspec.msgpack.encode({"text": "hello", "n": 3}) * 40,
    "binary": np.random.default_rng(1).zipf(1.2, 4000).astype("<u2").tobytes(),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_other_formats_are_told_by_their_content(name: str) -> None:
    data = CERTAIN[name]
    for is_declared in (True, False):
        kind = find_kind(data[:HEAD_BYTES], len(data), is_declared=is_declared)
        assert kind is not None
        assert kind.name == name
    with pytest.raises(BadFileError, match=rf"^a\.txt: the content starts like a {name} file; "):
        check_magic("a.txt", data[:HEAD_BYTES])


@pytest.mark.parametrize("name", UNMARKED)
def test_formats_without_a_magic_number_are_told_under_names_that_say_nothing(name: str) -> None:
    data = UNMARKED[name]
    kind = find_kind(data[:HEAD_BYTES], len(data), is_declared=False)
    assert kind is not None
    assert kind.name == name
    assert find_kind(data[:HEAD_BYTES], len(data), is_declared=True) is None


def test_long_files_are_told_by_their_heads() -> None:
    words = np.random.default_rng(2).integers(97, 123, 60_000).astype(np.uint8).tobytes()
    for data, name in [
        (raw_deflate(words), "deflate"),
        (zlib.compress(words), "zlib"),
        (mds(5000), "MDS shard"),
        (np.random.default_rng(3).integers(0, 128_000, 9000).astype("<u4").tobytes(), "binary"),
        (np.random.default_rng(4).bytes(9000), "binary"),
        (msgspec.msgpack.encode({"text": "é" * 5000, "n": 1}), "MessagePack"),
        (
            msgspec.msgpack.encode([{"n": 1.5, "x": [None, b"1"], "t": "é" * 40}] * 99),
            "MessagePack",
        ),
    ]:
        kind = find_kind(data[:HEAD_BYTES], len(data), is_declared=False)
        assert kind is not None
        assert kind.name == name


TEXTS: dict[str, bytes] = {
    "Latin-1": ("Ça va? Ünïcödé, déjà vu. " * 50).encode("latin-1"),
    "cp1252": "“quoted” – text… ".encode("cp1252") * 50,
    "KOI8-R": ("Съешь ещё этих мягких булок. " * 50).encode("koi8-r"),
    "Shift-JIS": ("日本語の文章です。" * 50).encode("shift-jis"),
    "GB18030": ("人力资源管理师" * 50).encode("gb18030"),
    "ISO-2022-JP": ("日本語の文章です。" * 50).encode("iso2022_jp"),
    "damaged UTF-8": "日本語 é ".encode()[1:] * 50 + b"\xff\xfe\x80",
    "stray NULs": b"some\0 text with\0\0 NULs " * 50,
    "nothing but NULs": bytes(5000),
    "NULs between words": b"\0".join(b"the words that find -print0 gives".split() * 40),
    "fields ended by ^A": b"1\x01name\x01x\n" * 200,
    "ANSI colours": b"\x1b[31mred\x1b[0m\r\n\x07" * 60,
    "names of magic numbers": b"BZh is how bzip2 starts",
    "PAR1": b"PAR1 is Parquet",
    "PAR1 in a line": b"PAR1\n",
    "ORC": b"ORCs and elves",
    "RIFF": b"RIFFs of guitars WAVE",
    "GGUF": b"GGUF files",
    "LZIP": b"LZIP is lzip",
    "MZ": b"MZ" + TEXT,
    "DUCK": b"the big DUCK swims",
    "x^2": b"x^2 + y^2 = z^2, " * 90,
    "cp1252 oe": "xœuvre ".encode("cp1252") * 200,
    "GIF89a": b"GIF89a is of 1989",
    "GIF89a;": b"GIF89a;<?php echo 1;",
    "a PDF's header": b"%PDF-1.4 is how PDF starts",
    "gustar": (b"x" * 255 + b"gustar mucho"),
    "<arch>": b"!<arch>\nis how ar starts",
    "LFS pointers": b"version https://git-lfs.github.com/spec/v1 is how pointers start",
    "annexed": b"/annex/objects/ is a folder",
    "NULs and JSON": bytes(8) + b'{"a": 1}\n' * 50,
    "numbers": b"x^\n" + b"".join(b"%d\n" % n for n in range(2474, 2999)),
    "Shift-JIS heading": "■About us\n日本語".encode("shift-jis"),
    "Shift-JIS letter": "■A棟について".encode("shift-jis"),
    "Shift-JIS, long": ("▲abc 東京" + "■A棟について" * 500).encode("shift-jis"),
    "ellipsis": "…¥text, ".encode("cp1252") * 30,
    "an odd byte": b"\xff",
    "empty": b"",
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_in_any_encoding_is_text(name: str) -> None:
    data = TEXTS[name]
    for is_declared in (True, False):
        assert find_kind(data[:HEAD_BYTES], len(data), is_declared=is_declared) is None


@given(st.text(st.characters(codec="latin-1", exclude_categories=["Cc"])))
def test_no_latin_1_text_is_taken_for_something_else(text: str) -> None:
    data = text.encode("latin-1")
    if not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xff\xd8\xff")):
        assert find_kind(data, len(data), is_declared=False) is None


SUFFIXES = (
    *("deflate", "snappy", "lzo", "lz", "sz", "tfrecords", "gguf", "mds", "ds", "idx"),
    *("msgpack", "db", "class"),
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_of_other_formats_are_refused(suffix: str) -> None:
    with pytest.raises(SettingsError, match=rf"part-0\.{suffix}: \.{suffix} files are not read"):
        classify(f"part-0.{suffix}", "auto")
    with pytest.raises(SettingsError, match="are not read"):
        classify(f"part-0.{suffix}.gz", "auto")


@pytest.mark.parametrize("name", ["part-0", "part-0.txt", "part-0.jsonl", "wiki.so", "wiki.pt"])
def test_contents_are_looked_at_when_files_are_listed(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for content in ("Arrow stream", "ELF", "Git LFS pointer", "zlib"):
        path.write_bytes(CERTAIN[content])
        refused = rf"^{path}: the content starts like a {content} file; .*--on-bad-file=skip$"
        with pytest.raises(BadFileError, match=refused):
            list_inputs([str(path)], ReadOptions())
        # Who names the format has declared it.
        assert list_inputs([str(path)], ReadOptions(input_format="text")).files
    path.write_bytes("Af-Soomaali, é".encode("latin-1"))
    [file] = list_inputs([str(path)], ReadOptions()).files
    assert file.refusal is None


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.jsonl.zst"])
def test_pointers_are_told_under_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(LFS)
    with pytest.raises(BadFileError, match="Git LFS pointer file; fetch the content with `git lfs"):
        list_inputs([str(tmp_path)], ReadOptions())
