"""The examples of README and guides, run as they stand: commands with their output, Python code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run: seconds, speeds, and how much memory a process has by now.
_MEASURED = re.compile(r"[\d.,]+ (?:s|[kMG]?B/s)\b|seconds +[\d.,]+|about [\d.,]+ [kMG]B of memory")
# Needs a corpus of the reader's own, or the output of a command that a guide only describes.
_NOT_RUN = ("doc.content", "EncodeToBatches")


def _blocks(guide: str) -> Iterator[tuple[str, str]]:
    for kind, text in _BLOCK.findall((ROOT / guide).read_text(encoding="utf8")):
        if not any(mark in text for mark in _NOT_RUN):
            yield kind, text


def _commands(block: str) -> Iterator[tuple[list[str], str]]:
    """Each command of a console block, as arguments, with the output that stands below it."""
    for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield shlex.split(command), output


def _masked(output: str) -> str:
    lines = [_MEASURED.sub("~", line).rstrip() for line in output.splitlines()]
    return "\n".join(line for line in lines if line)


@pytest.mark.slow
def test_the_examples_give_what_the_guides_say(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    ran = 0
    for guide in GUIDES:
        for kind, block in _blocks(guide):
            if kind == "python":
                exec(compile(block, guide, "exec"), {"__name__": "example"})
                continue
            for (program, *arguments), expected in _commands(block):
                assert program == "beam-bpe", f"{guide}: {program}"
                done = run(*arguments)
                shown = done.err + done.out
                assert done.code == 0, f"{guide}: {arguments}\n{shown}"
                assert _masked(shown) == _masked(expected), f"{guide}: {arguments}"
                ran += 1
    assert ran > 12


def test_guides_name_only_files_that_are_here() -> None:
    for guide in GUIDES:
        text = (ROOT / guide).read_text(encoding="utf8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert ((ROOT / guide).parent / target).exists(), f"{guide} links to {target}"
        for target in re.findall(r"\b((?:tests|examples|bpe|pipelines)/[\w/]+\.py)", text):
            assert (ROOT / target).exists(), f"{guide} names {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf8").splitlines()) <= 170
