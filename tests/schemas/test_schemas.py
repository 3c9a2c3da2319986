"""Every schema carries a name and version, survives Arrow IPC, and is told from others."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import schemas
from schemas import (
    CountRecord,
    Manifest,
    ShardSidecar,
    StateFile,
    UnitTotals,
    check_version,
    round_state_schema,
    token_shard_schema,
    token_type,
    with_version,
    word_counts_schema,
)
from schemas.versions import SCHEMA_KEY, VERSION_KEY

WORDS = word_counts_schema(scheme="gpt2", unicode_version="16.0.0", document_rule="pieces")
ALL = {
    "document_pieces": schemas.DOCUMENT_PIECES,
    "word_counts": WORDS,
    "token_shards": token_shard_schema(pa.uint16()),
    "pair_counts": schemas.PAIR_COUNTS,
    "ranked_pairs": schemas.RANKED_PAIRS,
    "boundary_records": schemas.BOUNDARY_RECORDS,
    "boundary_fixes": schemas.BOUNDARY_FIXES,
    "segments": schemas.SEGMENTS,
    "merges": schemas.MERGES,
    "round_state": round_state_schema(pa.uint16(), weighted=True),
}


@pytest.mark.parametrize("name", ALL)
def test_a_schema_survives_ipc_with_its_version(name: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, ALL[name]) as writer:
        writer.write_table(ALL[name].empty_table())
    found = pa.ipc.open_file(sink.getvalue()).schema
    assert found.metadata[SCHEMA_KEY] == name.encode()
    assert found.metadata[VERSION_KEY] == b"1"
    check_version(found, ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_another_schema_is_refused(name: str) -> None:
    for other, schema in ALL.items():
        if other != name:
            with pytest.raises(ValueError, match=f"is {other}, expected {name}"):
                check_version(schema, ALL[name])


def test_another_version_and_other_columns_are_refused() -> None:
    newer = with_version(schemas.PAIR_COUNTS, "pair_counts", 2)
    with pytest.raises(ValueError, match=r"version is 2, expected 1"):
        check_version(newer, schemas.PAIR_COUNTS)
    fewer = with_version(pa.schema(list(schemas.PAIR_COUNTS)[:2]), "pair_counts", 1)
    with pytest.raises(ValueError, match="columns"):
        check_version(fewer, schemas.PAIR_COUNTS)
    with pytest.raises(ValueError, match="missing"):
        check_version(pa.schema(list(schemas.PAIR_COUNTS)), schemas.PAIR_COUNTS)


def test_with_version_keeps_other_metadata() -> None:
    assert WORDS.metadata[b"beam_bpe.scheme"] == b"gpt2"
    assert WORDS.metadata[b"beam_bpe.special_tokens"] == b"[]"
    assert WORDS.names == ["word", "count"]


def test_first_positions_are_a_column() -> None:
    schema = word_counts_schema(
        scheme="none", unicode_version="16.0.0", document_rule="x", first_positions=True
    )
    assert schema.names == ["word", "count", "first"]


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(0, pa.uint16()), (65535, pa.uint16()), (65536, pa.uint32()), (2**32 - 1, pa.uint32())],
)
def test_token_type_goes_by_the_largest_id(largest: int, expected: pa.DataType) -> None:
    assert token_type(largest) == expected


@pytest.mark.parametrize("id_type", [pa.uint8(), pa.uint16(), pa.uint32()])
def test_columns_of_uint8_ids_have_a_version_of_their_own(id_type: pa.DataType) -> None:
    version = b"2" if id_type == pa.uint8() else b"1"
    for schema in (
        token_shard_schema(id_type),
        schemas.packed_shard_schema(id_type, 8),
        schemas.shuffle_spill_schema(id_type),
        schemas.encoded_batch_schema(id_type),
    ):
        assert schema.field("input_ids").type.value_type == id_type
        assert schema.metadata[VERSION_KEY] == version


@pytest.mark.parametrize("wrong", [-1, 2**32])
def test_what_is_no_token_id_is_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match=str(wrong)):
        token_type(wrong)


def sidecar(**changes: Any) -> dict[str, Any]:
    made = ShardSidecar(
        file="shard-00000-000.arrow",
        split="",
        unit=0,
        part=0,
        rows=2,
        documents=1,
        tokens=9,
        bytes=30,
        file_bytes=900,
        sha256="00",
        min_id=1,
        max_id=300,
        first_document="0:0",
        last_document="0:0",
        settings_digest="11",
        inputs=[{"path": "a.txt", "identity": "x", "start": 0, "end": None}],
        unit_totals=UnitTotals(
            parts=1,
            documents_in=1,
            rejects={},
            accepted={"crlf": 1},
            special_text={},
            rejects_file=None,
            rejects_sha256=None,
        ),
    )
    return asdict(made) | changes


def test_records_come_back_from_json() -> None:
    for record in (
        msgspec.convert(sidecar(), ShardSidecar),
        CountRecord(
            round=1,
            settings_digest="11",
            merges=30,
            adjacencies=70,
            bytes_sent=5,
            files={"heavy.arrow": "00"},
            stop_reason=None,
            state_files=[
                StateFile(
                    file="s",
                    sequences=1,
                    tokens=2,
                    open_left=False,
                    open_right=True,
                    weighted=False,
                    bytes=1,
                    sha256="22",
                )
            ],
            seconds=0.5,
            ended=1.0,
        ),
    ):
        assert msgspec.json.decode(msgspec.json.encode(record), type=type(record)) == record


@pytest.mark.parametrize(
    "changes", [{"rows": "2"}, {"sha256": None}, {"inputs": {}}, {"unit_totals": {"parts": 1}}]
)
def test_a_sidecar_of_other_types_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(sidecar(**changes)), type=ShardSidecar)


def test_a_manifest_without_a_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="missing"):
        msgspec.json.decode(b'{"code_version": "1"}', type=Manifest)
