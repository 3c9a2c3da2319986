"""What Python does not offer for files that are being written."""

from __future__ import annotations

from pathlib import Path

from pipelines.storage.file_writing import start_writing


def test_a_file_may_be_on_its_way_to_the_disk_or_not(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"a" * 10_000)
        start_writing(file.fileno(), 0, 10_000)
        start_writing(file.fileno(), 5_000, 1 << 40)
    # Whoever waits for the disk later on hears of it.
    start_writing(-1, 0, 1)
    assert (tmp_path / "a").read_bytes() == b"a" * 10_000
