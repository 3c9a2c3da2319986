"""Listing input files: patterns, what is left out, what is refused, and the options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bpe.errors import BadFileError, SettingsError
from pipelines.corpus.listing.file_formats import check_magic, classify
from pipelines.corpus.listing.inputs import InputList, ReadOptions, list_inputs
from pipelines.corpus.read_options import parse_separator

TREE = {
    "corpus/a.txt": b"a",
    "corpus/b.jsonl": b"{}",
    "corpus/sub/c.md": b"c",
    "corpus/sub/deep/d.txt.gz": b"d",
    "corpus/.hidden.txt": b"h",
    "corpus/_SUCCESS": b"",
    "corpus/_temporary/e.txt": b"e",
    "other/f.txt": b"f",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def listed(tree: Path, *patterns: str, **options: Any) -> InputList:
    return list_inputs([str(tree / pattern) for pattern in patterns], ReadOptions(**options))


def names(inputs: InputList) -> list[str]:
    return [file.source for file in inputs.files]


def test_a_star_stays_inside_a_folder(tree: Path) -> None:
    assert names(listed(tree, "corpus/*")) == ["a.txt", "b.jsonl"]


@pytest.mark.parametrize("pattern", ["corpus/**", "corpus/", "corpus"])
def test_a_folder_is_all_that_is_in_it(tree: Path, pattern: str) -> None:
    inputs = list_inputs([f"{tree}/{pattern}"], ReadOptions())
    assert names(inputs) == ["a.txt", "b.jsonl", "sub/c.md", "sub/deep/d.txt.gz"]
    assert inputs.counts == {"hidden_files": 3}
    assert "3 files" in inputs.notes[0]


def test_files_are_sorted_and_numbered_whatever_the_order_of_patterns(tree: Path) -> None:
    forwards = listed(tree, "corpus/*", "other/*")
    assert forwards.files == listed(tree, "other/*", "corpus/*").files
    assert [file.index for file in forwards.files] == [0, 1, 2]
    assert names(forwards) == ["corpus/a.txt", "corpus/b.jsonl", "other/f.txt"]


def test_a_file_named_twice_is_read_once_with_a_note(tree: Path) -> None:
    inputs = listed(tree, "corpus/a.txt", "corpus/*", "corpus/../corpus/a.txt")
    assert names(inputs) == ["a.txt", "b.jsonl"]
    assert inputs.counts == {"duplicate_files": 1, "hidden_files": 2}
    assert "corpus/a.txt" in inputs.notes[0]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("corpus/.hidden.txt", [".hidden.txt"]),
        ("corpus/.h*", [".hidden.txt"]),
        ("corpus/_temporary/*", ["e.txt"]),
    ],
)
def test_hidden_names_are_read_when_spelled_out(
    tree: Path, pattern: str, expected: list[str]
) -> None:
    assert names(listed(tree, pattern)) == expected


def test_folders_above_the_pattern_may_be_hidden(tmp_path: Path) -> None:
    folder = tmp_path / ".cache" / "_x"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    assert names(list_inputs([f"{folder}/*.txt"], ReadOptions())) == ["a.txt"]


@pytest.mark.parametrize("pattern", ["nothing*", "corpus/missing.txt", "missing/", "corpus/*.csv"])
def test_a_pattern_without_a_match_is_named(tree: Path, pattern: str) -> None:
    with pytest.raises(SettingsError, match="no file matches") as caught:
        listed(tree, "corpus/a.txt", pattern)
    assert pattern.rstrip("/") in str(caught.value)


def test_nothing_but_hidden_files_is_an_error(tree: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing to read.*_temporary/e\.txt"):
        listed(tree, "corpus/_temporary/../*/e.txt")


def test_nothing_but_empty_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(SettingsError, match=r"nothing to read.*empty.*a\.txt"):
        list_inputs([f"{tmp_path}/*"], ReadOptions())


def test_an_empty_file_among_others_is_counted(tree: Path) -> None:
    (tree / "other" / "g.txt").touch()
    inputs = listed(tree, "other/*")
    assert names(inputs) == ["f.txt", "g.txt"]
    assert inputs.counts == {"empty_files": 1}


@pytest.mark.parametrize("patterns", [[], [""], ["  "]])
def test_no_pattern_is_an_error(patterns: list[str]) -> None:
    with pytest.raises(SettingsError, match="--input"):
        list_inputs(patterns, ReadOptions())


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="pipe or device"):
        list_inputs([f"{tmp_path}/pipe"], ReadOptions())


def test_a_link_that_leads_nowhere_is_an_error_or_a_note(tree: Path) -> None:
    link = tree / "corpus/sub/gone.txt"
    link.symlink_to("../../moved.txt")
    for pattern in ("corpus", "corpus/*/*.txt", "corpus/sub/gone.txt"):
        with pytest.raises(SettingsError, match="cannot be followed") as caught:
            listed(tree, pattern)
        assert f"{link}: the link to ../../moved.txt" in str(caught.value)
        assert "--on-bad-file=skip" in str(caught.value)
    inputs = listed(tree, "corpus/**", on_bad_file="skip")
    assert len(inputs.files) == 4
    assert inputs.counts["unreadable_inputs"] == 1
    assert any(str(link) in note for note in inputs.notes)
    with pytest.raises(SettingsError, match="nothing to read"):
        listed(tree, "corpus/sub/gone*", on_bad_file="skip")


@pytest.mark.parametrize("pattern", ["corpus/*", "corpus/sub/*.md", "other", "corpus/su?/*.csv"])
def test_links_that_do_not_match_or_are_hidden_do_not_matter(tree: Path, pattern: str) -> None:
    (tree / "corpus/sub/gone.txt").symlink_to("moved")
    (tree / "corpus/_temporary/gone.txt").symlink_to("moved")
    (tree / "corpus/sub/a.csv").touch()
    (tree / "corpus/sub/b.csv").write_text("b")
    options = {"input_format": "lines"} if pattern.endswith("csv") else {}
    assert listed(tree, pattern, **options).files


def test_a_link_in_circles_is_an_error(tree: Path) -> None:
    (tree / "corpus/loop.txt").symlink_to("loop.txt")
    with pytest.raises(SettingsError, match=r"loop\.txt: the link to loop\.txt cannot be followed"):
        listed(tree, "corpus/*")


def test_links_to_files_are_read(tree: Path) -> None:
    (tree / "corpus/z.txt").symlink_to("sub/c.md")
    assert names(listed(tree, "corpus/*")) == ["a.txt", "b.jsonl", "z.txt"]


def test_a_link_to_a_folder_is_not_followed_and_said(tree: Path) -> None:
    (tree / "other/link").symlink_to(tree / "corpus")
    for pattern in ("other", "other/*/*.txt", "other/**.txt"):
        if pattern == "other/*/*.txt":
            (tree / "other/x").mkdir()
            (tree / "other/x/x.txt").write_text("x")
        inputs = listed(tree, pattern)
        assert inputs.counts == {"linked_folders": 1}
        assert f"{tree}/other/link" in inputs.notes[0]
    assert names(listed(tree, "other/*")) == ["f.txt"]
    assert not listed(tree, "other/*").notes
    with pytest.raises(SettingsError, match="other/link is a link to a folder"):
        listed(tree, "other/**/*.jsonl")
    assert names(listed(tree, "other/link/*.txt")) == ["a.txt"]
    assert "a.txt" in names(listed(tree, "other/link"))


def test_a_folder_that_may_not_be_opened_is_an_error_or_a_note(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.scandir

    def scandir(path: str) -> Any:
        if path.rstrip("/").endswith("/sub"):
            raise PermissionError(13, "Permission denied")
        return opened(path)

    monkeypatch.setattr(os, "scandir", scandir)
    for pattern in ("corpus", "corpus/**/d*", "corpus/*/deep/*", "corpus/sub/*"):
        with pytest.raises(
            SettingsError, match="corpus/sub/: the folder cannot be opened"
        ) as found:
            listed(tree, pattern)
        assert "Permission denied" in str(found.value)
    inputs = listed(tree, "corpus", on_bad_file="skip")
    assert names(inputs) == ["a.txt", "b.jsonl"]
    assert inputs.counts["unreadable_inputs"] == 1
    assert names(listed(tree, "corpus/*")) == ["a.txt", "b.jsonl"]


def test_a_pipe_among_files_is_an_error(tree: Path) -> None:
    os.mkfifo(tree / "corpus/pipe")
    with pytest.raises(SettingsError, match="corpus/pipe: it is a pipe"):
        listed(tree, "corpus/*")


def test_glob_characters_in_a_name_that_exists_are_no_glob(tmp_path: Path) -> None:
    (tmp_path / "part[1].txt").write_bytes(b"x")
    assert names(list_inputs([f"{tmp_path}/part[1].txt"], ReadOptions())) == ["part[1].txt"]


def test_relative_paths_become_absolute(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert list_inputs(["corpus/*"], ReadOptions()) == listed(tree, "corpus/*")
    assert list_inputs(["./corpus/a.txt"], ReadOptions()).files[0].path == f"{tree}/corpus/a.txt"


def test_a_name_that_is_not_utf8_has_a_printable_source(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"x")
    inputs = list_inputs([f"{tmp_path}/*"], ReadOptions())
    assert names(inputs) == ["caf\\xe9.txt"]


def test_identity_changes_with_size_and_time(tree: Path) -> None:
    before = listed(tree, "corpus/a.txt").files[0].identity
    assert before == listed(tree, "corpus/*").files[0].identity
    os.utime(tree / "corpus/a.txt", (1, 1))
    assert listed(tree, "corpus/a.txt").files[0].identity != before


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", ("text", "none")),
        ("a.md.gz", ("text", "gzip")),
        ("a", ("text", "none")),
        ("a.TXT.ZST", ("text", "zstd")),
        ("a.jsonl", ("jsonl", "none")),
        ("a.ndjson.gz", ("jsonl", "gzip")),
        ("gs://bucket/x.y/a.jsonl.zst", ("jsonl", "zstd")),
        ("corpus.gz", ("text", "gzip")),
        ("a.v2", ("text", "none")),
        ("part-0.snappy.parquet", ("parquet", "none")),
        ("a.PQ", ("parquet", "none")),
        ("a.arrow", ("arrow", "none")),
        ("a.arrows", ("arrow", "none")),
        ("a.feather", ("arrow", "none")),
        ("a.csv", ("csv", "none")),
        ("a.tsv.zst", ("tsv", "zstd")),
        ("a.jsonl.xz", ("jsonl", "xz")),
        ("a.bz2", ("text", "bzip2")),
    ],
)
def test_the_name_decides_the_format(name: str, expected: tuple[str, str]) -> None:
    assert classify(name, "auto") == expected


def test_a_named_format_overrides_the_name() -> None:
    assert classify("a.jsonl.gz", "lines") == ("lines", "gzip")
    assert classify("a.json", "jsonl") == ("jsonl", "none")
    assert classify("a.csv", "text") == ("text", "none")
    assert classify("part-0", "parquet") == ("parquet", "none")
    with pytest.raises(SettingsError, match="packed parquet files are not read; unpack"):
        classify("part-0.gz", "parquet")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.avro", "convert"),
        ("a.parquet.gz", "unpack"),
        ("a.arrows.zst", "unpack"),
        ("a.pdf", "convert"),
        ("a.txt.lz4", "unpack"),
        ("a.lzma", "unpack"),
        ("a.zip", "unpack"),
        ("a.tar.gz", "unpack"),
        ("a.json", "--input-format=jsonl"),
        ("a.json.gz", "--input-format=jsonl"),
    ],
)
def test_formats_that_cannot_be_read_are_refused_with_a_remedy(name: str, remedy: str) -> None:
    with pytest.raises(SettingsError, match=remedy) as caught:
        classify(name, "auto")
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["a.parquet", "a.txt.lz4"])
def test_binary_files_are_refused_in_any_format(name: str) -> None:
    with pytest.raises(SettingsError, match="not read"):
        classify(name, "text")


def test_magic_numbers_are_told_from_text() -> None:
    check_magic("a.txt", b"BZ is no magic number")
    check_magic("a.txt", b"")
    with pytest.raises(BadFileError, match=r"a\.txt.*gzip"):
        check_magic("a.txt", b"\x1f\x8b\x08\0")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"input_format": "xml"}, "--input-format"),
        ({"on_bad_record": "ignore"}, "--on-bad-record"),
        ({"on_bad_file": "ignore"}, "--on-bad-file"),
        ({"empty": "maybe"}, "--empty"),
        ({"range_bytes": 0}, "--range-bytes"),
        ({"max_row_bytes": 0}, "--max-row-bytes"),
        ({"max_row_bytes": 2**31}, "--max-row-bytes"),
        ({"max_bad_records": -1, "on_bad_record": "skip"}, "--max-bad-records"),
        ({"max_bad_records": 1}, "--on-bad-record=skip"),
        ({"document_separator": b""}, "--document-separator"),
        ({"document_separator": b"x", "input_format": "lines"}, "--document-separator"),
        ({"document_separator": b"x", "input_format": "jsonl"}, "--document-separator"),
        ({"document_separator": b"x", "input_format": "parquet"}, "--document-separator"),
        ({"text_field": ""}, "--text-field"),
        ({"text_field": "a..b"}, "--text-field"),
        ({"id_field": "a."}, "--id-field"),
        ({"id_field": "id", "input_format": "text"}, "--id-field"),
        ({"text_field": "a", "id_field": "a.b"}, "--id-field a.b"),
    ],
)
def test_options_that_cannot_be_honoured_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        ReadOptions(**options)


def test_options_that_fit_no_file_are_refused(tree: Path) -> None:
    with pytest.raises(SettingsError, match=r"--document-separator.*b\.jsonl"):
        listed(tree, "corpus/b.jsonl", document_separator=b"x")
    with pytest.raises(SettingsError, match=r"--id-field.*a\.txt"):
        listed(tree, "corpus/a.txt", id_field="id")
    assert listed(tree, "corpus/*", document_separator=b"x", id_field="id")


def test_every_option_is_in_the_settings() -> None:
    settings = ReadOptions(document_separator=b"\n\n").to_settings()
    assert settings.keys() == ReadOptions.__dataclass_fields__.keys()
    assert settings["document_separator"] == "0a0a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(r"\n\n", b"\n\n"), (r"a\\n\t\0", b"a\\n\t\0"), (r"\xff\x41é", b"\xffA\xc3\xa9"), ("|", b"|")],
)
def test_separators_may_hold_escapes(text: str, expected: bytes) -> None:
    assert parse_separator(text) == expected


@pytest.mark.parametrize("text", ["", "\\", r"\q", r"\x4", r"\xzz"])
def test_separators_with_other_escapes_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--document-separator"):
        parse_separator(text)
