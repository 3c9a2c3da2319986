"""Names are names on other file systems too, whether or not those expand patterns themselves."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

from bpe.errors import OutputError
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.storage.output_files import (
    delete_files,
    list_files,
    remove_temporary_files,
    write_atomically,
)

Run = Callable[..., Any]
STORED: dict[str, bytes] = {}


class _Upload(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        STORED[self._path] = self.getvalue()
        super().close()


class GlobFileSystem(FileSystem):  # type: ignore[misc]  # Beam's class is untyped
    """An object store whose delete expands patterns, as that of Google Cloud Storage does."""

    @classmethod
    def scheme(cls) -> str:
        return "globs"

    def has_dirs(self) -> bool:
        return False

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def exists(self, path: str) -> bool:
        return path in STORED

    def metadata(self, path: str) -> FileMetadata:
        if path not in STORED:
            raise BeamIOError(f"no {path}")
        return FileMetadata(path, len(STORED[path]), 1000.0)

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path in list(STORED):
            if path.startswith(dir_or_prefix):
                yield self.metadata(path)

    def open(self, path: str, *args: Any, **options: Any) -> Any:
        del args, options
        if path not in STORED:
            raise FileNotFoundError(path)
        return io.BytesIO(STORED[path])

    def create(self, path: str, *args: Any, **options: Any) -> Any:
        del args, options
        return _Upload(path)

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            STORED[target] = STORED.pop(source)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            for found in self.match([path])[0].metadata_list:
                del STORED[found.path]

    def mkdirs(self, path: str) -> None:
        """Nothing to make: folders are parts of names."""

    def _not_needed(self, *args: Any) -> Any:
        raise NotImplementedError(args)

    split = copy = size = last_updated = checksum = _not_needed


class NamesFileSystem(GlobFileSystem):
    """One whose delete takes names, as that of S3 does."""

    @classmethod
    def scheme(cls) -> str:
        return "names"

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            STORED.pop(path, None)


@pytest.fixture(autouse=True)
def stored() -> Iterator[None]:
    STORED.clear()
    yield
    STORED.clear()


def put(folder: str, *names: str) -> None:
    for name in names:
        STORED[f"{folder}/{name}"] = b"the theatre and the hand\n" * 9


@pytest.mark.parametrize("name", ["out[1]", "o*", "o?t1", "[o]ut1", "out1"])
@pytest.mark.parametrize("scheme", ["globs", "names"])
def test_files_of_one_folder_are_listed_and_deleted(scheme: str, name: str) -> None:
    folder, others = (
        f"{scheme}://bucket/{name}",
        [f"{scheme}://bucket/{each}" for each in ["out1", "other", "ot"]],
    )
    for each in [folder, *others]:
        put(each, "a.json", "b.json", "sub/c.json")
    write_atomically(folder, "d.json", b"written")
    put(folder, f"_temporary/d.json.{'0' * 32}")
    kept = {path for path in STORED if not path.startswith(f"{folder}/")}
    assert sorted(list_files(folder)) == ["a.json", "b.json", "d.json"]
    delete_files(folder, ["a.json", "sub/c.json", "missing"])
    remove_temporary_files(folder)
    assert set(STORED) - kept == {f"{folder}/b.json", f"{folder}/d.json"}
    assert kept <= set(STORED)


def test_what_cannot_be_deleted_alone_is_not_deleted() -> None:
    """A name that is the escaped form of another, beside what the other would match."""
    folder = "globs://bucket"
    put(folder, "a[1]", "a[[]1]", "a1")
    before = dict(STORED)
    with pytest.raises(OutputError, match=r"globs://bucket/a\[1\]: cannot be removed"):
        delete_files(folder, ["a[1]"])
    assert before == STORED


@pytest.mark.parametrize("name", ["r[1]", "r*", "r?"])
def test_an_input_is_read_alone(name: str) -> None:
    for each in (name, "r1", "r2", "rest"):
        put(f"globs://bucket/{each}", "a.txt", "sub/b.txt")
    put("globs://bucket", f"{name}.txt", "r1.txt")
    folder = f"globs://bucket/{name}"

    def paths(given: str) -> list[str]:
        return [file.path for file in list_inputs([given], ReadOptions()).files]

    both = [f"{folder}/a.txt", f"{folder}/sub/b.txt"]
    assert paths(folder) == paths(f"{folder}/") == paths(f"{folder}/**") == both
    assert paths(f"{folder}/*.txt") == both[:1]
    assert paths(f"{folder}/sub/b.txt") == both[1:]
    assert paths(f"{folder}.txt") == [f"{folder}.txt"]
    assert len(paths("globs://bucket/r[12]/*.txt")) == 2


@pytest.mark.parametrize("scheme", ["globs", "names"])
def test_overwriting_leaves_the_neighbours(scheme: str, tmp_path: Path, run: Run) -> None:
    store = f"{scheme}://bucket"
    put(f"{store}/in[1]", "a.txt")
    put(f"{store}/in1", "a.txt")

    def done(*arguments: object) -> str:
        outcome = run(*arguments)
        assert outcome.code == 0, outcome.err
        return str(outcome.out)

    def surround(name: str, other: str) -> None:
        for path, data in list(STORED.items()):
            if path.startswith(f"{store}/{name}/"):
                STORED[path.replace(f"/{name}/", f"/{other}/")] = data

    train = ("train", "--vocab-size=270", "--input", f"{store}/in[1]", "--output")
    done(*train, f"{store}/tok[1]")
    surround("tok[1]", "tok1")
    done(*train, tmp_path / "tok")
    output = f"{store}/o*t"
    encode = ("encode", "--input", f"{store}/in[1]", "--output", output)
    encode = (*encode, "--tokenizer", tmp_path / "tok")
    done(*encode)
    surround("o*t", "oxt")
    export = ("export", output, "--to", "npy", "--output", f"{store}/n?y")
    done(*export)
    surround("n?y", "npy")
    before = dict(STORED)
    for command in ((*train, f"{store}/tok[1]"), encode, export):
        done(*command, "--overwrite")
        assert before == STORED
    for name in ("tok[1]", "o*t", "n?y"):
        done("verify", f"{store}/{name}")
