"""State files come back as they were written, or are refused by name with a way out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from bpe.errors import OutputError
from bpe.rounds.shard_state import ShardState
from pipelines.training.rounds.state_files import (
    delete_state,
    has_state,
    read_state,
    state_name,
    write_state,
)

NAME = state_name(7, 3)


def sequences(id_type: pa.DataType) -> pa.LargeListArray:
    return pa.array([[1, 2, 3], [], [300]], pa.large_list(id_type))


@pytest.mark.parametrize("id_type", [pa.uint16(), pa.uint32()])
@pytest.mark.parametrize("weighted", [False, True])
def test_state_comes_back(id_type: pa.DataType, *, weighted: bool, tmp_path: Path) -> None:
    weights = pa.array([5, 3_000_000_000, 1], pa.int64()) if weighted else None
    written = ShardState(sequences(id_type), weights, open_left=not weighted, open_right=False)
    described = write_state(str(tmp_path), NAME, written)
    assert NAME == "r007-shard-00003.arrow"
    assert (described.sequences, described.tokens) == (3, 4)
    found = read_state(str(tmp_path), NAME)
    assert found.sequences.to_pylist() == written.sequences.to_pylist()
    assert found.sequences.type.value_type == id_type
    assert (found.weights is None) == (weights is None)
    assert weights is None or found.weights.equals(weights)
    assert (found.open_left, found.open_right) == (written.open_left, False)
    assert has_state(str(tmp_path), [described])
    assert write_state(str(tmp_path), NAME, written) == described
    delete_state(str(tmp_path), [NAME])
    assert has_state(str(tmp_path), [described])
    delete_state(str(tmp_path))
    assert not has_state(str(tmp_path), [described])


def test_a_slice_is_written_as_what_it_shows(tmp_path: Path) -> None:
    part = sequences(pa.uint16()).slice(1)
    described = write_state(str(tmp_path), NAME, ShardState(part))
    assert (described.sequences, described.tokens) == (2, 1)
    assert read_state(str(tmp_path), NAME).sequences.to_pylist() == [[], [300]]


@pytest.mark.parametrize("place", range(0, 700, 50))
def test_a_flipped_bit_is_noticed_wherever_it_is(place: int, tmp_path: Path) -> None:
    write_state(str(tmp_path), NAME, ShardState(sequences(pa.uint16())))
    path = tmp_path / NAME
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 4
    path.write_bytes(data)
    with pytest.raises(OutputError, match=rf"{NAME}: is not what was written.*remove this file"):
        read_state(str(tmp_path), NAME)


@pytest.mark.parametrize("way", ["missing", "no sidecar", "unreadable", "cut"])
def test_a_file_that_cannot_be_had_is_named_with_a_way_out(way: str, tmp_path: Path) -> None:
    write_state(str(tmp_path), NAME, ShardState(sequences(pa.uint16())))
    path = tmp_path / NAME
    if way == "no sidecar":
        (tmp_path / f"{NAME}.json").unlink()
    elif way == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    if way == "unreadable":
        path.mkdir()
    with pytest.raises(OutputError, match=NAME) as raised:
        read_state(str(tmp_path), NAME)
    assert "run the same command again" in str(raised.value)
    assert "--overwrite" in str(raised.value)
