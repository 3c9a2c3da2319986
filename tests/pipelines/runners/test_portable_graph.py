"""The jobs as a portable runner (Flink, Dataflow) gets them: steps and coders that it knows.

Flink's job server is not run in the tests. What it is handed is the graph below, and it refuses a
step, or a coder between steps, that is not one of Beam's standard ones.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.corpus.read_options import ReadOptions
from pipelines.encoding.encode_documents import EncodeDocuments, EncodeSettings
from pipelines.training.count_words import CountSettings, CountWords, WriteCountTable

# What Beam's model calls primitive: a runner has to carry these out itself.
PRIMITIVES = {
    "beam:transform:impulse:v1",
    "beam:transform:pardo:v1",
    "beam:transform:group_by_key:v1",
    "beam:transform:combine_per_key:v1",
}
# Coders of the model. A runner need not understand what is inside of others (Python's): it keeps
# them as bytes with their length, as long as no key is among them.
KEY_CODERS = {"beam:coder:varint:v1", "beam:coder:bytes:v1", "beam:coder:string_utf8:v1"}

GRAPHS: dict[str, Callable[[Any], Any]] = {
    "count": lambda units: (
        units | CountWords(CountSettings("gpt2"), ReadOptions()) | WriteCountTable("counts")
    ),
    "encode": lambda units: units | EncodeDocuments(_encode_run()),
}


def _encode_run() -> SimpleNamespace:
    return SimpleNamespace(output="tokens", settings=_encode_settings())


def _encode_settings() -> EncodeSettings:
    return EncodeSettings(tokenizer_digest="0" * 64, read=ReadOptions())


def portable_graph(build: Callable[[Any], Any]) -> Any:
    """The job's graph in Beam's portable form, made and not run."""
    options = PipelineOptions(["--runner=PortableRunner", "--job_endpoint=localhost:1"])
    pipeline = beam.Pipeline(options=options)
    build(pipeline | "Units" >> beam.Create([b"{}", b"{ }"]))
    return pipeline.to_runner_api()


@pytest.mark.parametrize("job", GRAPHS)
def test_every_step_without_parts_is_a_primitive_of_the_model(job: str) -> None:
    transforms = portable_graph(GRAPHS[job]).components.transforms.values()
    # A composite that hands on what it gets is a leaf too, and nothing that is run.
    leaves = [
        each
        for each in transforms
        if not each.subtransforms and not set(each.outputs.values()) <= set(each.inputs.values())
    ]
    assert leaves
    assert {each.spec.urn for each in leaves} <= PRIMITIVES


@pytest.mark.parametrize("job", GRAPHS)
def test_what_is_grouped_has_keys_that_every_runner_compares_alike(job: str) -> None:
    components = portable_graph(GRAPHS[job]).components
    grouped = [
        next(iter(each.inputs.values()))
        for each in components.transforms.values()
        if each.spec.urn in ("beam:transform:group_by_key:v1", "beam:transform:combine_per_key:v1")
    ]
    assert grouped
    for name in grouped:
        coder = components.coders[components.pcollections[name].coder_id]
        assert coder.spec.urn == "beam:coder:kv:v1"
        key = components.coders[coder.component_coder_ids[0]]
        assert key.spec.urn in KEY_CODERS, key


@pytest.mark.parametrize("job", GRAPHS)
def test_the_graph_asks_for_nothing_special_of_a_runner(job: str) -> None:
    graph = portable_graph(GRAPHS[job])
    assert not graph.requirements
    leaves = [each for each in graph.components.transforms.values() if each.environment_id]
    environments = {each.environment_id for each in leaves}
    assert len(environments) == 1
    # Payloads go by files: no side inputs, no state, no timers, one output a step.
    pardos = [each for each in leaves if each.spec.urn == "beam:transform:pardo:v1"]
    for each in pardos:
        assert len(each.inputs) == 1
        assert len(each.outputs) == 1
