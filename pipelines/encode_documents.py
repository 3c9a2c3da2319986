"""Encode a corpus: units of the plan in, Arrow shards of token ids and their sidecars out.

    unit (JSON) ─ EncodeUnit ─► OUTPUT/shard-UUUUU-PPP.arrow, its sidecar, rejects; sidecars (JSON)

One fused step does all the work of a unit, so that no payload ever crosses the runner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from bpe.cut_points import CutFinder
from bpe.errors import BpeError, SettingsError
from bpe.schemes import get_scheme
from bpe.tokenizer import Tokenizer
from pipelines.inputs import ReadOptions
from pipelines.output_files import join
from pipelines.plan import Unit
from pipelines.progress import ProgressReporter
from pipelines.read_documents import read_unit
from pipelines.rejects import Rejects
from pipelines.settings import digest_of, reading_settings
from pipelines.special_text import refuse_special_text
from pipelines.token_rows import RowMaker
from pipelines.tokenizer_files import TOKENIZER_FOLDER, cached_tokenizer
from pipelines.worker_errors import reported_errors
from pipelines.write_shards import ShardWriter
from schemas.token_shards import token_shard_schema

__all__ = ["EncodeDocuments", "EncodeSettings"]


@dataclass(frozen=True)
class EncodeSettings:
    """What decides the shards, besides the input itself.

    Attributes:
        tokenizer_digest: of the tokenizer in OUTPUT/tokenizer.
        read: how the input files are read.
        bos: id put before each document, or None.
        eos: id put after each document, or None.
        special_text: what special tokens in the text mean: `text`, `allow` or `reject`.
        shard_bytes: a shard closes once it holds so many bytes of text.
        max_row_tokens: most ids in a row.
    """

    tokenizer_digest: str
    read: ReadOptions
    bos: int | None = None
    eos: int | None = None
    special_text: str = "text"
    shard_bytes: int = 256 << 20
    max_row_tokens: int = 1 << 24

    def __post_init__(self) -> None:
        if self.max_row_tokens < 1:
            raise SettingsError(f"--max-row-tokens {self.max_row_tokens}: at least 1 is needed")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for digests, manifests and comparison."""
        return {
            "tokenizer_digest": self.tokenizer_digest,
            "bos": self.bos,
            "eos": self.eos,
            "special_text": self.special_text,
            "shard_bytes": self.shard_bytes,
            "max_row_tokens": self.max_row_tokens,
            **reading_settings(self.read),
        }

    @property
    def digest(self) -> str:
        """SHA-256 over `to_dict()`; a sidecar with another one belongs to another run."""
        return digest_of(self.to_dict())


class EncodeDocuments(beam.PTransform):
    """Encodes the documents that the plan's units hold into Arrow shards.

    Input: units as JSON (bytes), see `pipelines.plan.Unit`. Output: one sidecar (JSON, bytes) per
    shard, as it was written beside the shard. The shards are files; see `schemas.token_shards` for
    their columns and `pipelines.write_shards` for their names. Running a unit twice leaves the same
    files.

    The lines around it, with `units` as `CountWords` shows them; without the first and the last
    the folder is no finished output, and `beam-bpe verify` and `head` refuse it (the docstring of
    `pipelines` also goes on with what an interrupted run left):

        begin_run("enc", encoding, plan, overwrite=False)
        save_copy(tokenizer, "tok/350", "enc/tokenizer")
        with beam.Pipeline() as pipeline:
            pipeline | beam.Create(units) | EncodeDocuments("enc", encoding)
        backend = get_backend().name
        write_manifest("enc", encoding, plan, code_version=code_version(), backend=backend)

    Args:
        output: folder of the shards; `OUTPUT/tokenizer` must hold the tokenizer
            (`pipelines.tokenizer_files.save_copy`).
        settings: what decides the shards.
        progress_folder: from `pipelines.progress.show_progress`; "" to report no progress.
    """

    def __init__(self, output: str, settings: EncodeSettings, *, progress_folder: str = "") -> None:
        super().__init__()
        self._encode = _EncodeUnit(output, settings, progress_folder)

    def expand(self, units: beam.PCollection[bytes]) -> beam.PCollection[bytes]:
        """Apply to a PCollection of units."""
        return units | "EncodeUnit" >> beam.ParDo(self._encode).with_output_types(bytes)


class _EncodeUnit(beam.DoFn):
    """Reads, encodes and writes one unit; the sidecars are its output."""

    def __init__(self, output: str, settings: EncodeSettings, progress_folder: str) -> None:
        self._output = output
        self._settings = settings
        self._progress_folder = progress_folder

    def process(self, element: bytes) -> Iterator[bytes]:
        """Encode one unit; everything happens here, never in `finish_bundle` (Dask drops that)."""
        with reported_errors():
            yield from self._encode(Unit.from_json(element))

    def _encode(self, unit: Unit) -> list[bytes]:
        settings = self._settings
        folder = join(self._output, TOKENIZER_FOLDER)
        tokenizer = cached_tokenizer(folder, settings.tokenizer_digest)
        schema = token_shard_schema(tokenizer.max_id)
        rows = RowMaker(
            schema,
            list(dict.fromkeys(part.file.source for part in unit.ranges)),
            bos=settings.bos,
            eos=settings.eos,
            max_row_tokens=settings.max_row_tokens,
        )
        finder = _cut_finder(tokenizer, settings.special_text)
        special_hits: Counter[str] = Counter()
        rejects = Rejects(unit, settings.read)
        progress = ProgressReporter(self._progress_folder)
        with ShardWriter(self._output, unit, schema, settings) as writer:
            for pieces in read_unit(unit, settings.read, finder, rejects):
                ids = _encode_batch(tokenizer, pieces, settings.special_text, unit)
                special_hits.update(tokenizer.specials.count(pieces["text"]))
                writer.write(rows.make(pieces, ids))
                progress.add(pieces["text"].nbytes)
            return writer.finish(rejects, special_hits)


def _cut_finder(tokenizer: Tokenizer, special_text: str) -> CutFinder:
    specials = [token.encode() for token in tokenizer.special_tokens]
    # Normalization may join what stands on the two sides of a cut.
    scheme = tokenizer.scheme if tokenizer.normalizer is None else get_scheme("none")
    return CutFinder(scheme, specials, special_text=special_text)


def _encode_batch(tokenizer: Tokenizer, pieces: Any, special_text: str, unit: Unit) -> Any:
    try:
        return tokenizer.encode_batch(pieces["text"], special_text=special_text)
    except BpeError as error:
        if special_text == "reject":
            refuse_special_text(tokenizer.specials, pieces, unit)
        first, last = pieces["document_id"][0], pieces["document_id"][-1]
        raise type(error)(f"{pieces['source'][0]}, documents {first} to {last}: {error}") from error
