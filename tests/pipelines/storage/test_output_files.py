"""Files of an output reach the disk before they are seen, and temporary ones are told by name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pipelines.storage.output_files import (
    is_temporary_name,
    remove_temporary_files,
    temporary_path,
    write_atomically,
)


def test_a_file_is_on_disk_before_its_name_and_the_name_before_it_is_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_replace(source: str, target: str) -> None:
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    write_atomically(str(tmp_path), "a/b.json", b"content")
    assert steps == ["file", "rename", "folder"]
    assert (tmp_path / "a" / "b.json").read_bytes() == b"content"


def test_temporary_files_go_and_others_stay(tmp_path: Path) -> None:
    ours = Path(temporary_path(str(tmp_path), "shard.arrow"))
    ours.write_bytes(b"half")
    assert is_temporary_name(ours.name)
    other = ours.with_name("notes.txt")
    other.write_bytes(b"mine")
    remove_temporary_files(str(tmp_path))
    assert not ours.exists()
    assert other.read_bytes() == b"mine"
    other.unlink()
    remove_temporary_files(str(tmp_path))
    assert not other.parent.exists()
