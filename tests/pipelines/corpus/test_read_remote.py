"""Files of other file systems go through Beam alone."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from bpe.errors import BadFileError, BadRecordError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.rejects import Rejects

STORED: dict[str, bytes] = {}


class _ShortReads(io.RawIOBase):
    """Gives fewer bytes than asked for, as sockets do."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(min(size, 7))

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._inner.seek(offset, whence)


class MemoryFileSystem(FileSystem):  # type: ignore[misc]  # Beam's class is untyped
    """Objects in a dictionary, without folders; dates as an object store gives them."""

    @classmethod
    def scheme(cls) -> str:
        return "memory"

    def has_dirs(self) -> bool:
        return False

    def exists(self, path: str) -> bool:
        return path in STORED

    def metadata(self, path: str) -> FileMetadata:
        if path not in STORED:
            raise BeamIOError(f"no {path}")
        return FileMetadata(path, len(STORED[path]), 1000.0)

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path, data in STORED.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data), 1000.25)

    def open(self, path: str, *args: Any, **options: Any) -> Any:
        del args, options
        return _ShortReads(STORED[path])

    def _not_needed(self, *args: Any) -> BinaryIO:
        raise NotImplementedError(args)

    join = split = mkdirs = create = copy = rename = size = last_updated = _not_needed
    checksum = delete = _not_needed


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, data in {
        "memory://bucket/in/a.jsonl": b'{"text": "one"}\n{"text": "two"}\n',
        "memory://bucket/in/b.txt.gz": gzip.compress(b"three"),
        "memory://bucket/in/_x.txt": b"hidden",
        "memory://bucket/in/sub/c.txt": b"four",
        "memory://bucket/inner.txt": b"other",
    }.items():
        monkeypatch.setitem(STORED, name, data)


@pytest.mark.parametrize("pattern", ["memory://bucket/in", "memory://bucket/in/"])
def test_a_prefix_is_a_folder(pattern: str) -> None:
    options = ReadOptions(range_bytes=10)
    inputs = list_inputs([pattern], options)
    assert [file.source for file in inputs.files] == ["a.jsonl", "b.txt.gz", "sub/c.txt"]
    assert inputs.counts == {"hidden_files": 1}
    texts: list[bytes] = []
    finder = CutFinder(get_scheme("gpt2"))
    for unit in make_plan(inputs, options, unit_bytes=1).units:
        for batch in read_unit(unit, options, finder, Rejects(unit, options)):
            texts += batch["text"].to_pylist()
    assert texts == [b"one", b"two", b"three", b"four"]


def test_one_object_and_no_object() -> None:
    options = ReadOptions()
    files = list_inputs(["memory://bucket/in/sub/c.txt"], options).files
    assert [file.path for file in files] == ["memory://bucket/in/sub/c.txt"]
    with pytest.raises(SettingsError, match="memory://bucket/nothing"):
        list_inputs(["memory://bucket/nothing"], options)
    with pytest.raises(SettingsError, match="nowhere://x"):
        list_inputs(["nowhere://x"], options)


def test_errors_name_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ReadOptions(range_bytes=5)
    monkeypatch.setitem(STORED, "memory://bucket/in/a.jsonl", b'{"text": "one"}\nbad\n')
    plan = make_plan(list_inputs(["memory://bucket/in/*.jsonl"], options), options, unit_bytes=1)
    unit = plan.units[3]
    finder = CutFinder(get_scheme("gpt2"))
    with pytest.raises(BadRecordError, match=r"^memory://bucket/in/a\.jsonl: byte 16: "):
        list(read_unit(unit, options, finder, Rejects(unit, options)))
    monkeypatch.delitem(STORED, "memory://bucket/in/a.jsonl")
    with pytest.raises(BadFileError, match=r"memory://bucket/in/a\.jsonl: was there"):
        list(read_unit(unit, options, finder, Rejects(unit, options)))
