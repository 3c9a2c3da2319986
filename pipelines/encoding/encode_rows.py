"""Encode the documents of any pipeline: rows in, Arrow batches of ids out.

    bytes, str, mapping, object with fields, list, Arrow batch ─ EncodeToBatches ─► pa.RecordBatch

Nothing is read or written; for shards with a manifest, see `pipelines.encoding.encode_documents`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils.windowed_value import WindowedValue

from bpe.encoding.id_arrays import binary_array
from bpe.errors import BadRecordError, BpeError, InputError, SettingsError
from bpe.pretokenizing.utf8_text import utf8_bytes
from bpe.tokenizer import Tokenizer
from pipelines.runners.beam_flush_patch import send_without_timer
from pipelines.runners.job_metrics import count_documents
from pipelines.runners.worker_errors import reported_errors
from pipelines.shards.token_rows import with_marks
from pipelines.shards.tokenizer_files import as_tokenizer, cached_tokenizer
from schemas.encoded_batches import encoded_batch_schema

__all__ = ["EncodeToBatches"]

_SHOWN_CHARACTERS = 60
# What a row weighs besides its text: empty ones fill a batch too.
_ROW_BYTES = 16
_TEXT_TYPES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


class EncodeToBatches(beam.PTransform):
    """Encodes documents into Arrow batches of `schemas.encoded_batches`.

    Input: a PCollection of rows. A row is the text itself (bytes, or str), or holds it: a mapping,
    a NamedTuple, a `beam.Row` or a dataclass. An element may also hold many rows: a
    `pa.RecordBatch` or `pa.Table` with a column of text; or texts without ids, as a list of str and
    bytes or an Arrow array. Output: `pa.RecordBatch`. Rows keep no order, as in any PCollection;
    give them ids to know them again. An element of many rows is a batch out; other rows are
    gathered until they hold `batch_bytes` of text.

        with beam.Pipeline() as pipeline:
            (
                pipeline
                | beam.Create([{"id": "a", "text": "low lower"}])
                | EncodeToBatches("tok/350")
                | beam.Map(lambda batch: print(batch.to_pylist()))
            )

    Args:
        tokenizer: a `Tokenizer`; or the path of whatever `Tokenizer.load` takes, or of a model
            directory on any file system. Workers read a model directory themselves.
        text: name of the field or column with the text.
        id: name of the field or column with the document's id (string or integer); rows without one
            have none.
        bos: id or special token put before each document; None for nothing.
        eos: id or special token put after each document; None for nothing.
        special_text: what special tokens in the text mean: `text`, `allow` or `reject`.
        batch_bytes: of text in a batch. Beam's Dask runner drops what a transform gives at the end
            of a bundle; there each row is a batch of its own, so hand over Arrow batches.

    Raises:
        SettingsError: when constructed with a value that cannot be honoured; an `InputError` for a
            token that is not there, a `ModelFileError` for a folder that holds no tokenizer.
        BadRecordError: a row without text, or of no kind named above; on the workers, from where
            it comes as whatever the runner makes of errors there, with this one's text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        text: str = "text",
        id: str = "id",  # noqa: A002 - what the field is called nearly everywhere
        bos: int | str | None = None,
        eos: int | str | None = None,
        special_text: str = "text",
        batch_bytes: int = 4 << 20,
    ) -> None:
        super().__init__()
        if special_text not in {"text", "allow", "reject"}:
            raise SettingsError(f"special_text={special_text!r}: is none of text, allow, reject")
        if batch_bytes < 1:
            raise SettingsError(f"batch_bytes={batch_bytes}: at least 1 is needed")
        loaded = as_tokenizer(tokenizer)
        # Workers load a directory once per process, wherever it lies.
        source: Tokenizer | tuple[str, str] = loaded
        if not isinstance(tokenizer, Tokenizer) and loaded.directory is not None:
            source = (os.fspath(tokenizer), loaded.digest)
        marks = tuple(None if mark is None else loaded.token_id(mark) for mark in (bos, eos))
        self._batch_bytes = batch_bytes
        self._encode = _EncodeRows(
            source, text=text, id_=id, bos=marks[0], eos=marks[1], special_text=special_text
        )

    def expand(self, rows: beam.PCollection[Any]) -> beam.PCollection[pa.RecordBatch]:
        """Apply to a PCollection of rows."""
        send_without_timer()
        drops_rest = type(rows.pipeline.runner).__name__ == "DaskRunner"
        self._encode.batch_bytes = 0 if drops_rest else self._batch_bytes
        return rows | "EncodeRows" >> beam.ParDo(self._encode).with_output_types(pa.RecordBatch)


class _EncodeRows(beam.DoFn):
    """Gathers rows per window and encodes them together."""

    def __init__(
        self,
        source: Tokenizer | tuple[str, str],
        *,
        text: str,
        id_: str,
        bos: int | None,
        eos: int | None,
        special_text: str,
    ) -> None:
        self.batch_bytes = 0
        self._source = source
        self._text = text
        self._id = id_
        self._bos = bos
        self._eos = eos
        self._special_text = special_text
        self._waiting: dict[Any, _Waiting] = {}

    def start_bundle(self) -> None:
        """Nothing is left of a bundle that failed."""
        self._waiting = {}

    def process(
        self, element: Any, window: Any = beam.DoFn.WindowParam
    ) -> Iterator[pa.RecordBatch]:
        """Take a row; a batch comes out when there is enough."""
        with reported_errors():
            if isinstance(element, pa.RecordBatch | pa.Table):
                yield self._encode(*self._columns(element))
                return
            if isinstance(element, list | pa.Array | pa.ChunkedArray):
                yield self._encode(*_texts(element))
                return
            waiting = self._waiting.setdefault(window, _Waiting())
            waiting.add(*self._row(element))
            if waiting.size >= self.batch_bytes:
                yield self._encode(*self._waiting.pop(window).columns())

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Encode what is left of each window."""
        with reported_errors():
            for window, waiting in self._waiting.items():
                batch = self._encode(*waiting.columns())
                yield WindowedValue(batch, window.max_timestamp(), [window])
            self._waiting = {}

    def _tokenizer(self) -> Tokenizer:
        return (
            self._source if isinstance(self._source, Tokenizer) else cached_tokenizer(*self._source)
        )

    def _encode(self, texts: pa.LargeBinaryArray, ids: pa.StringArray) -> pa.RecordBatch:
        tokenizer = self._tokenizer()
        try:
            encoded = tokenizer.encode_batch(texts, special_text=self._special_text)
        except BpeError as error:
            raise type(error)(f"rows {ids[0]} to {ids[-1]}: {error}") from error
        whole = np.ones(len(texts), np.bool_)
        values, lengths = with_marks(
            encoded.flatten().to_numpy(),
            pc.list_value_length(encoded).to_numpy().astype(np.int64),
            whole,
            whole,
            bos=self._bos,
            eos=self._eos,
        )
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]))
        lists = pa.LargeListArray.from_arrays(offsets, pa.array(values))
        size = pc.sum(pc.binary_length(texts)).as_py() or 0
        count_documents(documents=len(texts), size=size, tokens=len(values))
        return pa.RecordBatch.from_arrays(
            [ids, lists], schema=encoded_batch_schema(tokenizer.id_type)
        )

    def _columns(
        self, batch: pa.RecordBatch | pa.Table
    ) -> tuple[pa.LargeBinaryArray, pa.StringArray]:
        """Text and ids of an Arrow batch."""
        if self._text not in batch.schema.names:
            raise BadRecordError(
                f"an Arrow batch has the columns {', '.join(batch.schema.names)} and no "
                f"{self._text!r}; name the column of the text with text=…"
            )
        texts = batch[self._text]
        if pa.types.is_dictionary(texts.type):
            texts = pc.cast(texts, texts.type.value_type)
        if not any(is_kind(texts.type) for is_kind in _TEXT_TYPES):
            raise BadRecordError(
                f"an Arrow batch has a column {self._text!r} of {texts.type}, which is no text"
            )
        texts = pc.cast(texts, pa.large_binary())
        if texts.null_count:
            raise BadRecordError(
                f"an Arrow batch has {texts.null_count} nulls in the column {self._text!r}; "
                "filter them out before"
            )
        ids = batch[self._id] if self._id in batch.schema.names else pa.nulls(batch.num_rows)
        return _whole(texts), _whole(pc.cast(ids, pa.string()))

    def _row(self, element: Any) -> tuple[bytes, str | None]:
        """Text and id of a row."""
        text, name = element, None
        if isinstance(element, Mapping):
            text, name = element.get(self._text), element.get(self._id)
        elif not isinstance(element, bytes | str):
            text, name = getattr(element, self._text, None), getattr(element, self._id, None)
        if isinstance(text, bytes):
            return text, None if name is None else str(name)
        if not isinstance(text, str):
            raise BadRecordError(
                f"a row holds no text in {self._text!r}: {_shown(element)}; rows are bytes or str, "
                "or hold them in the field named by text=…"
            )
        try:
            return utf8_bytes(text), None if name is None else str(name)
        except InputError as error:
            raise BadRecordError(
                f"a row's text is no valid Unicode ({error}): {_shown(element)}; pass bytes"
            ) from error


class _Waiting:
    """Rows of one window."""

    def __init__(self) -> None:
        self.size = 0
        self._texts: list[bytes] = []
        self._ids: list[str | None] = []

    def add(self, text: bytes, name: str | None) -> None:
        """One row more."""
        self._texts.append(text)
        self._ids.append(name)
        self.size += len(text) + _ROW_BYTES

    def columns(self) -> tuple[pa.LargeBinaryArray, pa.StringArray]:
        """All rows as columns."""
        return pa.array(self._texts, pa.large_binary()), pa.array(self._ids, pa.string())


def _texts(element: Any) -> tuple[pa.LargeBinaryArray, pa.StringArray]:
    """Texts and ids of an element of many texts, which have no ids."""
    try:
        texts = binary_array(element, "row")
    except InputError as error:
        raise BadRecordError(str(error)) from error
    return texts, pa.nulls(len(texts), pa.string())


def _whole(column: Any) -> Any:
    """One array, also of a table's column."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def _shown(element: Any) -> str:
    text = ascii(element)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
