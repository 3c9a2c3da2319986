"""Reads the documents of a unit, whatever the formats of its files."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bpe.cut_points import CutFinder
from pipelines.plan import Unit
from pipelines.read_options import ReadOptions
from pipelines.rejects import Rejects

__all__ = ["read_unit"]


def read_unit(
    unit: Unit, options: ReadOptions, cut_finder: CutFinder, rejects: Rejects
) -> Iterator[pa.RecordBatch]:
    """Read the documents that start in a unit's ranges.

    Args:
        unit: from the plan.
        options: the same that the plan was made with.
        cut_finder: where documents may be cut; decides the pieces of long ones.
        rejects: takes bad rows and files, and counts.

    Yields:
        `schemas.documents.DOCUMENT_PIECES`, 4 to 8 MiB of text each where there is that much.

    Raises:
        BadRecordError, BadFileError: bad input where the policy is to stop.
    """
    raise NotImplementedError
    yield
