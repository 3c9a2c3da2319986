"""A disk that is really full: one error, nothing half, and the same command goes on with room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Tree = Callable[[Path], dict[str, bytes]]
DISK_BYTES = 8 << 20
PAGE_BYTES = 4096
BUSY_FOLDERS = {"shuffle", "_temporary"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of `DISK_BYTES`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None:
        pytest.skip("there is no `mount` here")
    command = [mount, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here (it takes root): {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="module")
def corpus(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text as 400 rows of JSON in two files."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = tiny.read_text().splitlines(keepends=True)
    texts = ["".join(lines[start : start + 100]) for start in range(0, len(lines), 100)]
    for name, half in (("a", texts[::2]), ("b", texts[1::2])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in half))
    return folder


def take_all_but(disk: Path, free: int) -> Path:
    """A file that leaves so much room, whole pages; as any file it can be removed again."""
    ballast = disk / "ballast"
    state = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, state.f_bavail * state.f_frsize - free)
    return ballast


def check_names(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """What has a final name is whole."""
    for name, content in found.items():
        if BUSY_FOLDERS.isdisjoint(name.split("/")):
            assert content == wanted[name], f"{name} is half written"


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        ["--shuffle", "none"],
        ["--shuffle", "shard"],
        ["--shuffle", "global"],
        ["--pack", "256", "--pad-id", "0", "--split", "train=0.9,test=0.1"],
    ],
    ids=["none", "shard", "global", "packed"],
)
def test_a_full_disk_costs_nothing_but_time(
    layout: list[str],
    disk: Path,
    corpus: Path,
    model_dir: Path,
    tmp_path: Path,
    run: Run,
    tree_bytes: Tree,
) -> None:
    options = ["encode", "--input", corpus, "--tokenizer", model_dir, *layout]
    options += ["--shard-bytes", "120KB", "--range-bytes", "100KB", "--direct_num_workers=1"]
    assert run(*options, "--output", tmp_path / "whole").code == 0
    wanted = tree_bytes(tmp_path / "whole")
    size = sum(map(len, wanted.values()))
    pages = sum(-(-len(content) // PAGE_BYTES) for content in wanted.values())
    assert size * 2 < DISK_BYTES
    # From no room for anything to room for all but the last file; a shuffle takes as much again.
    rooms = [*(int(size * share) for share in (0, 0.1, 0.5)), pages * PAGE_BYTES - 8192]
    if "global" in layout:
        rooms += [int(size * share) for share in (1.2, 1.9)]
    for room in rooms:
        ballast = take_all_but(disk, room - room % PAGE_BYTES)
        output = disk / "out"
        refused = run(*options, "--output", output)
        assert refused.code == 1, f"with room for {room:,} of {size:,} bytes"
        errors = [line for line in refused.err.splitlines() if line.startswith("error:")]
        assert len(errors) == 1, refused.err
        assert str(output) in errors[0]
        assert "No space left on device" in errors[0]
        assert "Traceback" not in refused.err
        check_names(tree_bytes(output) if output.exists() else {}, wanted)
        # What nobody can use does not take the room that was short.
        assert not list(output.rglob("_temporary/*"))
        ballast.unlink()
        done = run(*options, "--output", output)
        assert done.code == 0, done.err
        assert tree_bytes(output) == wanted, f"after room for {room:,} of {size:,} bytes"
        shutil.rmtree(output)
