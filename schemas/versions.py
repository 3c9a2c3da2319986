"""Names and versions of schemas, kept in their Arrow metadata and checked on reading."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["SCHEMA_KEY", "VERSION_KEY", "check_version", "with_version"]

SCHEMA_KEY = b"beam_bpe.schema"
VERSION_KEY = b"beam_bpe.version"


def with_version(schema: pa.Schema, name: str, version: int) -> pa.Schema:
    """The schema with its name and version added to what its metadata holds already."""
    metadata = dict(schema.metadata or {})
    metadata |= {SCHEMA_KEY: name.encode(), VERSION_KEY: str(version).encode()}
    return schema.with_metadata(metadata)


def check_version(found: pa.Schema, expected: pa.Schema) -> None:
    """Check that `found` has the name, version, columns and types of `expected`.

    Other metadata may differ.

    Raises:
        ValueError: they differ; the text says in what.
    """
    for key in (SCHEMA_KEY, VERSION_KEY):
        values = [
            (schema.metadata or {}).get(key, b"missing").decode() for schema in (found, expected)
        ]
        if values[0] != values[1]:
            raise ValueError(f"metadata {key.decode()} is {values[0]}, expected {values[1]}")
    if not found.equals(expected):
        raise ValueError(f"the columns are\n{found}\nexpected\n{expected}")
