"""Which split a document belongs to: `train`, `validation` and the like, by a hash of its id.

The hash depends on `document_id` and the seed alone: not on the plan, the runner, or the other
documents. All pieces of a document, and documents of equal ids, go to the same split.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.corpus.document_keys import hash_strings
from pipelines.storage.output_names import Split, share_of

__all__ = ["Splitter"]

_WHOLE = 1 << 64
_HASH_DOMAIN = 0x5B117


class Splitter:
    """Assigns documents to splits.

    Args:
        splits: names and shares; at least one.
        seed: another one gives another, independent choice of documents.
    """

    def __init__(self, splits: Sequence[Split], seed: int) -> None:
        shares = [share_of(*split) for split in splits]
        ends = [int(sum(shares[: index + 1]) * _WHOLE) for index in range(len(shares) - 1)]
        self._ends = np.array(ends, np.uint64)
        self._seed = seed

    def assign(self, document_ids: pa.Array) -> npt.NDArray[np.int64]:
        """Number of the split of each document.

        Args:
            document_ids: string.
        """
        hashes = hash_strings(document_ids, self._seed ^ _HASH_DOMAIN)
        return np.searchsorted(self._ends, hashes, side="right").astype(np.int64)
