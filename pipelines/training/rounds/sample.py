"""Which documents, or blocks of a document, are in the sample of a corpus.

It depends on the seed, the file's index in the plan and the byte offset of the document, on nothing
else: the sample is spread evenly over the corpus, and workers need not agree on it. A file that is
one document is sampled in blocks of 64 KiB, each of which counts as a document of its own: no merge
crosses a block's ends.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipelines.corpus.splitmix64 import splitmix64
from pipelines.training.rounds.options import Sample

__all__ = ["in_sample"]

_Positions = npt.NDArray[np.int64]
_RANGE = 1 << 64


def in_sample(sample: Sample, files: _Positions, starts: _Positions) -> npt.NDArray[np.bool_]:
    """Which documents, or blocks, are in a sample.

    Args:
        sample: the sample.
        files: index of each one's file in the plan.
        starts: where each starts in the uncompressed file, bytes.
    """
    if sample.share >= 1:
        return np.ones(len(starts), np.bool_)
    seed = splitmix64(np.array([sample.seed % _RANGE], np.uint64))
    hashes = splitmix64(splitmix64(seed ^ files.astype(np.uint64)) ^ starts.astype(np.uint64))
    kept: npt.NDArray[np.bool_] = hashes < np.uint64(sample.share * _RANGE)
    return kept
