"""The claim of a folder, whatever the command: new, resumed, finished, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bpe.errors import OutputError
from pipelines.storage import run_folder
from pipelines.storage.output_lock import LOCK_NAME
from pipelines.storage.run_folder import Claim, Run, Step, claim, claimed, refuse_changes
from pipelines.storage.wording import describe_differences
from schemas.round_records import InitialRecord
from schemas.run_record import RunRecord

WANTED = RunRecord(command="train", settings={"to": "npy"}, inputs=[])


class OneFile(Run[str]):
    """A run that makes the file `done`, after the file `half`."""

    def compare(self, earlier: RunRecord) -> Claim[str]:
        """Finished once the file is there."""
        changes = describe_differences(earlier.settings, self.wanted.settings)
        refuse_changes(f"{self.output}: holds others", changes, "choose another folder")
        done = Path(self.output, "done")
        return Claim("finished", record=done.read_text()) if done.exists() else Claim("resumed")

    def clear(self) -> None:
        """Remove both files."""
        for name in ("done", "half"):
            Path(self.output, name).unlink(missing_ok=True)


def test_a_run_is_new_then_resumed_then_finished(tmp_path: Path) -> None:
    output = tmp_path / "out"
    run = OneFile(str(output), WANTED, overwrite=False)
    with claimed(run) as found:
        assert (found.state, found.record) == ("new", None)
        assert (output / LOCK_NAME).exists()
        (output / "half").touch()
    with claimed(run) as found:
        assert found.state == "resumed"
        assert (output / "half").exists()
        (output / "done").write_text("made")
    with claimed(run) as found:
        assert (found.state, found.record) == ("finished", "made")
    with claimed(OneFile(str(output), WANTED, overwrite=True)) as found:
        assert found.state == "new"
    assert [each.name for each in output.iterdir() if each.is_file()] == ["run.json"]


def test_a_run_is_refused_where_another_one_works_or_worked(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    run = OneFile(output, WANTED, overwrite=False)
    with (
        claimed(run),
        pytest.raises(OutputError, match="another run is writing there"),
        claimed(run),
    ):
        pass
    other = OneFile(output, replace(WANTED, settings={"to": "mds"}), overwrite=False)
    wanted = r'holds others \(to: was "npy", now "mds"\); choose another folder'
    with pytest.raises(OutputError, match=wanted), claimed(other):
        pass


@pytest.mark.parametrize(("is_done", "overwrite"), [(True, False), (True, True), (False, False)])
def test_only_a_finished_run_may_be_in_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_done: bool, overwrite: bool
) -> None:
    output = str(tmp_path)
    with claimed(OneFile(output, WANTED, overwrite=False)):
        pass
    if is_done:
        (tmp_path / "done").write_text("made")

    def refuse(directory: str) -> None:
        raise OutputError(f"{directory}: cannot be written")

    monkeypatch.setattr(run_folder, "prepare_output", refuse)
    run = OneFile(output, WANTED, overwrite=overwrite)
    if is_done and not overwrite:
        with claimed(run) as found:
            assert found.record == "made"
        return
    with pytest.raises(OutputError, match="cannot be written"), claimed(run):
        pass


def test_a_step_is_kept_made_anew_or_refused() -> None:
    removed: list[str] = []
    old = InitialRecord(
        settings={"state_shards": 2},
        inputs=[{"path": "a.txt", "identity": "1"}],
        totals={},
        state_files=[],
        seconds=0.0,
        ended=0.0,
    )
    step = Step(
        folder="rounds",
        read=lambda _: None,
        remove=removed.append,
        settings=old.settings,
        inputs=old.inputs,
        holds="rounds: holds others",
        remedy="--overwrite",
    )
    assert claim(step) == Claim()
    assert removed == ["rounds"]
    there = replace(step, read=lambda _: old)
    assert claim(there) == Claim("finished", record=old)
    assert removed == ["rounds"]
    changed = replace(there, settings={"state_shards": 3}, inputs=[*old.inputs, *old.inputs])
    with pytest.raises(OutputError) as error:
        claim(changed)
    assert str(error.value) == (
        "rounds: holds others (state_shards: was 2, now 3; inputs: was 1 file, now 2; the order of "
        "files is new, gone or changed); --overwrite"
    )
    assert removed == ["rounds"]
