"""Sequences of ids and their weights, as the native steps of merge rounds take them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Ids = list[list[int]]


def lists(ids: Ids, kind: pa.DataType | None = None) -> pa.LargeListArray:
    wide = any(each > 65535 for row in ids for each in row)
    return pa.array(ids, pa.large_list(kind or (pa.uint32() if wide else pa.uint16())))


def weights_of(weights: list[int] | None) -> pa.Int64Array | None:
    return None if weights is None else pa.array(weights, pa.int64())


def uint32(ids: Any) -> pa.UInt32Array:
    return pa.array(list(ids), pa.uint32())


def draw_weights(data: st.DataObject, rows: int) -> list[int] | None:
    one = st.sampled_from([1, 2, 7, 3 * 10**9, 2**40])
    return data.draw(st.none() | st.lists(one, min_size=rows, max_size=rows))
