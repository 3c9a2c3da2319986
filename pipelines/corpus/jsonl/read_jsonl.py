"""Reads JSON lines: an object a line, with the document's text in one of its fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from bpe.pretokenizing.cut_points import CutFinder
from pipelines.corpus.compression.byte_streams import ByteStream
from pipelines.corpus.document_batches import batch_of_rows, is_utf8
from pipelines.corpus.jsonl.json_rows import scan_json_rows
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange
from pipelines.corpus.read_options import NULL_TEXT, ReadOptions
from pipelines.corpus.rejects import Rejects
from pipelines.corpus.row_blocks import LongRow, RowBlock
from pipelines.corpus.text.read_rows import reject_long_row, row_number, rows_of_range
from pipelines.corpus.text.read_text import BOM

__all__ = ["read_jsonl"]

_FIELDS_NAMED = 12


def read_jsonl(
    stream: ByteStream,
    range_: FileRange,
    options: ReadOptions,
    finder: CutFinder,  # noqa: ARG001  all readers take the same
    rejects: Rejects,
) -> Iterator[pa.RecordBatch]:
    """Documents of a JSON lines file. Blank lines are counted and passed over.

    Args:
        stream: the open file, at its start.
        range_: lines that start in it are read.
        options: the fields, and the longest line.
        finder: not used; rows are never cut.
        rejects: takes lines that are too long or cannot be used.
    """
    decoder = _RowDecoder(options)
    for found in rows_of_range(stream, range_, b"\n", options.max_row_bytes):
        if isinstance(found, LongRow):
            reject_long_row(range_.file, found, options, rejects)
        else:
            yield _decode_block(found, range_.file, decoder, options, rejects)


class _RowDecoder:
    """Takes the text, and the id where one is asked for, out of a row; skips the rest natively."""

    def __init__(self, options: ReadOptions) -> None:
        text = str | None if options.nulls == "empty" else str
        leaves: dict[str, Any] = {options.text_field: text}
        if options.id_field is not None:
            leaves.setdefault(options.id_field, str | int)
        row_type, places = _struct_of(leaves)
        self._text_path = options.text_field.split(".")
        self._id_path = [] if options.id_field is None else options.id_field.split(".")
        decoder = msgspec.json.Decoder(row_type)
        self.decode = decoder.decode
        self._decode_lines = decoder.decode_lines
        self.text = attrgetter(places[options.text_field])
        self.id: Callable[[Any], str | int] | None = None
        if options.id_field is not None:
            self.id = attrgetter(places[options.id_field])

    def scan_block(
        self, block: RowBlock
    ) -> tuple[pa.LargeBinaryArray, pa.StringArray | None] | None:
        """Texts and ids of all rows without Python's lock; None unless all are beyond doubt."""
        return scan_json_rows(
            block.data, block.starts, block.ends, text=self._text_path, id_=self._id_path
        )

    def decode_block(self, block: RowBlock) -> list[Any] | None:
        """All rows of a block at once; None where they have to be looked at one by one.

        The decoder takes line feeds for white space. But a line that begins with a brace holds a
        row, and none goes on after a closing brace at a line's end with an opening one: where all
        lines begin and end so, each holds one row, or there are more rows than lines.
        """
        values = np.frombuffer(block.data, np.uint8)
        starts, ends = block.starts, block.ends
        if (ends - starts).min() < 2:
            return None
        last = values[ends - 1]
        last = np.where(last == ord("\r"), values[ends - 2], last)
        if (values[starts] != ord("{")).any() or (last != ord("}")).any():
            return None
        view = block.data[int(starts[0]) : int(ends[-1])]
        if not is_utf8(view):
            return None
        try:
            rows = self._decode_lines(view)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return rows if len(rows) == len(starts) else None


def _struct_of(leaves: dict[str, Any]) -> tuple[type[msgspec.Struct], dict[str, str]]:
    """A type with these fields (dots step into nested objects), and the attribute of each."""
    groups: dict[str, dict[str, Any]] = {}
    for path, kind in leaves.items():
        name, _, rest = path.partition(".")
        groups.setdefault(name, {})[rest] = kind
    fields: list[tuple[str, Any]] = []
    names: dict[str, str] = {}
    places: dict[str, str] = {}
    for index, (name, inner) in enumerate(groups.items()):
        attribute = f"field_{index}"
        names[attribute] = name
        if "" in inner:
            fields.append((attribute, inner[""]))
            places[name] = attribute
        else:
            nested, inner_places = _struct_of(inner)
            fields.append((attribute, nested))
            places |= {f"{name}.{k}": f"{attribute}.{v}" for k, v in inner_places.items()}
    # Rows hold no cycles: the collector need not look at them.
    return msgspec.defstruct("Row", fields, rename=names, gc=False), places


def _decode_block(
    block: RowBlock,
    file: InputFile,
    decoder: _RowDecoder,
    options: ReadOptions,
    rejects: Rejects,
) -> pa.RecordBatch:
    """The block's good rows; the others go to `rejects`."""
    scanned = decoder.scan_block(block)
    if scanned is not None:
        return batch_of_rows(file, scanned[0], block.base + block.starts, scanned[1])
    rows = decoder.decode_block(block)
    if rows is None:
        return _decode_rows(block, file, decoder, options, rejects)
    texts = list(map(decoder.text, rows))
    ids = None if decoder.id is None else _id_column(list(map(decoder.id, rows)))
    return batch_of_rows(file, _text_column(texts, rejects), block.base + block.starts, ids)


def _text_column(texts: list[str | None], rejects: Rejects) -> pa.LargeBinaryArray:
    """Texts as bytes; null, which only `--nulls=empty` lets through, is an empty text."""
    column = pa.array(texts, pa.large_string()).view(pa.large_binary())
    if not column.null_count:
        return column
    rejects.accepted[NULL_TEXT] += column.null_count
    return column.fill_null(b"")


def _id_column(ids: list[str | int]) -> pa.StringArray:
    """Ids as text; integers, unless some are too large, are spelled out natively."""
    if all(type(each) is int for each in ids):
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(ids, pa.int64()).cast(pa.string())
    return pa.array(map(str, ids), pa.string())


def _decode_rows(
    block: RowBlock,
    file: InputFile,
    decoder: _RowDecoder,
    options: ReadOptions,
    rejects: Rejects,
) -> pa.RecordBatch:
    """The same row by row."""
    view = block.data
    starts, ends = block.starts.tolist(), block.ends.tolist()
    if block.base + starts[0] == 0 and block.data[: len(BOM)] == BOM:
        rejects.accepted["bom"] += 1
        starts[0] += len(BOM)
    # The decoder checks only the fields that it keeps.
    all_valid = is_utf8(view[starts[0] : ends[-1]])
    decode, text_of, id_of = decoder.decode, decoder.text, decoder.id
    texts: list[str | None] = []
    ids: list[str | int] = []
    left_out: list[int] = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        raw = view[start:end]
        refusal: Exception | None = None
        try:
            row = decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            refusal = error
        if refusal is None and (all_valid or is_utf8(raw)):
            texts.append(text_of(row))
            if id_of is not None:
                ids.append(id_of(row))
        else:
            left_out.append(index)
            if bytes(raw).strip(b" \t\r"):
                _reject_row(block, index, bytes(raw), refusal, file, options, rejects)
            else:
                rejects.accepted["blank_line"] += 1
    positions = np.delete(block.base + block.starts, left_out)
    names = None if id_of is None else _id_column(ids)
    return batch_of_rows(file, _text_column(texts, rejects), positions, names)


def _reject_row(
    block: RowBlock,
    index: int,
    raw: bytes,
    refusal: Exception | None,
    file: InputFile,
    options: ReadOptions,
    rejects: Rejects,
) -> None:
    is_cut = block.last_is_cut and index == len(block.starts) - 1
    reason, message = _diagnose(raw, refusal, options, is_cut=is_cut)
    position = block.base + int(block.starts[index])
    number = None if block.number is None else block.number + index
    rejects.bad_record(
        file,
        reason=reason,
        message=message,
        byte_offset=position,
        row=row_number(file, number, position, options),
        raw=raw,
    )


def _diagnose(
    raw: bytes, refusal: Exception | None, options: ReadOptions, *, is_cut: bool
) -> tuple[str, str]:
    """What is wrong with a row that the decoder refused: a short name and a sentence."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return "invalid_utf8", f"invalid UTF-8 at byte {error.start} of the row; mend the file"
    try:
        # Of integers only the type matters, and Python limits their digits where JSON does not.
        row = json.loads(text, parse_constant=_refuse_constant, parse_int=len)
        characters = json.dumps(row, ensure_ascii=False)
    except RecursionError as error:
        return "json_limit", f"objects or lists are nested too deeply: {error}; remove the row"
    except ValueError as error:
        if is_cut:
            return "row_cut", (
                f"the file ends inside this row, which has no line feed and is no JSON ({error}); "
                f"copy the file again"
            )
        return "bad_json", f"no valid JSON: {error}; mend or remove the row"
    try:
        characters.encode("utf-8")
    except UnicodeEncodeError as error:
        return "lone_surrogate", (
            f"a \\u escape is half of a surrogate pair ({error.object[error.start]!r}), which "
            f"stands for no character; mend or remove the row"
        )
    if not isinstance(row, dict):
        return "not_an_object", f"a JSON object is expected, not {_kind(row)}"
    kinds = (str, type(None)) if options.nulls == "empty" else (str,)
    wrong = _field_error(row, options.text_field, "text", kinds)
    if wrong is None and options.id_field is not None:
        wrong = _field_error(row, options.id_field, "id", (str, int))
    if wrong is None and isinstance(refusal, msgspec.ValidationError) and _repeats_names(text):
        wrong = _repeated_field(str(refusal), options)
    return wrong or ("json_limit", f"beyond what the decoder takes: {refusal}; remove the row")


def _repeats_names(text: str) -> bool:
    """Whether a row has an object in which a name occurs twice."""
    repeated = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated |= len({name for name, _ in pairs}) < len(pairs)

    json.loads(text, parse_int=len, object_pairs_hook=look)
    return repeated


def _repeated_field(refusal: str, options: ReadOptions) -> tuple[str, str]:
    """Of a field that occurs several times, Python sees the last value and the decoder all."""
    is_id = options.id_field is not None and f"$.{options.id_field}`" in refusal
    use, path = ("id", options.id_field) if is_id else ("text", options.text_field)
    reason = f"null_{use}" if "got `null`" in refusal else f"{use}_not_string"
    return reason, (
        f"field {path!r} occurs several times in the row, and one of its values cannot be used "
        f"({refusal}); mend or remove the row"
    )


def _field_error(
    row: dict[str, Any], path: str, use: str, kinds: tuple[type, ...]
) -> tuple[str, str] | None:
    """What is wrong with one field, if anything; `use` is what it is for: `text` or `id`."""
    value: Any = row
    walked: list[str] = []
    for name in path.split("."):
        if not isinstance(value, dict):
            place = ".".join(walked)
            return f"missing_{use}", (
                f"no field {path!r}: {place!r} is {_kind(value)} and no object; "
                f"name the {use} field with --{use}-field"
            )
        if name not in value:
            place = f" in {'.'.join(walked)!r}" if walked else ""
            return f"missing_{use}", (
                f"no field {name!r}{place}; there are: {_names(value)}; "
                f"name the {use} field with --{use}-field"
            )
        value = value[name]
        walked.append(name)
    if value is None and type(None) not in kinds:
        return f"null_{use}", f"field {path!r} is null"
    if isinstance(value, bool) or not isinstance(value, kinds):
        expected = "a string" if use == "text" else "a string or an integer"
        return f"{use}_not_string", f"field {path!r} is {_kind(value)}, not {expected}"
    return None


def _names(row: dict[str, Any]) -> str:
    names = [repr(name) for name in list(row)[:_FIELDS_NAMED]]
    if len(row) > _FIELDS_NAMED:
        names.append("…")
    return ", ".join(names) or "none"


def _kind(value: Any) -> str:
    """A JSON value's type, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
