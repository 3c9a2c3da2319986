"""Count pre-tokens over a corpus: units of the plan in, one summed table per bucket out.

    unit (JSON) ─ CountUnit ─► (bucket, Arrow IPC) ─ SumCounts per key ─► (bucket, Arrow IPC)
                                                   ─ WriteCountTable ───► OUTPUT/bucket-BBBBB.arrow

A worker counts a whole unit natively and emits, per hash bucket, one Arrow batch of its distinct
pre-tokens; adding batches is a native group-by. No word ever becomes a Python object.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe.backends.process_memory import give_back_memory
from bpe.count_sums import add_tables
from bpe.counting import count_pretokens
from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import BpeError, SettingsError
from bpe.pretokenizing.cut_points import CutFinder
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import ReadOptions
from pipelines.corpus.plan import Unit
from pipelines.corpus.read_documents import KEPT_BYTES, read_unit
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.special_text import refuse_special_text
from pipelines.corpus.unit_reports import REPORT_FOLDER, UnitReport, occurrences_in
from pipelines.runners.beam_flush_patch import send_without_timer
from pipelines.runners.progress import ProgressReporter
from pipelines.runners.worker_errors import reported_errors
from pipelines.storage.output_files import join, write_atomically
from pipelines.storage.output_names import bucket_file_name
from pipelines.training.count_tables import from_ipc, split_by_bucket, to_ipc
from pipelines.training.first_positions import CorpusPositions

__all__ = ["CountSettings", "CountWords", "SumCounts", "WriteCountTable"]

# A unit's tables are added whenever they have grown to this; sums over it are emitted at once.
_TABLE_BYTES = 64 << 20


@dataclass(frozen=True)
class CountSettings:
    """What decides the counts, besides the input itself.

    Attributes:
        pretokenizer: a scheme of `bpe.pretokenizing.schemes`, or `regex:PATTERN`.
        first_positions: keep where each word first occurs (for the tie order `first`).
        special_text: what special tokens in the text mean: `text`, `allow` or `reject`.
        special_tokens: the special tokens, whose occurrences in the text are counted apart.
    """

    pretokenizer: str
    first_positions: bool = False
    special_text: str = "text"
    special_tokens: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the manifest and for comparison."""
        return {
            "pretokenizer": self.pretokenizer,
            "first_positions": self.first_positions,
            "special_text": self.special_text,
            "special_tokens": list(self.acting_tokens),
        }

    @property
    def acting_tokens(self) -> tuple[str, ...]:
        """The special tokens on which the counts depend: none where their text is mere text."""
        return () if self.special_text == "text" else self.special_tokens

    def specials(self) -> SpecialTokens:
        """The special tokens with the rule that finds them in documents."""
        return SpecialTokens({token: index for index, token in enumerate(self.special_tokens)})


class CountWords(beam.PTransform):
    """Counts the pre-tokens of the documents that the plan's units hold.

    Input: units as JSON (bytes), see `pipelines.corpus.plan.Unit`. Output: `(bucket, table)` with
    one element per non-empty hash bucket; the table is an Arrow IPC stream of
    `schemas.word_counts`, sorted by word, counts int64.

    The lines around it (`examples/own_pipeline.py` is the whole program):

        plan = make_plan(list_inputs(["corpus"], read), read)
        units = [unit.to_json().encode() for unit in plan.units]
        with beam.Pipeline() as pipeline:
            tables = pipeline | beam.Create(units) | CountWords(CountSettings("gpt2"), read)

    Args:
        settings: how to split and count.
        read: how the input files are read.
        buckets: number of hash buckets, at least 1; spreads the adding and bounds a table's size.
        output: folder of the count table, where each unit's totals
            (`_temporary/unit-UUUUU.json`) and rejected rows (`rejects/unit-UUUUU.jsonl`) are
            written; "" for nowhere.
        progress_folder: from `pipelines.runners.progress.show_progress`; "" to report no progress.

    Raises:
        SettingsError: when constructed with a scheme that does not exist or fewer than one bucket.
        VocabularyError: when constructed with a special token that cannot be one.
    """

    def __init__(
        self,
        settings: CountSettings,
        read: ReadOptions,
        *,
        buckets: int = 16,
        output: str | os.PathLike[str] = "",
        progress_folder: str = "",
    ) -> None:
        super().__init__()
        get_scheme(settings.pretokenizer)
        settings.specials()
        if buckets < 1:
            raise SettingsError(f"buckets={buckets}: at least one is needed")
        self._count = _CountUnit(settings, read, buckets, os.fspath(output), progress_folder)

    def expand(self, units: beam.PCollection[bytes]) -> beam.PCollection[tuple[int, bytes]]:
        """Apply to a PCollection of units."""
        # Whoever runs this, counts go through the runner: see there what it would lose.
        send_without_timer()
        return (
            units
            | "CountUnit" >> beam.ParDo(self._count).with_output_types(tuple[int, bytes])
            | "SumCounts" >> beam.CombinePerKey(SumCounts())
        )


class _CountUnit(beam.DoFn):
    """Reads a unit and emits its counts, one Arrow batch per bucket."""

    def __init__(
        self,
        settings: CountSettings,
        read: ReadOptions,
        buckets: int,
        output: str,
        progress_folder: str,
    ) -> None:
        self._settings = settings
        self._read = read
        self._buckets = buckets
        self._output = output
        self._progress_folder = progress_folder

    def process(self, element: bytes) -> Iterator[tuple[int, bytes]]:
        """Count one unit; emission happens here, never in `finish_bundle` (Dask drops that)."""
        with reported_errors() as work:
            unit = Unit.from_json(element)
            work.name = unit.describe()
            yield from self._count(unit)
            give_back_memory(keep_bytes=KEPT_BYTES)

    def _count(self, unit: Unit) -> Iterator[tuple[int, bytes]]:
        settings = self._settings
        specials = settings.specials()
        finder = CutFinder(
            get_scheme(settings.pretokenizer),
            [token.encode() for token in settings.special_tokens],
            special_text=settings.special_text,
        )
        rejects = Rejects(unit, self._read)
        progress = ProgressReporter(self._progress_folder)
        positions = CorpusPositions(unit)
        report = UnitReport.start()
        tables: list[pa.Table] = []
        for batch in read_unit(unit, self._read, finder, rejects):
            table = _count_batch(batch, settings, unit, positions)
            report.add(batch, specials)
            report.occurrences += occurrences_in(table)
            progress.add(batch["text"].nbytes)
            tables.append(table)
            if sum(each.nbytes for each in tables) > _TABLE_BYTES:
                tables = [add_tables(tables)]
            if tables[0].nbytes > _TABLE_BYTES:
                yield from self._emit(tables.pop())
        if tables:
            yield from self._emit(add_tables(tables))
        if self._output:
            rejects.write(self._output)
            report.take(rejects)
            report.write(join(self._output, REPORT_FOLDER), unit.index)

    def _emit(self, table: pa.Table) -> Iterator[tuple[int, bytes]]:
        for bucket, rows in split_by_bucket(table, self._buckets):
            yield bucket, to_ipc(rows)


def _count_batch(
    batch: pa.RecordBatch, settings: CountSettings, unit: Unit, positions: CorpusPositions
) -> pa.Table:
    try:
        table = count_pretokens(
            batch["text"],
            settings.pretokenizer,
            first_positions=settings.first_positions,
            special_text=settings.special_text,
            special_tokens=settings.acting_tokens,
        )
    except BpeError as error:
        if settings.special_text == "reject":
            refuse_special_text(settings.specials().first, batch, unit)
        sources = ", ".join(sorted({part.file.path for part in unit.ranges}))
        raise type(error)(f"{sources}: {error}") from error
    if not settings.first_positions:
        return table
    first = positions.of_batch(table["first"], batch)
    return table.set_column(table.schema.get_field_index("first"), "first", first)


class SumCounts(beam.CombineFn):
    """Adds count tables word by word.

    Input and output: Arrow IPC streams of `schemas.word_counts` (bytes). The output is sorted by
    word; where the column `first` is there, the smallest is kept.

    Raises:
        CountTableError: a sum that does not fit into int64.
    """

    def create_accumulator(self) -> list[bytes]:
        """No table yet."""
        return []

    def add_input(self, accumulator: list[bytes], element: bytes) -> list[bytes]:
        """Keep the table; add up once enough of them lie here."""
        accumulator.append(element)
        if sum(map(len, accumulator)) > 2 * max(_TABLE_BYTES, len(accumulator[0])):
            return self.compact(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[bytes]]) -> list[bytes]:
        """All tables of all accumulators, added."""
        return self.compact([each for accumulator in accumulators for each in accumulator])

    def compact(self, accumulator: list[bytes]) -> list[bytes]:
        """At most one table."""
        if len(accumulator) < 2:
            return accumulator
        with reported_errors():
            return [to_ipc(add_tables([from_ipc(each) for each in accumulator]))]

    def extract_output(self, accumulator: list[bytes]) -> bytes:
        """The one table left, sorted by word."""
        with reported_errors():
            return to_ipc(add_tables([from_ipc(each) for each in accumulator]))


class WriteCountTable(beam.PTransform):
    """Writes each bucket's table to `OUTPUT/bucket-BBBBB.arrow`.

    Input: `(bucket, table)` as `CountWords` gives it, one element per bucket. Output: the names of
    the files. A bucket written twice leaves the same file.

    Args:
        output: the folder of the count table; made if missing.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        super().__init__()
        self._output = os.fspath(output)

    def expand(self, tables: beam.PCollection[tuple[int, bytes]]) -> beam.PCollection[str]:
        """Apply to the summed buckets."""
        return tables | "WriteBucket" >> beam.ParDo(_WriteBucket(self._output)).with_output_types(
            str
        )


class _WriteBucket(beam.DoFn):
    """Writes one bucket's table as an Arrow IPC file."""

    def __init__(self, output: str) -> None:
        self._output = output

    def process(self, element: tuple[int, bytes]) -> Iterator[str]:
        """Write one bucket and name its file."""
        bucket, data = element
        name = bucket_file_name(bucket)
        table = from_ipc(data)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        with reported_errors():
            write_atomically(self._output, name, bytes(sink.getvalue()))
        yield name
