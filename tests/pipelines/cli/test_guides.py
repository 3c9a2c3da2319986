"""The examples of README and guides, run as they stand: commands with their output, Python code."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDES = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run: seconds, speeds, and how much memory a process has by now.
_MEASURED = re.compile(
    r"[\d.,]+ (?:s|[kMG]?B/s|bytes/s)\b|seconds +[\d.,]+|about [\d.,]+ [kMG]B of memory"
)
# Programs besides ours that a guide may show; they run in a shell.
_SHELL = ("cat", "ls", "printf")


def _blocks(guide: str) -> Iterator[tuple[str, str]]:
    yield from _BLOCK.findall((ROOT / guide).read_text(encoding="utf8"))


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with the output that stands below it."""
    for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def _masked(output: str, folder: Path) -> str:
    lines = output.replace(str(folder), "…").splitlines()
    return "\n".join(line for line in (_MEASURED.sub("~", line).rstrip() for line in lines) if line)


def _run(command: str, run: Callable[..., Any]) -> tuple[int, str]:
    """Exit code and output of a command, ours in this process."""
    program, *arguments = shlex.split(command)
    if program == "beam-bpe":
        done = run(*arguments)
        return done.code, done.err + done.out
    assert program in _SHELL, command
    shell = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return shell.returncode, shell.stderr + shell.stdout


def _shown_values(block: str) -> Iterator[tuple[str, Any]]:
    """Expressions of a Python block, with the literal that a comment gives as their value."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        comment = lines[(node.end_lineno or 1) - 1].partition("  # ")[2]
        if isinstance(node, ast.Expr) and comment:
            try:
                value = ast.literal_eval(comment)
            except (SyntaxError, ValueError):
                continue
            yield ast.unparse(node.value), value


@pytest.mark.slow
def test_the_examples_give_what_the_guides_say(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.jsonl").write_text('{"doc": {"content": "low lower lowest"}}\n')
    monkeypatch.chdir(tmp_path)
    ran = values = 0
    for guide in GUIDES:
        names: dict[str, Any] = {"__name__": "example"}
        for kind, block in _blocks(guide):
            if kind == "python":
                exec(compile(block, guide, "exec"), names)
                for expression, value in _shown_values(block):
                    assert eval(expression, names) == value, f"{guide}: {expression}"
                    values += 1
                continue
            for command, expected in _commands(block):
                code, shown = _run(command, run)
                wanted = 1 if expected.startswith("error: ") else 0
                assert code == wanted, f"{guide}: {command}\n{shown}"
                assert _masked(shown, tmp_path) == _masked(expected, tmp_path), (
                    f"{guide}: {command}"
                )
                ran += 1
    assert ran > 15
    assert values > 4


def _anchors(document: str) -> set[str]:
    """The anchors that GitHub and MkDocs give to a document's headings."""
    titles = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_guides_name_only_files_and_headings_that_are_here() -> None:
    for guide in (*GUIDES, "CONTRIBUTING.md", "SECURITY.md"):
        text = (ROOT / guide).read_text(encoding="utf8")
        for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^)#:]*)\)", text):
            path = (ROOT / guide).parent / target if target else ROOT / guide
            assert path.exists(), f"{guide} links to {target}"
            assert not anchor or anchor in _anchors(path.read_text(encoding="utf8")), (
                f"{guide} links to {target}#{anchor}"
            )
        for target in re.findall(r"\b((?:tests|examples|bpe|pipelines|schemas)/[\w/.]*\w)", text):
            assert (ROOT / target).exists(), f"{guide} names {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf8").splitlines()) <= 170
