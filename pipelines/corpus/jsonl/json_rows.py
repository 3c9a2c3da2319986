"""Rows of JSON, as far as a native scan is sure of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.storage.native_io import native_io

__all__ = ["scan_json_rows"]


def scan_json_rows(
    data: bytes | memoryview,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    *,
    text: Sequence[str],
    id_: Sequence[str] = (),
) -> tuple[pa.LargeBinaryArray, pa.StringArray | None] | None:
    """Texts of rows, and ids where they are wanted; None where a full parser has to judge.

    data: row i is data[starts[i]:ends[i]]. text: names of the objects on the way to
        the field with the text, and its own. id_: the same of the id, a string or an integer.

    Sure is a row that is well-formed JSON (RFC 8259) in UTF-8, an object, with each of the names
    once, a string as the text, no escape in names and the id, and of integers no `-0` and 1000
    characters at most. One row that is not, or a backend without such a scan, gives None for all.
    """
    shortest = min(len(text), len(id_))
    extension = native_io()
    if extension is None or (id_ and [*text[:shortest]] == [*id_[:shortest]]):
        return None
    columns = extension.scan_json_rows(
        data, pa.array(starts), pa.array(ends), text_path=list(text), id_path=list(id_)
    )
    if columns is None:
        return None
    arrays = [pa.array(column) for column in columns]
    return arrays[0], arrays[1].cast(pa.string()) if id_ else None
