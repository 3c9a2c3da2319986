"""What a state of rounds is made of: about as many shards as were asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines import ReadOptions, TrainSettings, list_inputs, make_plan
from pipelines.training.rounds.options import Sample
from pipelines.training.rounds.state_source import RawText


@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_a_state_has_about_as_many_shards_as_asked_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "txt":
        path.write_text("some text\n" * 60_000)
    else:
        rows = pa.table({"text": [f"{number}: some text" for number in range(60_000)]})
        pq.write_table(rows, path, row_group_size=1000)
    read = ReadOptions(document_separator=b"\n") if kind == "txt" else ReadOptions()
    plan = make_plan(list_inputs([str(path)], read), read)
    settings = TrainSettings((300,), pretokenizer="none")
    for shards in (1, 3, 8):
        source = RawText(
            plan, read, settings, sample=Sample(), shards=shards, output=str(tmp_path / "out")
        )
        assert abs(source.units - shards) <= 1
        assert source.expected.shards == source.units
