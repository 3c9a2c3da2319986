"""`EncodeRun`: who holds the folder, what is missing, and when a manifest is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import apache_beam as beam
import pytest

from bpe.errors import OutputError
from bpe.tokenizer import Tokenizer
from pipelines import (
    EncodeDocuments,
    EncodeRun,
    EncodeSettings,
    ReadOptions,
    SpillDocuments,
    WriteBuckets,
    list_inputs,
    make_plan,
)
from pipelines.encoding import encode_run

MANIFEST = "__beam-bpe__/manifest.json"
SIDECAR = "__beam-bpe__/sidecars/shard-00001-000.arrow.json"
SPILLS = "__beam-bpe__/shuffle"
Make = Callable[..., EncodeRun]


@pytest.fixture
def make(tmp_path: Path, model_dir: Path) -> Make:
    """A run over two files, a unit each, into `tmp_path`/out."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"the and {name}\n" * 50)
    read = ReadOptions()
    plan = make_plan(list_inputs([str(tmp_path / "*.txt")], read), read, unit_bytes=1)
    tokenizer = Tokenizer.load(model_dir)

    def make_run(**options: object) -> EncodeRun:
        overwrite = bool(options.pop("overwrite", False))
        settings = EncodeSettings(tokenizer.digest, read, **options)
        output = str(tmp_path / "out")
        return EncodeRun(output, settings, plan, tokenizer, overwrite=overwrite)

    return make_run


def encode(run: EncodeRun, *, fail: bool = False) -> None:
    with run, beam.Pipeline() as pipeline:
        pipeline | run.units() | EncodeDocuments(run)
        if fail:
            raise ZeroDivisionError


def test_the_manifest_comes_after_the_pipeline(make: Make, run: Callable, tmp_path: Path) -> None:
    made = make()
    assert made.manifest is None
    encode(made)
    assert made.manifest.totals.documents == 2
    assert run("verify", tmp_path / "out").code == 0


def test_an_exception_leaves_no_manifest_and_gives_the_folder_up(
    make: Make, tmp_path: Path
) -> None:
    first = make()
    with pytest.raises(ZeroDivisionError):
        encode(first, fail=True)
    assert first.manifest is None
    assert not (tmp_path / "out" / MANIFEST).exists()
    encode(make())
    assert (tmp_path / "out" / MANIFEST).exists()


def test_a_job_that_did_not_end_gives_no_manifest(make: Make, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is missing although the job ended"), make():
        pass
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_what_is_whole_is_not_made_again(make: Make, tmp_path: Path) -> None:
    encode(make())
    again = make()
    with again:
        assert again.found.finished
        assert again.missing_units == []
    assert again.manifest.totals.documents == 2
    (tmp_path / "out" / "shard-00001-000.arrow").unlink()
    resumed = make()
    with resumed, beam.Pipeline() as pipeline:
        assert (resumed.kept, [unit.index for unit in resumed.missing_units]) == (1, [1])
        pipeline | resumed.units() | EncodeDocuments(resumed)
    assert resumed.manifest.totals == again.manifest.totals


def test_a_model_in_the_current_folder_is_not_taken(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Tokenizer.from_merges([(b"x", b"y")], pretokenizer="gpt2")
    other.save(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    made = make()
    made._tokenizer = Tokenizer(made._tokenizer.model)  # one of no directory
    with made:
        copy = tmp_path / "out" / "__beam-bpe__" / "tokenizer"
        assert Tokenizer.from_directory(copy).digest == made.settings.tokenizer_digest
        with beam.Pipeline() as pipeline:
            pipeline | made.units() | EncodeDocuments(made)


def test_other_settings_and_a_second_run_are_refused(make: Make) -> None:
    with make() as held:
        with pytest.raises(OutputError, match="another run is writing there"), make():
            pytest.fail("two runs hold one folder")
        with beam.Pipeline() as pipeline:
            pipeline | held.units() | EncodeDocuments(held)
    with pytest.raises(OutputError, match="eos: was not given, now 261"), make(eos=261):
        pytest.fail("other settings were taken")
    with make(eos=261, overwrite=True) as over, beam.Pipeline() as pipeline:
        pipeline | over.units() | EncodeDocuments(over)
    assert over.manifest.settings["eos"] == 261


def shuffle(run: EncodeRun, lost: Path | None = None) -> None:
    with run:
        with beam.Pipeline() as pipeline:
            pipeline | run.units() | SpillDocuments(run)
        with beam.Pipeline() as pipeline:
            pipeline | run.buckets() | WriteBuckets(run)
        if lost is not None:
            lost.unlink()


def test_a_global_shuffle_takes_two_pipelines(make: Make, run: Callable, tmp_path: Path) -> None:
    made = make(shuffle="global")
    shuffle(made)
    assert made.manifest.totals.documents == 2
    assert run("verify", tmp_path / "out").code == 0
    assert not (tmp_path / "out" / SPILLS).exists()


def test_spills_stay_until_all_buckets_are_there(make: Make, tmp_path: Path) -> None:
    options = {"shuffle": "global", "shard_bytes": 256}
    with pytest.raises(OutputError, match="is missing although the job ended"):
        shuffle(make(**options), lost=tmp_path / "out" / SIDECAR)
    with make(**options) as again:
        assert again.missing_units == []
        assert [bucket.index for bucket in again.missing_buckets] == [1]
        with beam.Pipeline() as pipeline:
            pipeline | again.buckets() | WriteBuckets(again)
    assert again.manifest.totals.documents == 2


def test_a_kill_between_the_spills_and_the_manifest_loses_nothing(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"shuffle": "global", "shard_bytes": 256}
    shuffle(make(**options))
    wanted = (tmp_path / "out" / MANIFEST).read_bytes()

    with monkeypatch.context() as patch:
        patch.setattr(encode_run, "write_manifest", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            shuffle(make(**options, overwrite=True))
    assert not (tmp_path / "out" / MANIFEST).exists()
    assert not (tmp_path / "out" / SPILLS).exists()
    with make(**options) as again:
        assert again.missing_units == again.missing_buckets == []
    assert (tmp_path / "out" / MANIFEST).read_bytes() == wanted
