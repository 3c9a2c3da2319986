"""How many workers a job of this process starts: no more than it has work for."""

from __future__ import annotations

import os

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

__all__ = ["MOST_WORKERS", "limit_workers"]

MOST_WORKERS = 1024
"""What `--direct_num_workers` may ask for; 0 asks for as many as there are cores."""

# Steps after a grouping have up to a few hundred elements even if the source has one.
_ALWAYS_USEFUL = 8


def limit_workers(pipeline: beam.Pipeline) -> None:
    """Have a pipeline start no more workers than its sources have elements.

    Each one costs time in every step, whether there is work for it or not. No output depends on
    their number.

    Args:
        pipeline: complete, and not yet running; one without a `Create` is left as it is.
    """
    sources = _Sources()
    pipeline.visit(sources)
    if not sources.elements:
        return
    direct = pipeline.options.view_as(DirectOptions)
    asked = direct.direct_num_workers or os.cpu_count() or 1
    direct.direct_num_workers = min(asked, max(_ALWAYS_USEFUL, *sources.elements))


class _Sources(PipelineVisitor):
    """Collects how many elements each `Create` of a pipeline has."""

    def __init__(self) -> None:
        self.elements: list[int] = []

    def enter_composite_transform(self, transform_node: AppliedPTransform) -> None:
        """Note a `Create`, which is a composite."""
        if isinstance(transform_node.transform, beam.Create):
            self.elements.append(len(transform_node.transform.values))
