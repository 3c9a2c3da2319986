"""`TrainBpe` inside a pipeline, and the settings of a training."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline as BeamPipeline
from apache_beam.testing.util import assert_that, equal_to

from bpe.counting import count_pretokens
from bpe.errors import SettingsError
from bpe.tokenizer import Tokenizer
from bpe.training import train
from pipelines import CountWords, TrainBpe
from pipelines.corpus.listing.inputs import ReadOptions, list_inputs
from pipelines.corpus.plan import make_plan
from pipelines.training.train_bpe import TrainSettings, raw_memory, words_memory


def test_counts_become_model_directories(tiny: Path, tmp_path: Path) -> None:
    text = tiny.read_bytes()[:30_000]
    (tmp_path / "a.txt").write_bytes(text)
    settings = TrainSettings((280, 300), special_tokens=("<|x|>",))
    read = ReadOptions(range_bytes=7000)
    plan = make_plan(list_inputs([str(tmp_path / "a.txt")], read), read)
    output = str(tmp_path / "out")
    with BeamPipeline() as pipeline:
        written = (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in plan.units])
            | CountWords(settings.counting, read, buckets=3)
            | TrainBpe(output, settings)
        )
        assert_that(written, equal_to([(280, f"{output}/280"), (300, f"{output}/300")]))
    expected = train(
        count_pretokens(text, "gpt2"), 300, pretokenizer="gpt2", special_tokens=["<|x|>"]
    )
    assert Tokenizer.load(f"{output}/300").digest == expected.digest
    assert Tokenizer.load(f"{output}/280").digest == expected.truncate(280).digest


def test_special_tokens_change_the_counts_only_where_they_act() -> None:
    plain = TrainSettings((300,), special_tokens=("<|x|>",))
    assert plain.counting.to_dict() == TrainSettings((300,)).counting.to_dict()
    acting = TrainSettings((300,), special_tokens=("<|x|>",), special_text="allow")
    assert acting.counting.to_dict()["special_tokens"] == ["<|x|>"]


def test_impossible_settings_are_refused_when_made() -> None:
    with pytest.raises(SettingsError, match="at least 257"):
        TrainSettings((256, 300), special_tokens=("<|x|>",))
    with pytest.raises(SettingsError, match="--min-frequency 0"):
        TrainSettings((300,), min_frequency=0)
    with pytest.raises(SettingsError, match="--max-token-bytes 0"):
        TrainSettings((300,), max_token_bytes=0)
    with pytest.raises(SettingsError, match=r"--special-token '<x>': is given twice"):
        TrainSettings((300,), special_tokens=("<x>", "<y>", "<x>"))
    with pytest.raises(SettingsError, match="--special-token '': is empty"):
        TrainSettings((300,), special_tokens=("",))


def test_memory_is_estimated_from_the_text() -> None:
    table = count_pretokens("some words of text", "gpt2")
    sizes = (table.num_rows, len("some words of text"))
    assert words_memory(*sizes, "python") > words_memory(*sizes, "native") > table.nbytes
    with pytest.raises(SettingsError, match="--superbpe-from 50: the first stage alone makes 306"):
        TrainSettings((300,), superbpe_from=50)
    assert raw_memory(10**9, "python") > raw_memory(10**9, "native") > 10**9
