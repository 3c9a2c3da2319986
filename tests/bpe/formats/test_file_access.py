"""Files of tokenizers: JSON of any content is a value or an error with the file, in linear time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bpe import ModelFileError
from bpe.formats import file_access
from bpe.formats.file_access import parse_json, read_file, shown
from bpe.formats.golden import parse_golden
from bpe.formats.model_directory import is_meant_as_model_directory, is_model_directory


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 3}', r"x\.json: the key 'a' is there twice"),
        ("[" * 100_000, r"x\.json: .* nested more than 100 deep"),
        ("[" * 101 + "]" * 101, r"x\.json: .* nested more than 100 deep"),
        ('{"a":' * 200 + "1" + "}" * 200, r"x\.json: .* nested more than 100 deep"),
        ('{\n "id": ' + "1" * 5000 + "}", r"x\.json, line 2, column 8: .* too many digits"),
        ('{"a": NaN}', r"x\.json: NaN is no finite number"),
        ('{"a": -Infinity}', r"x\.json: -Infinity is no finite number"),
        ('{"a": 1e999}', r"x\.json: 1e999 is no finite number"),
        (r'{"a": [{"b": "x\ud800"}]}', r"x\.json: a\[0\]\.b is 'x\\ud800'.* surrogate at index 1"),
        (r'{"\uDfff": 1}', r"x\.json:  \(a key\) is '\\udfff', which holds a lone surrogate"),
        ('{"a": }', r"x\.json, column 7: not JSON"),
        ("", r"x\.json, column 1: not JSON"),
    ],
)
def test_what_is_wrong_with_json_is_said_with_the_file(text: str, message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        parse_json(text, "x.json")
    assert len(str(caught.value)) < 500


def test_a_surrogate_pair_and_deep_values_are_read() -> None:
    assert parse_json(r'{"a": "\ud83d\ude00 \\ud800"}', "x.json") == {"a": "\U0001f600 \\ud800"}
    assert parse_json("[" * 100 + "]" * 100, "x.json")


def process_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def test_a_key_twice_is_found_in_linear_time() -> None:
    keys = ",".join(f'"key{number}":{number}' for number in range(30_000))

    def read() -> None:
        with pytest.raises(ModelFileError, match="'key29999' is there twice"):
            parse_json(f'{{{keys},"key29999":1}}', "x.json")

    # Searching a list for each key took half a minute.
    assert process_seconds(read) < 5


def test_a_file_above_the_bound_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        file.truncate(file_access.MOST_BYTES + 1)
    with pytest.raises(ModelFileError, match=r"tokenizer\.json has 1,073,741,825 bytes or more"):
        read_file(path)
    monkeypatch.setattr(file_access, "MOST_BYTES", 4)
    path.write_bytes(b"1234")
    assert read_file(path) == b"1234"


def test_values_are_shown_cut() -> None:
    assert shown("a") == "'a'"
    assert shown({"a": [1]}) == '{"a": [1]}'
    assert len(shown("a" * 10_000)) < 250
    assert len(shown([1] * 10_000)) < 250


@pytest.mark.parametrize("config", ["[" * 100_000, '{"a":' * 5000, "1" * 5000, '{"a": NaN}'])
def test_a_strange_config_is_no_model_directory(config: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    assert not is_model_directory(tmp_path)
    assert is_meant_as_model_directory(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[" * 100_000, "nested more than"),
        ('{"text": 5, "ids": []}', r"'text' is 5, not a string"),
        ('{"base64": ["YQ=="], "ids": []}', r"'base64' is \[\"YQ==\"\], not a string"),
        ('{"base64": "\u00e9", "ids": []}', r"'base64' cannot be decoded"),
        ('{"text": "a", "ids": [1e999]}', "no finite number"),
        ('{"text": "a", "text": "b", "ids": []}', "is there twice"),
    ],
)
def test_golden_lines_of_other_types_are_refused(line: str, message: str) -> None:
    with pytest.raises(ModelFileError, match=f"golden.jsonl, line 2.*{message}"):
        parse_golden(f"\n{line}", "golden.jsonl")


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "null.json").symlink_to("/dev/null")
    for path in (tmp_path / "pipe.json", tmp_path / "null.json"):
        # In a thread: without the refusal, opening waits for a writer.
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(read_file, path).exception
            try:
                with pytest.raises(ModelFileError) as caught:
                    raise found(timeout=5) or AssertionError("read")
            finally:
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        assert str(caught.value).startswith(f"{path} is a pipe, a socket or a device; write its")
