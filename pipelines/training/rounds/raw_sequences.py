"""Raw text as sequences: ranges that no merge leaves, in the order of the corpus.

A sequence is a document; with `--special-text=allow` what lies between special tokens; in a sample
of files that are one document, a block. Readers give pieces of documents, and a sequence may go on
from one batch to the next, and from one unit to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.special_tokens import SpecialTokens
from bpe.pretokenizing.schemes import get_scheme
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import Unit
from pipelines.corpus.read_documents import read_unit
from pipelines.corpus.read_options import ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.special_text import refuse_special_text
from pipelines.corpus.unit_reports import UnitReport
from pipelines.training.rounds.anywhere_cuts import OpenCutFinder
from pipelines.training.rounds.options import BLOCK_BYTES, Sample
from pipelines.training.rounds.sample import in_sample

__all__ = ["RawReading", "RawSequences", "read_sequences"]

_Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
# Longer than any file.
_WHOLE = 1 << 62


@dataclass(frozen=True)
class RawSequences:
    """Some text of sequences, in order.

    Attributes:
        content: uint8, the bytes of all ranges and of what lies between them.
        starts, ends: int64, where each range lies in `content`.
        joins: of each, whether it goes on in the sequence of the one before; of the first, in the
            last one of the `RawSequences` before these.
        is_open: whether the last one may go on in what follows.
    """

    content: npt.NDArray[np.uint8]
    starts: _Positions
    ends: _Positions
    joins: _Flags
    is_open: bool


@dataclass(frozen=True)
class RawReading:
    """How text becomes sequences.

    Attributes:
        read: how files are read.
        special_tokens: the special tokens.
        special_text: what their text means; `allow` ends sequences.
        sample: which part of the corpus to keep.
    """

    read: ReadOptions
    special_tokens: tuple[str, ...]
    special_text: str
    sample: Sample


def read_sequences(
    unit: Unit, how: RawReading, rejects: Rejects, report: UnitReport
) -> Iterator[RawSequences]:
    """Read a unit's text as sequences.

    Args:
        unit: from the plan.
        how: to read.
        rejects: takes bad rows and files, and counts.
        report: counts what is read, sampled or not, and what is kept.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop.
        InputError: a special token in a document where the policy is to reject.
    """
    specials = SpecialTokens({token: index for index, token in enumerate(how.special_tokens)})
    tokens = [token.encode() for token in how.special_tokens]
    finder = OpenCutFinder(get_scheme("none"), tokens, special_text=how.special_text)
    files = {part.file.source: part.file for part in unit.ranges}
    cutter = _Sequencer(
        specials if how.special_text == "allow" else None,
        how.sample,
        files,
        separated=how.read.document_separator is not None,
    )
    for batch in read_unit(unit, how.read, finder, rejects):
        if how.special_text == "reject":
            refuse_special_text(specials.first, batch, unit)
        report.add(batch, specials)
        found = cutter.cut(batch)
        report.kept_bytes += int((found.ends - found.starts).sum())
        yield found


class _Sequencer:
    """Cuts batches of one unit into sequences; remembers how the last batch ended."""

    def __init__(
        self,
        specials: SpecialTokens | None,
        sample: Sample,
        files: Mapping[str, InputFile],
        *,
        separated: bool,
    ) -> None:
        self._specials = specials
        self._sample = sample
        sources = sorted(files)
        self._sources = pa.array(sources, pa.string())
        self._indexes = np.array([files[source].index for source in sources], np.int64)
        # Files that are one document each are sampled in blocks.
        self._in_blocks = np.array(
            [files[source].format == "text" and not separated for source in sources], np.bool_
        )
        # Whether the last sequence ended with a special token although its document goes on.
        self._was_cut = False
        # Whether the document in hand, which may go on in the next batch, is in the sample.
        self._was_kept = True

    def cut(self, batch: pa.RecordBatch) -> RawSequences:
        """The ranges of a batch of `schemas.documents.DOCUMENT_PIECES`."""
        text = batch["text"]
        offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :][: len(text) + 1]
        data = text.buffers()[2]
        content = np.frombuffer(data if data is not None else b"", np.uint8)
        found = _Intervals(
            np.arange(len(text)), offsets[:-1], offsets[1:], ~_flags(batch["is_first"])
        )
        if self._specials is not None:
            found = self._take_out_specials(self._specials, text, found)
        is_open = not batch["is_last"][-1].as_py() and not self._was_cut
        if self._sample.share < 1:
            found, last_kept = self._take_sample(batch, offsets, found)
            is_open = is_open and last_kept
        return RawSequences(content, found.starts, found.ends, found.joins, is_open)

    def _take_out_specials(
        self, specials: SpecialTokens, text: pa.LargeBinaryArray, found: _Intervals
    ) -> _Intervals:
        """What lies between special tokens; rows without any stay as they are."""
        hits = set(specials.rows_with_hits(text))
        if not hits and not self._was_cut:
            return found
        pieces: list[tuple[int, int, int, bool]] = []
        rows = zip(*(each.tolist() for each in found), strict=True)
        for row, start, end, joins in rows:
            joined = joins and not self._was_cut
            self._was_cut = False
            if row not in hits:
                pieces.append((row, start, end, joined))
                continue
            for first, last, token in specials.split(text[row].as_py()):
                self._was_cut = token is not None
                if token is None:
                    pieces.append((row, start + first, start + last, joined))
                joined = False
        columns = np.array(pieces, np.int64).reshape(-1, 4).T
        return _Intervals(columns[0], columns[1], columns[2], columns[3].astype(np.bool_))

    def _take_sample(
        self, batch: pa.RecordBatch, offsets: _Positions, found: _Intervals
    ) -> tuple[_Intervals, bool]:
        """What is in the sample; and whether the end of the batch is, and in midst of a block."""
        source = pc.index_in(batch["source"].cast(pa.string()), self._sources).to_numpy()
        files, in_blocks = self._indexes[source], self._in_blocks[source]
        begins = batch["byte_start"].to_numpy()
        kept = self._kept_documents(batch, files, begins) | in_blocks
        found = found.take(np.flatnonzero(kept[found.rows]))
        # A document that is not sampled in blocks is one block.
        length = np.where(in_blocks[found.rows], BLOCK_BYTES, _WHOLE)
        shift = begins[found.rows] - offsets[found.rows]
        first = (found.starts + shift) // length
        last = np.maximum(found.ends + shift - 1, found.starts + shift) // length
        blocks = np.repeat(np.arange(len(first)), last - first + 1)
        number = np.arange(len(blocks)) - np.repeat(np.cumsum(last - first + 1), last - first + 1)
        number = number + last[blocks] + 1
        at, size = number * length[blocks], length[blocks]
        starts = np.maximum(found.starts[blocks], at - shift[blocks])
        ends = np.minimum(found.ends[blocks], at + size - shift[blocks])
        goes_on = (number == first[blocks]) & (found.starts + shift != first * length)[blocks]
        whole = _Intervals(found.rows[blocks], starts, ends, found.joins[blocks] & goes_on)
        chosen = ~in_blocks[whole.rows] | in_sample(self._sample, files[whole.rows], at)
        end = int(begins[-1] + offsets[-1] - offsets[-2])
        if not in_blocks[-1]:
            return whole.take(np.flatnonzero(chosen)), bool(kept[-1])
        inside = end % BLOCK_BYTES != 0
        last_block = np.array([end // BLOCK_BYTES * BLOCK_BYTES])
        end_kept = inside and bool(in_sample(self._sample, files[-1:], last_block)[0])
        return whole.take(np.flatnonzero(chosen)), end_kept

    def _kept_documents(
        self, batch: pa.RecordBatch, files: _Positions, begins: _Positions
    ) -> _Flags:
        """Of each row, whether its document is in the sample; rows may go on in a document."""
        first = _flags(batch["is_first"])
        kept = np.concatenate([[self._was_kept], in_sample(self._sample, files, begins)])
        # Each row's document starts in the last row before it, or in it, that is a first one.
        kept = kept[np.maximum.accumulate(np.where(first, np.arange(1, len(first) + 1), 0))]
        self._was_kept = bool(kept[-1])
        return kept


class _Intervals(NamedTuple):
    """Ranges of rows: the row of each, where it lies in the content, whether it goes on."""

    rows: _Positions
    starts: _Positions
    ends: _Positions
    joins: _Flags

    def take(self, chosen: _Positions) -> _Intervals:
        """Some of them."""
        return _Intervals(
            self.rows[chosen], self.starts[chosen], self.ends[chosen], self.joins[chosen]
        )


def _flags(array: pa.BooleanArray) -> _Flags:
    values: _Flags = array.to_numpy(zero_copy_only=False)
    return values
