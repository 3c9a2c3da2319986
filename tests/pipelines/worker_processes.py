"""Workers of a driver, as the system lists them."""

from __future__ import annotations

from pathlib import Path


def worker_processes(driver: int) -> list[int]:
    """Worker processes that a driver started, by their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == driver and b"pipelines.runners.worker_process" in command:
            found.append(int(entry.name))
    return found


def is_running(pid: int) -> bool:
    """Whether a process has not ended (a zombie, which has, shows no program)."""
    try:
        return Path(f"/proc/{pid}/exe").exists()
    except OSError:
        return False
