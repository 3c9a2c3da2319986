"""Fixtures of the pipeline tests: the command run in this process or in one of its own."""

from __future__ import annotations

import copy
import gettext
import hashlib
import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

from bpe.tokenizer import Tokenizer
from pipelines.cli import argument_types, command_line
from pipelines.shards.manifest import add_up
from pipelines.shards.shard_files import ShardFacts
from schemas.sidecars import Manifest, ShardSidecar
from schemas.token_shards import token_shard_schema, token_type

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def tiny_cuts() -> Iterator[None]:
    """Small inputs are cut into many ranges here, which the command refuses otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argument_types, "LEAST_CUT_SIZE", 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def remembered_lookups() -> Iterator[None]:
    """Remember what Beam looks up anew for each of thousands of jobs; half of a small job.

    It parses the same options some hundred times, each time with a parser made anew, and takes
    the signatures of the same functions.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gettext, "find", lru_cache(4096)(gettext.find))
        patch.setattr(core, "get_signature", lru_cache(4096)(core.get_signature))
        patch.setattr(PipelineOptions, "__init__", _remember_options(PipelineOptions.__init__))
        yield


def _remember_options(plain: Callable[..., None]) -> Callable[..., None]:
    """The constructor of Beam's options, which parses given flags once for each class."""
    parsed: dict[tuple[type, tuple[str, ...]], Namespace] = {}

    def construct(self: Any, flags: list[str] | None = None, **kwargs: object) -> None:
        if flags is None or isinstance(flags, str) or kwargs:
            plain(self, flags, **kwargs)
            return
        key = type(self), tuple(flags)
        if key not in parsed:
            plain(self, flags)
            parsed[key] = copy.deepcopy(self._visible_options)
        self._flags = flags
        self._visible_options = copy.deepcopy(parsed[key])
        self._all_options = dict(vars(self._visible_options))

    return construct


@dataclass(frozen=True)
class Outcome:
    """What a command printed and returned."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `beam-bpe ARGUMENTS` in this process."""

    def run_here(*arguments: object) -> Outcome:
        capfd.readouterr()
        try:
            code = command_line.main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run_here


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Starts `beam-bpe ARGUMENTS` as a process of its own.

    Every output file takes `seconds_per_rename` to get its final name, in its workers too.
    """

    def start_process(
        *arguments: object, seconds_per_rename: float = 0, new_session: bool = False
    ) -> subprocess.Popen[str]:
        slow = [str(ROOT / "tests/pipelines/slow_disk")] if seconds_per_rename else []
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines", *map(str, arguments)],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*slow, str(ROOT)]),
                "SECONDS_PER_RENAME": str(seconds_per_rename),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=new_session,
            # Shells have what they start in the background ignore Ctrl-C, and so do these tests.
            preexec_fn=_hear_interrupts,  # noqa: PLW1509 - it calls nothing that locks
        )

    return start_process


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def tiny(data_dir: Path) -> Path:
    """A small English text, 1,115,394 bytes."""
    return data_dir / "tiny_shakespeare.txt"


@pytest.fixture
def small(tiny: Path, tmp_path: Path) -> Path:
    """The first 40,000 bytes of it, in a file that the test may change."""
    path = tmp_path / "small.txt"
    path.write_bytes(tiny.read_bytes()[:40_000])
    return path


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tokenizer with one special token, as a model directory."""
    merges = [(b" ", b"t"), (b"h", b"e"), (b" t", b"he"), (b"a", b"n"), (b"an", b"d")]
    tokenizer = Tokenizer.from_merges(merges, pretokenizer="gpt2", special_tokens=["<|endoftext|>"])
    directory = tmp_path_factory.mktemp("tokenizer") / "model"
    tokenizer.save(directory)
    return directory


@pytest.fixture
def tree_bytes() -> Callable[[Path], dict[str, bytes]]:
    """Reads all files below a folder: relative name to content."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return read


Row = tuple[list[int], str, int, bool]
"""Of a made shard: ids, document id, part, is_last."""


@pytest.fixture(scope="session")
def make_folder() -> Callable[..., Path]:
    """Makes a finished folder with given rows, shards and batches, as encode would have."""

    def make(folder: Path, shards: list[list[list[Row]]], *, largest: int = 300) -> Path:
        folder.mkdir(parents=True)
        sidecars = [
            _write_shard(folder, index, batches, largest) for index, batches in enumerate(shards)
        ]
        manifest = Manifest(
            code_version="0",
            backend="python",
            tokenizer_digest="0123456789abcdef" * 4,
            settings={"bos": None, "eos": None},
            settings_digest="",
            plan_digest="",
            inputs=[],
            listing={},
            totals=add_up(sidecars),
            shards=sidecars,
        )
        (folder / "__beam-bpe__").mkdir()
        (folder / "__beam-bpe__/manifest.json").write_bytes(msgspec.json.encode(manifest))
        return folder

    return make


@pytest.fixture(scope="session")
def lay_out() -> Callable[[list[list[list[int]]], list[int]], list[list[list[Row]]]]:
    """Lays documents, given as rows, out in shards and batches for `make_folder`."""
    return _lay_out


def _lay_out(documents: list[list[list[int]]], cuts: list[int]) -> list[list[list[Row]]]:
    """Rows of documents, with a batch (1) or a shard (2) ending after the rows that cuts name."""
    rows = [
        (ids, f"0:{number}", part, part == len(document) - 1)
        for number, document in enumerate(documents)
        for part, ids in enumerate(document)
    ]
    shards: list[list[list[Row]]] = [[[]]]
    for place, row in enumerate(rows):
        shards[-1][-1].append(row)
        cut = cuts[place % len(cuts)]
        if cut == 1:
            shards[-1].append([])
        elif cut == 2:
            shards.append([[]])
    return shards


def _write_shard(folder: Path, index: int, batches: list[list[Row]], largest: int) -> ShardSidecar:
    schema = token_shard_schema(token_type(largest))
    path = folder / f"shard-{index:05d}-000.arrow"
    facts = ShardFacts()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for rows in batches:
            ids, names, parts, lasts = zip(*rows, strict=True) if rows else ([], [], [], [])
            columns = [
                pa.array(ids, schema.field("input_ids").type),
                pa.array(names, pa.string()),
                pa.DictionaryArray.from_arrays(
                    pa.array([0] * len(ids), pa.int32()), pa.array(["a.txt"])
                ),
                pa.array(range(len(ids)), pa.int64()),
                pa.array(parts, pa.int32()),
                pa.array(lasts, pa.bool_()),
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            writer.write_batch(batch)
            facts.add(batch)
    content = path.read_bytes()
    return ShardSidecar(
        file=path.name,
        split="",
        unit=index,
        part=0,
        bytes=facts.tokens,
        file_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        settings_digest="",
        inputs=[],
        **vars(facts),
    )


@pytest.fixture(scope="session")
def token_folder(tiny: Path, model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Encoded shards: a text over several of them, a row over several rows, empty documents."""
    corpus = tmp_path_factory.mktemp("corpus")
    text = tiny.read_bytes()
    (corpus / "a.txt").write_bytes(text[:30_000])
    lines = [*text[30_000:34_000].decode().split("\n"), text[34_000:52_000].decode(), "end", ""]
    (corpus / "b.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    folder = tmp_path_factory.mktemp("tokens") / "out"
    code = command_line.main(
        [
            *("encode", "--input", str(corpus), "--tokenizer", str(model_dir)),
            *("--output", str(folder), "--range-bytes", "6000", "--shard-bytes", "2000"),
            *("--max-row-tokens", "6002"),
        ]
    )
    assert code == 0
    return folder


@pytest.fixture(scope="session")
def read_documents() -> Callable[[Path], list[list[int]]]:
    """Reads the documents of a folder of shards by nothing but Arrow."""

    def read(folder: Path) -> list[list[int]]:
        documents: list[list[int]] = [[]]
        for path in sorted(folder.glob("shard-*.arrow")):
            with pa.memory_map(str(path)) as file:
                for row in pa.ipc.open_file(file).read_all().to_pylist():
                    documents[-1] += row["input_ids"]
                    if row["is_last"]:
                        documents.append([])
        assert documents.pop() == []
        return documents

    return read
