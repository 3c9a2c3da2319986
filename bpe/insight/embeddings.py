"""Indicators of under-trained tokens from embeddings, and the files that hold those.

The rows of tokens that no training text can hold stay near where they started. How near another
row is to their mean tells how little it was trained. Source: Land and Bartolo 2024 (Fishing for
Magikarp). Low is under-trained for every indicator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe.errors import ModelFileError, SettingsError

__all__ = ["Embeddings", "Indicators", "compute_indicators", "open_embeddings"]

_MOST_HEADER = 100 << 20  # bytes, as the format itself allows
_BLOCK_ROWS = 8192
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_USUAL_NAMES = (
    "lm_head.weight",
    "model.embed_tokens.weight",
    "transformer.wte.weight",
    "wte.weight",
)

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Embeddings:
    """A matrix in a file, one row an id, that is read block by block.

    Attributes:
        values: mapped from the file, (rows, width).
        is_bfloat16: the values are the upper halves of float32.
    """

    values: npt.NDArray[Any]
    is_bfloat16: bool = False

    def blocks(self) -> Iterator[tuple[int, _Floats]]:
        """First row and float64 values of each block of rows."""
        for start in range(0, len(self.values), _BLOCK_ROWS):
            yield start, self.rows(slice(start, start + _BLOCK_ROWS))

    def rows(self, rows: Any) -> _Floats:
        """Some rows as float64."""
        found = self.values[rows]
        if self.is_bfloat16:
            found = (found.astype(np.uint32) << np.uint32(16)).view(np.float32)
        wide: _Floats = found.astype(np.float64)
        return wide


@dataclass(frozen=True)
class Indicators:
    """One value a row, float64; NaN where a row or the mean of unused rows is zero.

    Attributes:
        l2_norm: length of the row; the indicator of input embeddings that are not tied.
        l2_distance: from the mean of the unused rows.
        cosine: cosine distance from that mean.
        cosine_centred: the same after the mean of all rows is subtracted from both.
        cosine_without_first_pc: the same after the first principal component of all rows is
            projected out of both.
    """

    l2_norm: _Floats
    l2_distance: _Floats
    cosine: _Floats
    cosine_centred: _Floats
    cosine_without_first_pc: _Floats


def compute_indicators(embeddings: Embeddings, unused: Sequence[int]) -> Indicators:
    """Indicators of all rows.

    Args:
        embeddings: the matrix.
        unused: ids of tokens that are known to be in no text; at least one.

    Raises:
        SettingsError: `unused` is empty, or an id has no row.
    """
    size, width = embeddings.values.shape
    ids = sorted(set(unused))
    if not ids or ids[0] < 0 or ids[-1] >= size:
        raise SettingsError(
            f"ids of unused tokens are {ids[:1]} to {ids[-1:]}: give at least one, from 0 to "
            f"{size - 1}, the rows of the embeddings"
        )
    mean = sum((block.sum(axis=0) for _, block in embeddings.blocks()), np.zeros(width)) / size
    spread = np.zeros((width, width))
    for _, block in embeddings.blocks():
        spread += (block - mean).T @ (block - mean)
    first = np.linalg.eigh(spread)[1][:, -1]
    center = embeddings.rows(ids).mean(axis=0)
    found = [np.empty(size) for _ in range(5)]
    for start, block in embeddings.blocks():
        without = block - np.outer(block @ first, first)
        columns = (
            np.linalg.norm(block, axis=1),
            np.linalg.norm(block - center, axis=1),
            _cosine_distance(block, center),
            _cosine_distance(block - mean, center - mean),
            _cosine_distance(without, center - (center @ first) * first),
        )
        for values, column in zip(found, columns, strict=True):
            values[start : start + len(block)] = column
    return Indicators(*found)


def _cosine_distance(rows: _Floats, other: _Floats) -> _Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: _Floats = (rows @ other) / (np.linalg.norm(rows, axis=1) * np.linalg.norm(other))
    return 1.0 - cosine


# What NumPy and json raise for files of another kind.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, EOFError, OverflowError, RecursionError)


def open_embeddings(path: str | os.PathLike[str], tensor: str | None = None) -> Embeddings:
    """Map the embeddings in a `.npy` or `.safetensors` file.

    Args:
        path: of the file.
        tensor: name of the matrix in a `.safetensors` file; None takes the only matrix, or one of
            a usual name, those of the output first.

    Raises:
        ModelFileError: the file is damaged, of another kind, or holds no such matrix.
    """
    name = os.fspath(path)
    try:
        found = (
            _open_safetensors(name, tensor) if name.endswith(".safetensors") else _open_npy(name)
        )
    except (*_DAMAGE, OSError) as error:
        raise ModelFileError(
            f"{name}: holds no embeddings that can be read: {error}; give a .npy or .safetensors "
            "file with one row an id"
        ) from error
    if found.values.ndim != 2 or not found.values.size:
        raise ModelFileError(f"{name}: has the shape {found.values.shape}; one row an id is needed")
    return found


def _open_npy(path: str) -> Embeddings:
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        raise ValueError("its values are no floats")
    return Embeddings(values)


def _open_safetensors(path: str, tensor: str | None) -> Embeddings:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > min(_MOST_HEADER, size - 8):
            raise ValueError(f"its header would be {length} bytes")
        header = json.loads(file.read(length))
    matrices = {
        name: entry
        for name, entry in header.items()
        if name != "__metadata__" and len(entry["shape"]) == 2
    }
    usual = [name for name in (*_USUAL_NAMES, *matrices) if name in matrices]
    is_clear = len(matrices) == 1 or (bool(usual) and usual[0] in _USUAL_NAMES)
    chosen = tensor or (usual[0] if is_clear else None)
    if chosen not in matrices:
        raise ValueError(f"no matrix {chosen!r}; it has {', '.join(sorted(matrices)[:10])}")
    entry = matrices[chosen]
    kind = np.dtype(_TYPES[entry["dtype"]])
    rows, width = (int(each) for each in entry["shape"])
    start, end = (int(each) for each in entry["data_offsets"])
    if not 0 <= start <= end <= size - 8 - length or end - start != rows * width * kind.itemsize:
        raise ValueError(f"the bytes of {chosen} do not fit its shape {rows} x {width}")
    values = np.memmap(path, kind, "r", 8 + length + start, (rows, width))
    return Embeddings(values, entry["dtype"] == "BF16")
