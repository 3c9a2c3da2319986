"""Hashes that decide splits and shuffles: equal to their definition, and the same for ever."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe.errors import OutputError
from pipelines.corpus.document_keys import DocumentKeys, hash_integers, hash_strings
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange, Unit
from schemas.token_shards import token_shard_schema

MASK = (1 << 64) - 1


def mix(state: int) -> int:
    state = (state + 0x9E3779B97F4A7C15) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def hash_one(data: bytes, seed: int) -> int:
    state = mix(mix(seed & MASK) ^ len(data))
    for start in range(0, len(data), 8):
        state = mix(state ^ int.from_bytes(data[start : start + 8], "little"))
    return state


@settings(deadline=None)
@given(st.lists(st.text(max_size=30)), st.integers(-5, 1 << 65), st.integers(0, 5))
def test_each_string_has_the_hash_of_the_definition(
    texts: list[str], seed: int, start: int
) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    found = hash_strings(pa.array(texts, pa.string()).slice(start), seed)
    assert found.tolist() == [hash_one(text.encode(), seed) for text in texts[start:]]


def test_hashes_stay_what_they_are() -> None:
    """Another value would send the documents of existing outputs elsewhere."""
    assert [hex(each) for each in hash_strings(pa.array(["", "0:0", "aaaaaaaab"]), 0)] == [
        "0xa706dd2f4d197e6f",
        hex(hash_one(b"0:0", 0)),
        "0x37bd15a889b756ec",
    ]
    columns = [np.array([0, 7]), np.array([0, 1 << 40])]
    assert hash_integers(columns, 3).tolist() == [
        mix(mix(mix(3) ^ 0) ^ 0),
        mix(mix(mix(3) ^ 7) ^ (1 << 40)),
    ]


def test_hashes_are_spread_evenly() -> None:
    hashes = hash_strings(pa.array([f"0:{number}" for number in range(20_000)]), 1)
    for bit in range(64):
        ones = int(((hashes >> np.uint64(bit)) & np.uint64(1)).sum())
        # Five standard deviations.
        assert abs(ones - 10_000) < 360, bit


def unit_of(*sources: str) -> Unit:
    files = [
        InputFile(index, f"/in/{source}", 100, "x", "text", "none", source)
        for index, source in enumerate(sources)
    ]
    return Unit(0, tuple(FileRange(file, 0, 100) for file in files))


def rows(entries: list[tuple[str, int, int, int]]) -> pa.RecordBatch:
    """(document id, source code, byte start, part) per row."""
    schema = token_shard_schema(pa.uint16())
    ids, codes, starts, parts = map(list, zip(*entries, strict=True))
    sources = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(["a", "b"]))
    columns = [
        pa.array([[1]] * len(ids), schema.field("input_ids").type),
        pa.array(ids),
        sources,
        pa.array(starts, pa.int64()),
        pa.array(parts, pa.int32()),
        pa.array([True] * len(ids)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def test_all_rows_of_a_document_have_its_key_in_every_unit() -> None:
    whole = rows([("0:0", 0, 0, 0), ("0:0", 0, 50, 1), ("0:0", 0, 90, 2), ("1:0", 1, 0, 0)])
    keys = DocumentKeys(unit_of("a", "b"), 5).of(whole)
    assert keys[0] == keys[1] == keys[2] != keys[3]
    other = DocumentKeys(unit_of("a", "b"), 5)
    assert other.of(whole.slice(2)).tolist() == keys[2:].tolist()
    split = DocumentKeys(unit_of("a", "b"), 5)
    assert [*split.of(whole.slice(0, 1)), *split.of(whole.slice(1))] == keys.tolist()
    assert DocumentKeys(unit_of("a", "b"), 6).of(whole)[0] != keys[0]


def test_a_document_of_unknown_start_is_refused() -> None:
    with pytest.raises(OutputError, match="document mine: goes on from another unit"):
        DocumentKeys(unit_of("a", "b"), 5).of(rows([("mine", 0, 50, 1)]))
