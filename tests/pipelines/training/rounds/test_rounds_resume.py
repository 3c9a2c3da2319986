"""Rounds that were cut short, by whatever: the same command goes on, or says what is wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe.tokenizer import Tokenizer
from pipelines.cli import command_line
from pipelines.training.rounds import driver_steps, round_loop, train_rounds
from tests.pipelines.training.rounds.conftest import write_short

Run = Callable[..., Any]


class Stopped(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def short(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One text for all tests here, so that what is made of it can be shared."""
    return write_short(tiny, tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def command(short: Path) -> tuple[object, ...]:
    return (
        *("train", "--input", short, "--pretokenizer", "none", "--vocab-size", 310),
        *("--engine", "rounds", "--state-shards", 3, "--segment-budget", "500B"),
    )


def digest(folder: Path) -> str:
    return Tokenizer.load(folder).digest


def stop_at(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, calls: int) -> None:
    """End the run at the nth call of a function, before it does anything."""
    original = getattr(module, name)
    left = [calls]

    def count_down(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Stopped
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, count_down)


PLACES = [
    (round_loop, "_run_count", 0),
    (round_loop, "finish_count", 1),
    (driver_steps, "write_segments_record", 1),
    (driver_steps, "delete_state", 2),
    (train_rounds, "make_tokenizer", 0),
]


@pytest.mark.parametrize(
    ("module", "name", "calls"),
    [
        pytest.param(*place, id=place[1], marks=[] if place in PLACES[::4] else pytest.mark.slow)
        for place in PLACES
    ],
)
def test_a_run_goes_on_from_wherever_it_stopped(
    module: Any,
    name: str,
    calls: int,
    command: tuple[object, ...],
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    expected_digest: str,
) -> None:
    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        stop_at(patch, module, name, calls)
        with pytest.raises(Stopped):
            run(*command, "--output", output)
    done_before = len(list((output / "rounds").glob("r*.json")))
    again = run(*command, "--output", output)
    assert again.code == 0, again.err
    assert "resuming: kept the state" in again.err
    rows = Tokenizer.load(output).training["rounds"]
    told = [line for line in again.err.splitlines() if line.startswith("round ")]
    assert len(told) == len(rows) - done_before // 2
    assert digest(output) == expected_digest
    assert not (output / "rounds").exists()


@pytest.fixture(scope="module")
def made_halfway(command: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output whose third round has counted and not more."""
    output = tmp_path_factory.mktemp("halfway") / "out"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, round_loop, "_run_segments", 2)
        with pytest.raises(Stopped):
            command_line.main([*map(str, command), "--output", str(output)])
    return output


@pytest.fixture
def halfway(made_halfway: Path, tmp_path: Path) -> Path:
    """The same, for a test to change."""
    return Path(shutil.copytree(made_halfway, tmp_path / "out"))


@pytest.fixture(scope="module")
def expected_digest(command: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the tokenizer that the driver makes of the same text."""
    output = tmp_path_factory.mktemp("driver") / "out"
    assert command_line.main([*map(str, command[:7]), "--output", str(output)]) == 0
    return digest(output)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("--vocab-size", 300), "vocab_sizes: was [310], now [300]"),
        (("--state-shards", 4), "state_shards: was 3, now 4"),
        (("--tie-order", "bytes"), 'tie_order: was "hf", now "bytes"'),
        (("--sample-bytes", "1kB"), "sample: was"),
    ],
)
def test_other_settings_are_refused_by_name(
    change: tuple[object, ...], expected: str, command: tuple[object, ...], halfway: Path, run: Run
) -> None:
    refused = run(*command, "--output", halfway, *change)
    assert refused.code == 1
    assert expected in refused.err
    assert "--overwrite to start again" in refused.err
    # What decides no merge may change; and nothing was lost by the refusal.
    done = run(*command, "--output", halfway, "--segment-budget", "2kB", "--rounds-per-job", 2)
    assert done.code == 0, done.err
    assert "resuming" in done.err


def test_changed_input_is_refused_and_overwritten(
    command: tuple[object, ...], halfway: Path, short: Path, tmp_path: Path, run: Run
) -> None:
    data, before = short.read_bytes(), short.stat()
    try:
        short.write_bytes(data + b"more")
        refused = run(*command, "--output", halfway)
        assert refused.code == 1
        assert "short.txt is new, gone or changed" in refused.err
        done = run(*command, "--output", halfway, "--overwrite")
        assert done.code == 0, done.err
        assert run(*command[:7], "--output", tmp_path / "driver").code == 0
        assert digest(halfway) == digest(tmp_path / "driver")
    finally:
        # The other tests share the file.
        short.write_bytes(data)
        os.utime(short, ns=(before.st_atime_ns, before.st_mtime_ns))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["state", "sidecar"])
def test_a_damaged_state_file_is_named_and_can_be_made_again(
    what: str, command: tuple[object, ...], halfway: Path, run: Run, expected_digest: str
) -> None:
    state = halfway / "rounds" / "state"
    victim = state / "r002-shard-00001.arrow"
    flip(victim if what == "state" else state / f"{victim.name}.json")
    refused = run(*command, "--output", halfway)
    assert refused.code == 1
    assert f"{victim}" in refused.err
    assert "remove this file and run the same command again" in refused.err
    assert "Traceback" not in refused.err
    if what == "state":
        victim.unlink()
    else:
        (state / f"{victim.name}.json").unlink()
    done = run(*command, "--output", halfway)
    assert done.code == 0, done.err
    assert digest(halfway) == expected_digest


def test_state_that_is_gone_is_made_again_from_the_input(
    command: tuple[object, ...], halfway: Path, run: Run, expected_digest: str
) -> None:
    for path in (halfway / "rounds" / "state").iterdir():
        path.unlink()
    done = run(*command, "--output", halfway)
    assert done.code == 0, done.err
    assert digest(halfway) == expected_digest


@pytest.mark.parametrize("name", ["r001/merges.arrow", "r001/fixes.arrow", "r002-count.json"])
def test_other_damaged_files_are_named(
    name: str, command: tuple[object, ...], halfway: Path, run: Run
) -> None:
    path = halfway / "rounds" / name
    if name.endswith(".json"):
        path.write_bytes(path.read_bytes()[:-30])
    else:
        flip(path)
    if name.startswith("r001"):
        # Whoever needs these merges: a shard whose state is to be made again.
        (halfway / "rounds" / "state" / "r002-shard-00000.arrow").unlink()
    refused = run(*command, "--output", halfway)
    assert refused.code == 1
    assert str(path) in refused.err
    assert "--overwrite" in refused.err


def test_a_full_disk_is_said_and_what_is_done_stays(
    command: tuple[object, ...],
    halfway: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    expected_digest: str,
) -> None:
    def write(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.storage.output_files.HashingFile.write", write)
        # The third round's state is there; the fourth's cannot be written.
        refused = run(*command, "--output", halfway)
    assert refused.code == 1
    assert "r003-shard-0000" in refused.err
    assert "No space left on device" in refused.err
    assert "Traceback" not in refused.err
    done = run(*command, "--output", halfway)
    assert done.code == 0, done.err
    assert digest(halfway) == expected_digest


@pytest.mark.slow
def test_a_killed_run_goes_on(
    command: tuple[object, ...], tmp_path: Path, run: Run, start: Run, expected_digest: str
) -> None:
    """SIGKILL at moments that the seed decides; `tests/benchmarks/kill_rounds.py` does more."""
    output = tmp_path / "out"
    generator = random.Random(5)
    kills = 0
    while kills < 2:
        process = start(*command, "--output", output, seconds_per_rename=0.02)
        wanted = generator.randint(1, 4) + len(list(output.glob("rounds/r*.json")))
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and process.poll() is None:
            if len(list(output.glob("rounds/r*.json"))) >= wanted:
                break
            time.sleep(0.01)
        time.sleep(generator.random() * 0.3)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
    assert kills
    done = run(*command, "--output", output)
    assert done.code == 0, done.err
    assert digest(output) == expected_digest
    assert not (output / "rounds").exists()


def test_records_say_what_they_hold(halfway: Path) -> None:
    record = json.loads((halfway / "rounds" / "r001-segments.json").read_text())
    assert record["round"] == 1
    assert record["merges"] > 0
    assert set(record["files"]) == {"merges.arrow", "fixes.arrow"}
    state = sorted(path.name for path in (halfway / "rounds" / "state").glob("*.arrow"))
    assert state[:3] == [f"r001-shard-0000{shard}.arrow" for shard in range(3)]
    assert state[3:] == [f"r002-shard-0000{shard}.arrow" for shard in range(3)]
    assert sorted(path.name for path in (halfway / "rounds" / "r000").iterdir()) == [
        "fixes.arrow",
        "merges.arrow",
    ]
