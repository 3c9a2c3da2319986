"""Parts of documents as shards hold them, and how the first wrong one is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe.errors import OutputError

__all__ = ["DocumentParts", "refuse"]

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


def refuse(wrong: _Bools, failure: Callable[[int], OutputError]) -> None:
    """Raise the failure of the first place that is wrong, if there is one."""
    places = np.flatnonzero(wrong)
    if len(places):
        raise failure(int(places[0]))


@dataclass(frozen=True)
class DocumentParts:
    """Rows of a batch, or segments of its packed rows, in order.

    Attributes:
        path: of the shard, for messages.
        rows: int64, number of the row in the shard.
        ids: of the whole batch, one row after the other.
        offsets, lengths: int64, where the part begins among these, and how many it has.
        names, sources: string and dictionary of strings, as in `schemas.token_shards`.
        starts: int64, `byte_start`.
        places: int64, `part` of a row or position of a segment.
        ends: int64, the place that follows: `part + 1`, or position and length together.
        is_first, is_last: whether the document starts or ends here.
    """

    path: str
    rows: _Ints
    ids: npt.NDArray[Any]
    offsets: _Ints
    lengths: _Ints
    names: pa.Array
    sources: pa.DictionaryArray
    starts: _Ints
    places: _Ints
    ends: _Ints
    is_first: _Bools
    is_last: _Bools

    def failure(self, at: int, what: str) -> OutputError:
        """Something is wrong with a part."""
        return OutputError(f"{self.path}: row {self.rows[at]} (document {self.names[at]}) {what}")
