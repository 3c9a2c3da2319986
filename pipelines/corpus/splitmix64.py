"""SplitMix64 on arrays of numbers (Steele, Lea and Flood, OOPSLA 2014).

Whole outputs depend on these numbers: the order of a shuffle, a sample, a validation split. They
are the same on every machine, and must never change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["GOLDEN", "splitmix64"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What the generator adds to its state at each step."""


def splitmix64(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Next number of the generator from each state; every bit in moves about half of those out."""
    mixed = states + GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
