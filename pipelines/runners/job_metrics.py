"""What a runner counts while a job runs: Beam's own counters and distributions.

They show progress on a runner's page and on the closing screen. They are not exact: a runner may
count work twice that it repeats, or not tell at all, and a resumed run counts only what it did
itself. Totals come from the sidecars, see `pipelines.shards.manifest`.

    documents, bytes, tokens            counters; documents encoded, bytes of their text, their ids
    rejects-REASON                      counters; rows set aside
    bytes-per-1000-tokens               distribution over units
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apache_beam.metrics import Metrics, MetricsFilter

__all__ = ["NAMESPACE", "JobMetrics", "count_documents", "count_rejects", "read_metrics"]

NAMESPACE = "beam_bpe"
RATIO = "bytes-per-1000-tokens"
_REJECTS = "rejects-"


def count_documents(*, documents: int, size: int, tokens: int) -> None:
    """Count what a worker has encoded; a unit or a batch at a time, never a document.

    Args:
        documents: that ended.
        size: of their text, bytes.
        tokens: their ids.
    """
    Metrics.counter(NAMESPACE, "documents").inc(documents)
    Metrics.counter(NAMESPACE, "bytes").inc(size)
    Metrics.counter(NAMESPACE, "tokens").inc(tokens)
    if tokens:
        Metrics.distribution(NAMESPACE, RATIO).update(round(1000 * size / tokens))


def count_rejects(rejects: Mapping[str, int]) -> None:
    """Count what a worker has set aside, by reason."""
    for reason, count in rejects.items():
        Metrics.counter(NAMESPACE, f"{_REJECTS}{reason}").inc(count)


@dataclass
class JobMetrics:
    """What the runner has counted.

    Attributes:
        counters: by name.
        least_ratio, largest_ratio: bytes per token of the units with the least and the most; None
            if the runner does not say.
    """

    counters: dict[str, int] = field(default_factory=dict)
    least_ratio: float | None = None
    largest_ratio: float | None = None

    @property
    def rejects(self) -> dict[str, int]:
        """Rows set aside, by reason."""
        return {
            name.removeprefix(_REJECTS): count
            for name, count in sorted(self.counters.items())
            if name.startswith(_REJECTS)
        }


def read_metrics(results: Iterable[Any]) -> JobMetrics | None:
    """What the runner counted in some pipelines; None where it cannot tell.

    Args:
        results: of pipelines that are done, as `Pipeline.run` returns them.
    """
    found = JobMetrics()
    for result in results:
        try:
            told = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
        except Exception:  # noqa: BLE001 - runners refuse in ways of their own; Dask's raises
            return None
        for counter in told.get("counters", []):
            name = counter.key.metric.name
            found.counters[name] = found.counters.get(name, 0) + (counter.result or 0)
        for each in told.get("distributions", []):
            if each.key.metric.name == RATIO and each.result is not None and each.result.count:
                least, largest = each.result.min / 1000, each.result.max / 1000
                found.least_ratio = min(least, found.least_ratio or least)
                found.largest_ratio = max(largest, found.largest_ratio or largest)
    return found
