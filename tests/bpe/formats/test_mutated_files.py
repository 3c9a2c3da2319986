"""Damaged and hostile tokenizer files: each loads, or is an error of ours that names the file."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe import Tokenizer, load_tokenizer
from bpe.errors import BpeError
from bpe.pretokenizing import user_patterns

JUNK = st.sampled_from(
    [
        None,
        True,
        False,
        -1,
        0,
        300,
        2**24,
        2**31 - 1,
        2**31,
        2**64,
        10**30,
        0.5,
        -0.0,
        "",
        "a",
        "Ġ",
        "\u2581",
        "\x00",
        "\U0001f600",
        "a" * 5000,
        "(?:a|a)+[bc]",
        "(?R)?a",
        "(",
        "(?r)a",
        r"\p{N}{1,3}+",
        "NFC",
        "NFKC",
        "ByteLevel",
        "Split",
        "Sequence",
        "BPE",
        [],
        ["a"],
        [["a", "b"]],
        [None],
        {},
        {"a": 1},
        {"type": "Sequence"},
        {"type": ["BPE"]},
        {"type": "Sequence", "normalizers": "NFC", "pretokenizers": {"ByteLevel": 1}},
        {"type": "NFC"},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": "x"},
        {"id": 5, "content": "x"},
        {"Regex": 5},
    ]
)
MERGES = [(b"a", b"a"), (b" ", b"t"), (b" t", b"h")]
_FEW = 6


def places_in(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every member, of long containers the first and last few."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    for key in keys if len(keys) < 40 else keys[:_FEW] + keys[-_FEW:]:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places_in(value[key], depth + 1)


def mutate(document: Any, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        places = list(places_in(document))
        if not places:
            return
        parent, key = places[data.draw(st.integers(0, len(places) - 1))]
        action = data.draw(st.sampled_from(["drop", "junk", "swap", "wrap", "rename", "repeat"]))
        if action == "drop":
            del parent[key]
        elif action == "swap":
            other, at = places[data.draw(st.integers(0, len(places) - 1))]
            parent[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(parent[key])
        elif action == "wrap":
            parent[key] = data.draw(st.sampled_from([[parent[key]], {"type": parent[key]}]))
        elif action == "rename" and isinstance(parent, dict):
            parent[data.draw(st.sampled_from(["a", "", "Ġ", "é", "x y"]))] = parent.pop(key)
        elif action == "repeat" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        else:
            parent[key] = copy.deepcopy(data.draw(JUNK))


def make_files(folder: Path) -> None:
    """One tokenizer in each of the forms that are read."""
    tokenizer = Tokenizer.from_merges(
        MERGES, pretokenizer=r"regex:\d| ?\p{L}+", special_tokens=["<|end|>"], tie_order="id"
    )
    tokenizer.save(folder / "model")
    tokenizer.to_tiktoken(folder / "x.tiktoken")
    document = json.loads((folder / "model" / "tokenizer.json").read_text())
    document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}]}
    document["post_processor"] = {"type": "TemplateProcessing", "single": [{"Sequence": {}}]}
    (folder / "tokenizer.json").write_text(json.dumps(document))


def read(path: Path) -> Any:
    text = path.read_text()
    if path.suffix in (".jsonl", ".txt", ".tiktoken"):
        return [
            json.loads(each) if path.suffix == ".jsonl" else each for each in text.split("\n")[:-1]
        ]
    return json.loads(text)


def write(path: Path, value: Any) -> None:
    if path.suffix in (".txt", ".tiktoken"):
        lines = value if isinstance(value, list) else [value]
        path.write_text("\n".join(map(str, lines)))
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in value))
    else:
        path.write_text(json.dumps(value))


def change_one_file(kind: str, data: st.DataObject, source: Path, folder: Path) -> Path:
    """What is to be loaded, after a change."""
    if kind in ("tokenizer.json", "x.tiktoken"):
        value = read(source / kind)
        mutate(value, data)
        write(folder / kind, value)
        return folder / kind
    names = ["vocab.json", "merges.txt"]
    if kind == "model":
        names += ["golden.jsonl", "config.json"]
    chosen = data.draw(st.sampled_from(names))
    contents = {name: read(source / "model" / name) for name in names}
    mutate(contents[chosen], data)
    for name in names[:3]:
        write(folder / name, contents[name])
    if kind == "model":
        config = contents["config.json"]
        if chosen != "config.json":
            config["files"] = {
                name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names[:3]
            }
        write(folder / "config.json", config)
    return folder


def explore(examples: int) -> None:
    """Load changed files, and encode with what loads."""
    with tempfile.TemporaryDirectory() as made:
        make_files(Path(made))

        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data(), st.sampled_from(["tokenizer.json", "pair", "model", "x.tiktoken"]))
        def check(data: st.DataObject, kind: str) -> None:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                path = change_one_file(kind, data, Path(made), Path(folder))
                scheme = "gpt2" if kind == "x.tiktoken" else None
                refusal = ""
                try:
                    tokenizer = load_tokenizer(path, pretokenizer=scheme)
                except BpeError as error:
                    refusal = str(error)
                if refusal:
                    assert str(path) in refusal
                    assert len(refusal) < 3000
                    return
                for policy in ("text", "allow"):
                    try:
                        ids = tokenizer.encode("aaa the<|end|> th 12 e\u0301", special_text=policy)
                        tokenizer.decode(ids)
                    except BpeError:
                        continue

        check()


def test_changed_files_load_or_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_patterns, "_SECONDS", 0.2)
    explore(60)


@pytest.mark.slow
def test_many_changed_files_take_little_time_and_memory() -> None:
    program = f"""
import pathlib, resource, runpy
from bpe.pretokenizing import user_patterns
user_patterns._SECONDS = 0.2
resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
runpy.run_path({__file__!r})["explore"](2000)
# `ru_maxrss` would begin with the memory of the process that starts this one.
status = pathlib.Path("/proc/self/status").read_text()
print(status.partition("VmHWM:")[2].split()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) < 1 << 20
