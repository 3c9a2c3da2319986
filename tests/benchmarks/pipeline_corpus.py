"""Corpora of any size for the benchmarks of `beam-bpe encode`, in every format.

The paragraphs of en200, in another random order for each 200 MB, in files of 50 MB of text: `text`
(a document a file), and a paragraph a row with its number as id: `jsonl`, `jsonl.zst`, `parquet`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from encoder_peers import prepare_corpus

KINDS = ("text", "jsonl", "jsonl.zst", "parquet")
FILE_BYTES = 50_000_000
ROW_GROUP_ROWS = 20_000


@dataclass(frozen=True)
class Corpus:
    """Files of one format.

    Attributes:
        kind: the format.
        folder: of the files.
        text_bytes: of all documents.
        documents: how many there are.
    """

    kind: str
    folder: Path
    text_bytes: int
    documents: int

    @property
    def files(self) -> list[Path]:
        """The files, in order."""
        return sorted(self.folder.iterdir())


class CorpusMaker:
    """Makes corpora below a folder.

    Args:
        folder: for the corpora; en200 is unpacked there too.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    @cached_property
    def _paragraphs(self) -> pa.LargeBinaryArray:
        data = prepare_corpus("en200", self._folder).read_bytes()
        found = re.split(rb"(?:\r?\n){2,}", data)
        return pa.array([each for each in found if each.strip()], pa.large_binary())

    def make(self, kind: str, megabytes: int) -> Corpus:
        """Write a corpus of so much text, unless it is there.

        Args:
            kind: one of `KINDS`.
            megabytes: of text; the corpus ends with the paragraph that reaches it.
        """
        folder = self._folder / f"{kind}-{megabytes}"
        record = self._folder / f"{kind}-{megabytes}.json"
        if not record.exists():
            folder.mkdir(exist_ok=True)
            sizes = [0, 0]
            for number, (texts, first) in enumerate(self._files(megabytes * 1_000_000)):
                _write(kind, folder / f"{number:04d}.{_SUFFIX.get(kind, kind)}", texts, first)
                sizes[0] += pc.sum(pc.binary_length(texts)).as_py()
                sizes[0] += (2 * len(texts) - 2) * (kind == "text")
                sizes[1] += 1 if kind == "text" else len(texts)
            record.write_bytes(msgspec.json.encode(sizes))
        text_bytes, documents = msgspec.json.decode(record.read_bytes())
        return Corpus(kind, folder, text_bytes, documents)

    def _files(self, size: int) -> Iterator[tuple[pa.LargeBinaryArray, int]]:
        """The paragraphs of each file, and the number of the first."""
        done = written = 0
        seed = 0
        while done < size:
            order = np.random.default_rng(seed).permutation(len(self._paragraphs))
            shuffled = self._paragraphs.take(pa.array(order))
            ends = np.cumsum(pc.binary_length(shuffled).to_numpy())
            start = 0
            while start < len(order) and done < size:
                before = int(ends[start - 1]) if start else 0
                room = min(FILE_BYTES, size - done)
                end = min(len(order), int(np.searchsorted(ends, before + room)) + 1)
                part = shuffled.take(pa.array(np.arange(start, end)))
                yield part, written
                done += int(ends[end - 1]) - before
                written += end - start
                start = end
            seed += 1


_SUFFIX = {"text": "txt"}


def _write(kind: str, path: Path, texts: pa.LargeBinaryArray, first: int) -> None:
    if kind == "text":
        path.write_bytes(b"\n\n".join(texts.to_pylist()))
        return
    ids = range(first, first + len(texts))
    if kind == "parquet":
        table = pa.table({"id": pa.array(ids), "text": texts.cast(pa.large_string())})
        pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS)
        return
    rows = zip(ids, texts.cast(pa.large_string()).to_pylist(), strict=True)
    lines = msgspec.json.Encoder().encode_lines({"id": id_, "text": text} for id_, text in rows)
    path.write_bytes(zstandard.compress(lines) if kind == "jsonl.zst" else lines)
