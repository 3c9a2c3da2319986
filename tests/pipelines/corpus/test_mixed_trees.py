"""Trees that hold more than text: files chosen by name, and those that are refused."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.listing import input_heads
from pipelines.corpus.listing.content_kinds import HEAD_BYTES
from pipelines.corpus.listing.inputs import InputList, ReadOptions, list_inputs
from pipelines.corpus.listing.name_filters import NameFilter
from pipelines.corpus.plan import Unit, make_plan
from pipelines.corpus.settings import reading_settings
from pipelines.shards.manifest import read_manifest

TREE = {
    "a.txt": b"one",
    "b.png": b"\x89PNG\r\n\x1a\n",
    "c": gzip.compress(b"three"),
    "docs/d.txt": b"four",
    "docs/deep/e.txt": b"five",
    "docs/deep/f.png": b"not even one",
    "docs/g.json": b"[]",
    "docs/old/h.txt": b"eight",
    "docs/old/i[1].txt": b"nine",
}
TEXTS = ["a.txt", "docs/d.txt", "docs/deep/e.txt", "docs/old/h.txt", "docs/old/i[1].txt"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "in"


def listed(*patterns: object, **options: Any) -> InputList:
    return list_inputs(list(map(str, patterns)), ReadOptions(**options))


def names(inputs: InputList) -> list[str]:
    return [file.source for file in inputs.files if file.refusal is None]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("*.txt",), (), TEXTS),
        (("**/*.txt",), (), TEXTS),
        (("/*.txt",), (), ["a.txt"]),
        (("a.txt/", "a.txt"), ("b/**",), ["a.txt"]),
        (("docs/*.txt",), (), ["docs/d.txt"]),
        (("docs/**/*.txt",), (), TEXTS[1:]),
        (("docs/**.txt",), (), TEXTS[1:]),
        (("docs/",), ("*.png", "*.json"), TEXTS[1:]),
        (("docs/**",), ("*.png", "*.json", "deep/"), ["docs/d.txt", *TEXTS[3:]]),
        (("*.txt",), ("old/",), TEXTS[:3]),
        (("*.txt",), ("docs/old/",), TEXTS[:3]),
        (("*.txt",), ("docs/old/**", "docs/d*"), ["a.txt", "docs/deep/e.txt"]),
        (("[a-d].txt",), (), ["a.txt", "docs/d.txt"]),
        (("[!a-d].txt",), (), ["docs/deep/e.txt", "docs/old/h.txt"]),
        (("i[[]1].txt",), (), ["docs/old/i[1].txt"]),
        (("?.txt",), ("e.txt",), ["a.txt", "docs/d.txt", "docs/old/h.txt"]),
        (("a.txt", "h.txt"), (), ["a.txt", "docs/old/h.txt"]),
        (("docs/?ld/h.txt",), (), ["docs/old/h.txt"]),
    ],
)
def test_patterns_choose_files_below_the_fixed_part(
    include: tuple[str, ...], exclude: tuple[str, ...], expected: list[str], tree: Path
) -> None:
    for pattern in (tree, f"{tree}/**"):
        inputs = listed(pattern, include=include, exclude=exclude)
        assert names(inputs) == expected
        assert inputs.counts["excluded_files"] == len(TREE) - len(expected)


def test_the_fixed_part_is_that_of_each_input(tree: Path) -> None:
    inputs = listed(tree / "docs", tree / "a.txt", include=("*/*.txt", "/a.txt"))
    assert names(inputs) == ["a.txt", "docs/deep/e.txt", "docs/old/h.txt", "docs/old/i[1].txt"]
    # One input that chooses a file is enough.
    assert names(listed(tree / "docs", tree, include=("docs/d.txt",))) == ["docs/d.txt"]


@given(st.text("ab/.[]!*?-^", max_size=12), st.text("ab/.[]", max_size=8))
def test_any_pattern_is_one(pattern: str, path: str) -> None:
    chosen = NameFilter([pattern], [])
    if "*" not in pattern and "?" not in pattern and "[" not in pattern and "/" not in pattern:
        assert chosen.keeps(path) == (path == pattern or path.endswith(f"/{pattern}"))
    assert chosen.keeps(path) != NameFilter([], [pattern]).keeps(path)


@pytest.mark.parametrize("pattern", ["*", "**", "**/*"])
def test_stars_are_everything(pattern: str) -> None:
    assert all(NameFilter([pattern], []).keeps(path) for path in TREE)


def test_patterns_that_choose_nothing_are_said(tree: Path) -> None:
    inputs = listed(tree, include=("*.txt", "*.md"), exclude=("old",))
    assert "'*.md' of --include and --exclude matches no file" in inputs.notes
    assert "'old' of --include and --exclude matches no file" in inputs.notes
    with pytest.raises(
        SettingsError, match=r"leave out all that matches, 9 files such as .*a\.txt"
    ):
        listed(tree, include=("*.md",))
    for wrong in ({"include": ("",)}, {"exclude": "*.txt"}):
        with pytest.raises(SettingsError, match=f"--{next(iter(wrong))} takes patterns"):
            ReadOptions(**wrong)  # type: ignore[arg-type]


def test_what_is_chosen_is_recorded_as_the_list_of_inputs_alone() -> None:
    assert reading_settings(ReadOptions(include=("*.txt",))) == reading_settings(ReadOptions())


def test_one_message_counts_all_that_is_refused(tree: Path) -> None:
    with pytest.raises(BadFileError) as caught:
        listed(tree)
    assert str(caught.value) == (
        f"4 of 9 files cannot be read: 2 such as {tree}/b.png, {tree}/docs/deep/f.png (.png files "
        "are not read; convert it to JSON lines or text, or leave it out of --input); "
        f"1 such as {tree}/docs/g.json (the name does not say how to read it; "
        "--input-format=jsonl if every line is a JSON object, or pass --input-format=text or lines "
        f"to take its bytes as they are); 1 such as {tree}/c (the content starts like a gzip file; "
        "give it the name of its format, such as .gz, or pass --input-format=text to take its "
        "bytes as they are); choose files with --include and --exclude, or let train and encode "
        "skip and list them with --on-bad-file=skip"
    )
    with pytest.raises(SettingsError, match="2 of 2 files cannot be read"):
        listed(tree / "**.png")


def test_a_message_about_very_many_files_is_short(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.s{number % 20}").write_bytes(b"\x89PNG\r\n\x1a\n")
        (tmp_path / f"{number}.png").touch()
    with pytest.raises(
        BadFileError, match=r"^600 of 600 files cannot be read: 300 such as"
    ) as found:
        listed(tmp_path)
    assert len(str(found.value)) < 2000 + 9 * len(str(tmp_path))


def test_refused_files_are_bad_files(tree: Path) -> None:
    inputs = listed(tree, on_bad_file="skip")
    assert names(inputs) == TEXTS
    assert len(inputs.files) == len(TREE)
    assert any(note.startswith("left out as bad files: 4 of 9 files") for note in inputs.notes)
    for unit in make_plan(inputs, ReadOptions()).units:
        assert Unit.from_json(unit.to_json()) == unit
    with pytest.raises(SettingsError, match=r"nothing to read: .*/b\.png: \.png files are not"):
        listed(tree / "b.png", on_bad_file="skip")


def test_heads_are_read_once_and_only_where_nobody_declared_the_format(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "long").write_bytes(b"text" * HEAD_BYTES)
    read: list[tuple[str, int]] = []
    opened = input_heads.open_bytes

    def open_counted(path: str) -> Any:
        read.append((path.removeprefix(f"{tree}/"), HEAD_BYTES))
        return opened(path)

    monkeypatch.setattr(input_heads, "open_bytes", open_counted)
    monkeypatch.setattr(input_heads, "_FILES_PER_TASK", 2)
    listed(tree, exclude=("*.png", "docs/g.json", "c"))
    assert sorted(path for path, _ in read) == [*TEXTS, "long"]
    read.clear()
    listed(tree, input_format="text", exclude=("*.png",))
    assert not read


def test_commands_take_patterns_and_list_what_they_skip(
    tree: Path, model_dir: Path, tmp_path: Path, run: Any
) -> None:
    output = tmp_path / "out"
    encode = ("encode", "--input", tree, "--tokenizer", model_dir, "--output", output)
    refused = run(*encode)
    assert refused.code == 1
    assert "4 of 9 files cannot be read" in refused.err
    assert not output.exists()
    done = run(*encode, "--include", "*.txt", "--include", "*.png", "--exclude", "*.png")
    assert done.code == 0, done.err
    assert "excluded_files 4" in done.out
    assert read_manifest(str(output)).listing == {"excluded_files": 4}
    # The same files, chosen in another way.
    same = run(*encode, "--include", "*.txt")
    assert "is finished" in same.err
    skipped = run(*encode, "--on-bad-file", "skip", "--overwrite")
    assert skipped.code == 0, skipped.err
    totals = read_manifest(str(output)).totals
    assert (totals.documents, totals.rejects) == (5, {"bad_file": 4})
    lines = [
        line
        for path in output.glob("__beam-bpe__/rejects/*")
        for line in path.read_text().splitlines()
    ]
    reasons = {Path(each["file"]).name: each["message"] for each in map(json.loads, lines)}
    assert reasons.keys() == {"b.png", "c", "f.png", "g.json"}
    assert "the content starts like a gzip file" in reasons["c"]
    train = ("train", "--input", tree, "--vocab-size", 257, "--min-frequency", 1)
    for number, options in enumerate([("--include", "*.txt"), ("--on-bad-file", "skip")]):
        trained = run(*train, *options, "--output", tmp_path / f"model{number}")
        assert trained.code == 0, trained.err
        assert "documents        5\n" in trained.out


def test_plan_shows_what_is_refused(tree: Path, run: Any) -> None:
    shown = run("plan", "--input", tree)
    assert shown.code == 1
    assert "4 of 9 files cannot be read" in shown.err
    assert "  docs/deep/e.txt  4 bytes  text" in shown.out
    assert "4 files of these cannot be read:\n  2: b.png, docs/deep/f.png: .png files" in shown.out
    assert "  1: c: the content starts like a gzip file" in shown.out
    skipped = run("plan", "--input", tree, "--on-bad-file", "skip")
    assert skipped.code == 0
    assert skipped.out == shown.out


def test_an_output_below_the_input_may_be_excluded(tree: Path, model_dir: Path, run: Any) -> None:
    output = tree / "out"
    encode = ("encode", "--input", tree, "--include", "*.txt", "--tokenizer", model_dir)
    refused = run(*encode, "--output", output)
    assert re.search("takes its files as input|lies in it", refused.err)
    chosen = (*encode, "--exclude", "out/")
    assert run(*chosen, "--output", output).code == 0
    assert "is finished" in run(*chosen, "--output", output).err
