"""Arrow and numpy arrays at the tokenizer's border: documents in, ids in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from bpe.errors import InputError, SettingsError
from bpe.pretokenizing.utf8_text import utf8_bytes

__all__ = ["Texts", "binary_array", "document_bytes", "id_array", "id_list_array", "join_id_lists"]

_IS_DOCUMENT_TYPE = (
    pt.is_string,
    pt.is_binary,
    pt.is_large_string,
    pt.is_large_binary,
    pt.is_string_view,
    pt.is_binary_view,
    pt.is_fixed_size_binary,
)


Texts: TypeAlias = pa.Array | pa.ChunkedArray | Iterable[str | bytes]
"""Documents: an Arrow array of strings or binaries, or a list (any iterable) of str and bytes."""


def binary_array(texts: Texts, name: str = "texts") -> pa.LargeBinaryArray:
    """Documents as one large_binary array; `InputError` for other types, and for the first null.

    texts: string or binary, their large, view or fixed-size kinds, chunked or not, sliced or not;
    or an iterable of str and bytes. name: of the argument, for messages.
    """
    if not isinstance(texts, (pa.Array, pa.ChunkedArray)):
        return _array_of_list(texts, name)
    if not any(is_type(texts.type) for is_type in _IS_DOCUMENT_TYPE):
        raise InputError(f"{name} is an array of {texts.type}: pass one of strings or binaries")
    if texts.null_count:
        row = pc.index(pc.is_null(texts), value=True).as_py()
        raise InputError(
            f"{name}[{row}] is null, and a null has no ids; filter it out, or fill it with an "
            "empty text"
        )
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(
            [chunk.cast(pa.large_binary()) for chunk in texts.chunks]
            or [pa.array([], type=pa.large_binary())]
        )
    return texts.cast(pa.large_binary())


def document_bytes(text: object, name: str = "text") -> bytes:
    """Write a document as bytes; `InputError` for another type, and a str that UTF-8 cannot write.

    name: of the argument, for messages.
    """
    if isinstance(text, str):
        return utf8_bytes(text, name)
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise InputError(f"{name} is of type {type(text).__name__}: pass str or bytes")


def _array_of_list(texts: object, name: str) -> pa.LargeBinaryArray:
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise SettingsError(f"{name} is one text: pass a list of texts, [text], or an Arrow array")
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping):
        raise InputError(
            f"{name} is a {type(texts).__name__}: pass an Arrow array, or a list of str or bytes"
        )
    rows = [document_bytes(text, f"{name}[{row}]") for row, text in enumerate(texts)]
    return pa.array(rows, pa.large_binary())


def id_array(
    ids: Iterable[int] | npt.NDArray[Any] | pa.Array, name: str = "ids"
) -> npt.NDArray[Any]:
    """Ids as a 1-d integer array of any width; `InputError` names the first that is no integer.

    name: of the argument, for messages.
    """
    if isinstance(ids, (pa.ListScalar, pa.LargeListScalar, pa.FixedSizeListScalar)):
        ids = ids.values
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        if ids.null_count:
            row = pc.index(pc.is_null(ids), value=True).as_py()
            raise InputError(f"{name}[{row}] is null: pass integers")
        ids = ids.to_numpy(zero_copy_only=False) if isinstance(ids, pa.Array) else ids.to_numpy()
    try:
        ids = ids if hasattr(ids, "__array__") else list(ids)
        array = np.asarray(ids)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is a {type(ids).__name__}: pass a sequence or 1-d array of integers"
        ) from None
    if array.size == 0 and array.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1:
        raise InputError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}): pass one row at a time"
        )
    if array.dtype.kind not in "iu":
        _refuse_not_integers(list(ids), name)
    return array


IdLists: TypeAlias = (
    pa.Array | pa.ChunkedArray | Iterable[Iterable[int] | npt.NDArray[Any] | pa.Array]
)
"""Lists of ids: an Arrow array of lists, or a list of what `id_array` takes."""


def id_list_array(ids: IdLists) -> pa.LargeListArray:
    """Lists of ids as one large_list array; `InputError` for other types, and for nulls.

    ids: lists of integers of any width: list, large_list or fixed_size_list, chunked or not; or an
    iterable of sequences or 1-d arrays of integers.
    """
    if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
        return _array_of_id_lists(ids)
    is_list = pt.is_list(ids.type) or pt.is_large_list(ids.type) or pt.is_fixed_size_list(ids.type)
    if not is_list or not pt.is_integer(ids.type.value_type):
        raise InputError(f"ids is an array of {ids.type}: pass one of lists of integers")
    if ids.null_count:
        row = pc.index(pc.is_null(ids), value=True).as_py()
        raise InputError(f"ids[{row}] is null: pass lists of integers")
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    values = ids.flatten()
    if values.null_count:
        place = pc.index(pc.is_null(values), value=True).as_py()
        lengths = pc.cumulative_sum(pc.list_value_length(ids)).to_numpy()
        row = int(np.searchsorted(lengths, place, side="right"))
        position = place - (int(lengths[row - 1]) if row else 0)
        raise InputError(f"ids[{row}][{position}] is null: pass integers")
    if pt.is_fixed_size_list(ids.type):
        ends = np.arange(len(ids) + 1, dtype=np.int64) * ids.type.list_size
        return pa.LargeListArray.from_arrays(pa.array(ends), values)
    # Without a copy of the ids: those of a slice are part of a longer array.
    offsets = ids.offsets.cast(pa.int64())
    first = offsets[0].as_py() if len(offsets) else 0
    if first:
        offsets = pc.subtract(offsets, first)
    return pa.LargeListArray.from_arrays(offsets, values)


def _array_of_id_lists(ids: object) -> pa.LargeListArray:
    if not isinstance(ids, Iterable) or isinstance(ids, (str, bytes, Mapping)):
        raise InputError(
            f"ids is a {type(ids).__name__}: pass an Arrow array of lists, or a list of them"
        )
    rows = [id_array(row, f"ids[{index}]") for index, row in enumerate(ids)]
    for index, row in enumerate(rows):
        if row.dtype == np.uint64 and row.size and row.max() >= 2**63:
            raise InputError(f"ids[{index}] holds {row.max()}, which is no id of any vocabulary")
    values = np.concatenate([np.zeros(0, np.int64), *(row.astype(np.int64) for row in rows)])
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(values))


def join_id_lists(encoded: pa.LargeListArray, plans: Sequence[Sequence[int]]) -> pa.LargeListArray:
    """Join lists from the lists of `encoded` and single ids; one for each plan.

    A plan's entries are indices of lists, or -1 - id for a single id.
    """
    offsets = encoded.offsets.to_numpy()
    values = encoded.values.to_numpy()
    parts: list[npt.NDArray[Any]] = []
    lengths: list[int] = []
    for plan in plans:
        before = len(parts)
        parts += [
            values[offsets[entry] : offsets[entry + 1]]
            if entry >= 0
            else np.array([-1 - entry], dtype=values.dtype)
            for entry in plan
        ]
        lengths.append(sum(map(len, parts[before:])))
    joined = np.concatenate(parts) if parts else np.zeros(0, dtype=values.dtype)
    ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    return pa.LargeListArray.from_arrays(
        pa.array(ends, type=pa.int64()), pa.array(joined, type=encoded.type.value_type)
    )


def _refuse_not_integers(ids: Sequence[Any], name: str) -> None:
    """Raise for what numpy did not take as integers, at the element that is to blame."""
    for position, element in enumerate(ids):
        value = element.item() if isinstance(element, np.generic) else element
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(
                f"{name}[{position}] is {value!r} ({type(value).__name__}): pass integers"
            )
        if not 0 <= value < 2**63:
            raise InputError(f"{name}[{position}] is {value}, which is no id of any vocabulary")
