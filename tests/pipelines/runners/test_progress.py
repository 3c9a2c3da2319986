"""Progress: reports of threads and processes add up, and nothing is printed without a terminal."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipelines.runners import progress
from pipelines.runners.progress import ProgressReporter, format_bytes, show_merges, show_progress


def report(folder: str) -> None:
    reporter = ProgressReporter(folder)
    reporter.add(100)
    reporter.add(20)


def test_reports_of_threads_and_processes_add_up(tmp_path: Path) -> None:
    report(str(tmp_path))
    thread = threading.Thread(target=report, args=(str(tmp_path),))
    thread.start()
    thread.join()
    code = "import sys; from pipelines.runners.progress import ProgressReporter as Reporter\n"
    code += "reporter = Reporter(sys.argv[1]); reporter.add(100); reporter.add(20)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert progress._sum_of_reports(str(tmp_path)) == 360


def test_a_later_unit_of_a_thread_adds_to_what_it_reported(tmp_path: Path) -> None:
    report(str(tmp_path))
    report(str(tmp_path))
    assert progress._sum_of_reports(str(tmp_path)) == 240


@pytest.mark.parametrize("folder", ["", "/nosuch/folder"])
def test_a_worker_elsewhere_reports_nothing(folder: str) -> None:
    report(folder)


def test_without_a_terminal_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress("counting", 1000) as folder:
        report(folder)
    with show_merges(300) as callback:
        assert callback is None
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_shows_bytes_and_its_folder_goes_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LOOKS", 0.01)
    with show_progress("counting", 240) as folder:
        report(folder)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and "120/240" not in terminal.getvalue():
            time.sleep(0.02)
    assert "counting" in terminal.getvalue()
    assert "120/240" in terminal.getvalue()
    assert not Path(folder).exists()
    with show_merges(300) as callback:
        assert callback is not None
        callback(3, 44)


def test_bytes_are_shown_in_decimal_units() -> None:
    assert format_bytes(999) == "999 bytes"
    assert format_bytes(1_115_394) == "1.12 MB"
    assert format_bytes(50 * 10**12) == "50 TB"
