"""Small JSON records checked against an Arrow schema: the schema is their documentation and test.

A record is a dictionary with exactly the schema's fields. Beyond Arrow's own types, a string field
with the metadata `json=object` holds any JSON object (settings, for instance), and a map field is
written as a JSON object.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from schemas.versions import SCHEMA_KEY, VERSION_KEY

__all__ = ["check_record", "decode_record", "encode_record", "json_object"]

_JSON_OBJECT = {b"json": b"object"}
_SCALARS: list[tuple[Any, type | tuple[type, ...]]] = [
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, (int, float)),
    (pa.types.is_string, str),
]


def json_object(name: str) -> pa.Field:
    """A field for an arbitrary JSON object."""
    return pa.field(name, pa.string(), nullable=False, metadata=_JSON_OBJECT)


def encode_record(record: dict[str, Any], schema: pa.Schema) -> bytes:
    """The record as indented JSON with the schema's name and version in front.

    Raises:
        ValueError: the record does not fit the schema; names the field.
    """
    check_record(record, schema)
    head = {
        "schema": schema.metadata[SCHEMA_KEY].decode(),
        "version": int(schema.metadata[VERSION_KEY]),
    }
    ordered = {field.name: record[field.name] for field in schema}
    return json.dumps(head | ordered, indent=2).encode("ascii") + b"\n"


def decode_record(data: bytes, schema: pa.Schema) -> dict[str, Any]:
    """The record that `encode_record` wrote.

    Raises:
        ValueError: this is no JSON, of another schema or version, or does not fit it.
    """
    record = json.loads(data)
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object is expected, not {type(record).__name__}")  # noqa: TRY004
    for key, expected in (
        ("schema", schema.metadata[SCHEMA_KEY].decode()),
        ("version", int(schema.metadata[VERSION_KEY])),
    ):
        found = record.pop(key, None)
        if found != expected:
            raise ValueError(f"{key} is {found!r}, expected {expected!r}")
    check_record(record, schema)
    return record


def check_record(record: dict[str, Any], schema: pa.Schema) -> None:
    """Check that a record has the schema's fields, each with a value of its type.

    Raises:
        ValueError: it does not; the text names the field.
    """
    _check_fields(record, list(schema), "")


def _check_fields(value: Any, fields: list[pa.Field], place: str) -> None:
    if not isinstance(value, dict):
        raise _misfit(place, "an object", value)
    names = [field.name for field in fields]
    if value.keys() != set(names):
        missing = ", ".join(name for name in names if name not in value) or "nothing"
        unknown = ", ".join(str(name) for name in value if name not in names) or "nothing"
        raise ValueError(f"{place or 'the record'} lacks {missing} and has unknown {unknown}")
    for field in fields:
        _check_value(value[field.name], field, f"{place}.{field.name}".lstrip("."))


def _check_value(value: Any, field: pa.Field, place: str) -> None:
    kind = field.type
    if value is None:
        if not field.nullable:
            raise _misfit(place, str(kind), value)
    elif field.metadata == _JSON_OBJECT:
        if not isinstance(value, dict):
            raise _misfit(place, "a JSON object", value)
    elif pa.types.is_struct(kind):
        _check_fields(value, [kind.field(index) for index in range(kind.num_fields)], place)
    elif pa.types.is_map(kind):
        if not isinstance(value, dict):
            raise _misfit(place, "an object", value)
        for key, item in value.items():
            _check_value(item, kind.item_field, f"{place}[{key!r}]")
    elif pa.types.is_list(kind):
        if not isinstance(value, list):
            raise _misfit(place, "a list", value)
        for index, item in enumerate(value):
            _check_value(item, kind.value_field, f"{place}[{index}]")
    else:
        _check_scalar(value, kind, place)


def _check_scalar(value: Any, kind: pa.DataType, place: str) -> None:
    expected = next((types for matches, types in _SCALARS if matches(kind)), None)
    is_truth = isinstance(value, bool) and expected is not bool
    if expected is None or is_truth or not isinstance(value, expected):
        raise _misfit(place, str(kind), value)
    if pa.types.is_integer(kind):
        try:
            pa.scalar(value, kind)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise _misfit(place, str(kind), value) from error


def _misfit(place: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{place} should be {expected}, but is {value!r}")
