"""The generator gives its published numbers."""

from __future__ import annotations

import numpy as np

from pipelines.corpus.splitmix64 import GOLDEN, splitmix64


def test_published_numbers() -> None:
    # The first three numbers of the reference code by Sebastiano Vigna (splitmix64.c), seed 0.
    states = np.arange(3, dtype=np.uint64) * GOLDEN
    found = [int(number) for number in splitmix64(states)]
    assert found == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
